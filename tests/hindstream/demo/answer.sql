-- The demo's answer, from the records of the two topics and from nothing of the engine.
--
-- Given: tables flights and weather (key, value, timestamp as epoch ms, "offset", partition) and the variables
-- deduplication_interval, history_retention and grace (ms).

-- A task takes up its two partitions by the running maximum of their timestamps; ties: weather first, it is declared first.
CREATE TEMP TABLE taken_up AS
WITH heads AS (
    SELECT 0 AS source, partition, "offset", max(timestamp) OVER by_offset AS order_time, timestamp AS ts FROM weather
    WINDOW by_offset AS (PARTITION BY partition ORDER BY "offset")
    UNION ALL
    SELECT 1, partition, "offset", max(timestamp) OVER by_offset, timestamp FROM flights
    WINDOW by_offset AS (PARTITION BY partition ORDER BY "offset")
), ordered AS (
    SELECT *, row_number() OVER (PARTITION BY partition ORDER BY order_time, source, "offset") AS seq FROM heads
)
SELECT *, max(ts) OVER (PARTITION BY partition ORDER BY seq) AS task_time FROM ordered;

-- Deduplication, for ids that come twice at most: the second is dropped if the first was remembered, and still is.
CREATE TEMP TABLE deliveries AS
SELECT partition, key, value.flight_id AS id, value.dep_delay AS delay, ts, seq, task_time,
       row_number() OVER same_id AS delivery,
       lag(ts) OVER same_id AS first_ts,
       lag(task_time) OVER same_id AS first_task_time
FROM flights JOIN taken_up USING (partition, "offset")
WHERE source = 1
WINDOW same_id AS (PARTITION BY key, value.flight_id ORDER BY seq);

CREATE TEMP TABLE once AS
SELECT * FROM deliveries
WHERE NOT (
    delivery > 1
    AND first_ts >= first_task_time - getvariable('deduplication_interval')
    AND first_ts >= task_time - getvariable('deduplication_interval')
    AND abs(ts - first_ts) <= getvariable('deduplication_interval')
);

-- The weather that was valid at scheduled departure. What has to have arrived by then is checked, not assumed.
CREATE TEMP TABLE observations AS
SELECT partition, key, value IS NOT NULL AS is_there, value.wind_speed AS wind, ts, seq
FROM weather JOIN taken_up USING (partition, "offset")
WHERE source = 0;

CREATE TEMP TABLE joined AS
WITH clocks AS (
    SELECT o.partition, o.key, o.seq, max(o.ts) OVER (PARTITION BY o.partition ORDER BY o.seq) AS store_time
    FROM observations o
), timed AS (
    SELECT once.*, clocks.store_time
    FROM once ASOF LEFT JOIN clocks ON once.partition = clocks.partition AND once.seq > clocks.seq
)
SELECT f.*, o.seq AS observation_seq,
       coalesce(o.is_there, false) AS matched,
       CASE WHEN f.ts >= f.store_time - getvariable('history_retention')
            THEN o.wind END AS wind
FROM timed f ASOF LEFT JOIN observations o ON f.key = o.key AND f.ts >= o.ts;

-- Hourly windows: each takes a record until the clock of what was counted is past its end and grace.
CREATE TEMP TABLE counted AS
WITH timed AS (
    SELECT *, ts - ts % 3600000 AS window_start, max(ts) OVER (PARTITION BY partition ORDER BY seq) AS window_time
    FROM joined
)
SELECT *, window_start + 3600000 > window_time - getvariable('grace') AS in_time FROM timed;

-- One final result for each window that has closed; they leave in the order of their ends.
CREATE TEMP TABLE answer AS
WITH windows AS (
    SELECT partition, key, window_start, window_start + 3600000 AS window_end, max(ts) AS timestamp,
           count(*) AS flights, count(*) FILTER (delay IS NULL) AS cancelled,
           avg(delay) AS mean_delay, max(delay) AS max_delay, avg(wind) AS mean_wind, max(wind) AS max_wind
    FROM counted WHERE in_time GROUP BY ALL
), ends AS (
    SELECT partition, max(ts) AS final_time FROM counted WHERE in_time GROUP BY partition
)
SELECT windows.*, row_number() OVER (PARTITION BY partition ORDER BY window_end, key) - 1 AS "offset"
FROM windows JOIN ends USING (partition)
WHERE window_end + getvariable('grace') <= final_time;
