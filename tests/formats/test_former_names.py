"""A warehouse whose stores have generated names that are not Kafka's: its job is told the new ones, and goes on."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from statelib.documents.plans import Plan
from statelib.errors.kinds import ConfigurationError
from tests.formats.former_names import half, topology
from tests.task.pipeline import Pipeline
from tests.unpack import unpack

FIXTURE = Path(__file__).parent / "data" / "former-names.tar.gz"
"""Written by ``half`` of `tests.formats.former_names` in the last release with such names."""


@pytest.mark.thorough
def test_its_job_goes_on_when_it_is_told_the_new_names(tmp_path: Path) -> None:
    with tarfile.open(FIXTURE) as archive:
        unpack(archive, tmp_path)
    former, always = Pipeline(tmp_path, topology()), half(tmp_path / "always")
    with pytest.raises(
        ConfigurationError, match=r"KSTREAM-DEDUPLICATE-0000000006-STORE: it is called KSTREAM-"
    ) as told:
        former.plan()
    assert "hindstream migrate plan JOB --store KSTREAM-DEDUPLICATE-0000000006-STORE=" in str(told.value)
    asked = str(told.value).partition("migrate_stores=")[2].partition(")")[0].split(",")
    stores = {store.name for sub in former.topology.sub_topologies for store in sub.stores}
    assert {entry.partition("=")[2] for entry in asked} == stores
    planned = former.plan(migrate_stores=asked)
    assert isinstance(planned, Plan)
    former.run(migrate_stores=asked)
    always.run()
    assert former.state() == always.state()
    for topic in former.topology.sink_topics:
        assert former.output(topic) == always.output(topic)
