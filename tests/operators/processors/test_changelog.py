"""The stores of processors, and what they have scheduled, rebuilt from changelogs: byte for byte the checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from statelib import Processor, Stores, StreamsBuilder
from statelib.commits.layout import changelog_topic
from statelib.errors.kinds import ConfigurationError
from tests.changelog.test_rebuild import head_of, rebuilt, stores_of
from tests.task.pipeline import Pipeline
from tests.task.test_process import CLICKS, LONG, STRING, topology

if TYPE_CHECKING:
    from pathlib import Path

    from statelib import ProcessorContext, Record

pytestmark = pytest.mark.thorough


def replayed(directory: Path, ends: list[int | None], **settings: Any) -> Pipeline:
    pipeline = Pipeline(directory, topology(), changelogs=stores_of(topology()), **settings)
    pipeline.archive("clicks", CLICKS, (STRING, STRING))
    for end in ends:
        pipeline.run(end)
    return pipeline


@pytest.mark.parametrize("semantics", ["kip", "kafka-4.3"])
def test_the_rebuilt_state_is_that_of_the_checkpoint(tmp_path: Path, semantics: str) -> None:
    pipeline = replayed(tmp_path, [200, 203, None], semantics=semantics)
    state = pipeline.state()
    assert all(rows for task in state.values() for family, rows in task.items() if family != "versions.segments")
    made = rebuilt(pipeline, head_of(pipeline))
    assert {task_id: rows for task_id, rows in made.items() if rows} == state


def test_changelogs_do_not_depend_on_slices_batches_and_budgets(tmp_path: Path) -> None:
    one = replayed(tmp_path / "one", [None])
    many = replayed(tmp_path / "many", [0, 200, 203, 500, None], batch_records=7, memory_budget_bytes=1)
    for store in stores_of(topology()):
        assert one.output(changelog_topic("job", store)) == many.output(changelog_topic("job", store)) != []


class PutsInInit(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.get_state_store("counts").put("a", 1)

    def process(self, record: Record) -> None:
        self.context.forward(record)


def test_init_cannot_put_into_a_store_with_a_changelog(tmp_path: Path) -> None:
    supplier = Stores.persistent_key_value_store("counts")
    builder = StreamsBuilder("job")
    builder.add_state_store(Stores.key_value_store_builder(supplier, pa.string(), LONG))
    builder.stream("clicks").process(PutsInInit, "counts").to("out")
    pipeline = Pipeline(tmp_path, builder.build(), changelogs=["counts"])
    pipeline.archive("clicks", CLICKS, (STRING, STRING))
    with pytest.raises(ConfigurationError, match=r"init\(\) puts into a store that has a changelog"):
        pipeline.run(None)
