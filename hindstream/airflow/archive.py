"""The operator that copies topics before a run replays them, and what other tasks call that copy topics too."""

from __future__ import annotations

import logging
from collections.abc import Collection
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from hindstream.airflow.arguments import check_reference
from hindstream.airflow.assets import TopicEvent, alias_as_outlet, tell, topic_asset
from hindstream.airflow.operators import HindstreamOperator
from hindstream.airflow.runner import Runner, located
from statelib.errors.counted import counted

if TYPE_CHECKING:
    from airflow.sdk import BaseOperatorLink, Context

    from hindstream.spark.kafka.archive import Copied
    from statelib.ingest.load import Loaded
    from statelib.job.job import Job
    from statelib.job.topics import Topic
    from statelib.settings.settings import Settings

_TRIES = 20
"""Of runs that copy the same, one is through with each try."""

_log = logging.getLogger(__name__)


class HindstreamArchiveOperator(HindstreamOperator):
    """Copies new records of a job's topics: all that is new, since slices end by event time and records come late.

    The asset of each topic that has got records has an event.

    Args:
        topics: A `KafkaTopic`, a `LakeTopic` or a list of them, in the form of ``job``.
        kwargs: As for `HindstreamOperator`.
    """

    template_fields: Collection[str] = (*HindstreamOperator.template_fields, "topics")
    operator_extra_links: Collection[BaseOperatorLink] = ()

    def __init__(self, *, topics: str, do_xcom_push: bool = False, **kwargs: Any) -> None:
        super().__init__(do_xcom_push=do_xcom_push, **kwargs)
        check_reference(topics, f"{type(self).__name__}({self.task_id!r})")
        self.topics = topics
        self.copies = alias_as_outlet(self)

    def execute(self, context: Context) -> None:
        """Copies them."""
        copied = copy_topics(self._runner(), self.topics)
        tell(context, self.copies, copied)


def copy_topics(runner: Runner, topics: str) -> list[TopicEvent]:
    """Copies all that is new of topics, whatever the slice; gives what there is to tell of those that had new records.

    Args:
        runner: What the tasks of the DAG have in common.
        topics: The topics, in the form of a job.
    """

    def copy(_: Job, settings: Settings) -> list[TopicEvent]:
        from statelib.ingest.load import Loaded  # noqa: PLC0415 - parsing a DAG file must stay quick
        from statelib.job.topics import load_topics  # noqa: PLC0415

        told = []
        for copied in chain.from_iterable(_copied(topic, settings) for topic in load_topics(located(topics))):
            if isinstance(copied, Loaded):
                added = copied.records
                _log.info("%s: %s loaded", copied.topic, counted(added, "record was", "records were"))
            else:
                added = sum(found.end - found.start for found in copied.ranges.values())
                _log.info("%s: %s copied", copied.topic, counted(added, "offset was", "offsets were"))
            if added:
                asset = topic_asset(copied.topic, warehouse=settings.warehouse)
                told.append(TopicEvent(asset, {"topic": copied.topic, "records": added}))
        return told

    return cast("list[TopicEvent]", runner.call(copy, until=None))


def _copied(topic: Topic, settings: Settings, tries: int = _TRIES) -> list[Copied | Loaded]:
    """Looks again where another run of a backfill, which copies the same, was quicker.

    Raises:
        FencedError: So it was each time.
    """
    from hindstream.spark.lake.archive import archive  # noqa: PLC0415 - parsing a DAG file must stay quick
    from statelib.errors.kinds import FencedError  # noqa: PLC0415

    try:
        return list(archive([topic], settings))
    except FencedError as error:
        if tries == 1:
            raise
        _log.info("%s; looking again", error)
        return _copied(topic, settings, tries - 1)
