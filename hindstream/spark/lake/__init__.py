"""Files of a lake become topic archives: in this process where they are few, on Spark where they are many.

- a load: `ingest`, on Spark in `stages`; several topics, Kafka's among them: `archive`;
- queries that are sources: run by `queries`, for a load or a look (`query_results`);
- what loads that were killed have left: `leftovers`.

Begin with `ingest`; what is done is in `statelib.ingest`.
"""
