"""Makes the archive that `test_archive.py` reads to prove that format 1 stays readable; run once for each format."""

from __future__ import annotations

import sys

from statelib.topics.archive import TopicArchive
from tests.topics.data import SCHEMA, topic_records


def main(uri: str) -> None:
    """Makes the archive at ``uri``."""
    archive = TopicArchive.create(uri, SCHEMA, 2, topic="fixture")
    files = []
    for partition, records in enumerate([topic_records([*range(20), 23]), topic_records([10, 11], [-1, None])]):
        with archive.writer(partition, attempt="fixture") as writer:
            writer.write(records)
        files += writer.close()
    archive.commit(files, app_id="fixture", app_version=1)


if __name__ == "__main__":
    main(sys.argv[1])
