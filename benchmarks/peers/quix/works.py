"""The works as a user of Quix Streams writes them: ``python works.py WORK FOLDER BROKER_COMMAND...``.

Starts the broker, runs the application to the end of its topics, writes what it has produced into ``answer.jsonl`` in
the folder, and stops the broker.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from quixstreams import Application, State
from quixstreams.dataframe import StreamingDataFrame
from quixstreams.dataframe.windows import Count, Sum

IDLE_SECONDS = 10.0
TEN_MINUTES, MINUTE, TWO_HOURS = timedelta(minutes=10), timedelta(minutes=1), timedelta(hours=2)


def is_first(value: dict, state: State) -> bool:
    """Whether the id has not come within ten minutes of event time; remembers it."""
    if state.exists(value["id"]):
        return False
    state.set(value["id"], 1, ttl=TEN_MINUTES)
    return True


def priced(left: dict, right: dict) -> dict:
    """A click with its cost."""
    return {"id": left["id"], "cost": left["amount"] * right["rate"]}


def counted(rows: StreamingDataFrame, column: str) -> StreamingDataFrame:
    """Final counts and sums; a partition's time closes windows, not each key's own."""
    windows = rows.tumbling_window(MINUTE, grace_ms=TEN_MINUTES, on_late=lambda *_: False)
    return windows.agg(clicks=Count(), **{column: Sum(column)}).final(closing_strategy="partition")


def run(work: str, folder: Path, server: str) -> None:
    """Runs the application until nothing has come for a while."""
    app = Application(
        server,
        consumer_group=work,
        auto_offset_reset="earliest",
        state_dir=folder / "state",
        loglevel="WARNING",
        producer_extra_config={"linger.ms": 100, "compression.type": "lz4"},
    )
    rows = app.dataframe(app.topic("clicks"))
    if work in {"W1", "W4"}:
        rows = rows.filter(is_first, stateful=True)
    if work in {"W2", "W4"}:
        rows = rows.join_asof(app.dataframe(app.topic("rates")), grace_ms=TWO_HOURS, on_merge=priced)
    if work in {"W3", "W4"}:
        rows = counted(rows, "amount" if work == "W3" else "cost")
    rows.to_topic(app.topic("answer"))
    app.run(timeout=IDLE_SECONDS)


def read(server: str, file: Path) -> None:
    """Writes what is in the topic of answers, a JSON object a line, each partition in order."""
    consumer = Consumer({"bootstrap.servers": server, "group.id": "reader", "enable.auto.commit": False})
    with file.open("w", encoding="utf-8") as lines:
        for number in consumer.list_topics("answer").topics["answer"].partitions:
            partition = TopicPartition("answer", number, 0)
            _, end = consumer.get_watermark_offsets(partition)
            consumer.assign([partition])
            read_up_to = 0
            while read_up_to < end:
                for message in consumer.consume(10_000, timeout=1):
                    record = {"key": message.key().decode(), "timestamp": message.timestamp()[1]}
                    lines.write(json.dumps(record | json.loads(message.value())) + "\n")
                    read_up_to = message.offset() + 1
    consumer.close()


def main(work: str, folder: str, *broker_command: str) -> None:
    """See the module."""
    # The broker stops when its input ends, with the context.
    with subprocess.Popen(broker_command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as broker:
        server = broker.stdout.readline().strip()
        run(work, Path(folder), server)
        read(server, Path(folder, "answer.jsonl"))


if __name__ == "__main__":
    main(*sys.argv[1:])
