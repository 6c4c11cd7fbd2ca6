from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.dataset import CLICKS, RATES, Dataset, Parameters
from statelib.commits.archives import open_archive
from statelib.storage import Storage

PARAMETERS = Parameters(records=20_000, campaigns=50, partitions=3, records_per_second=5.0)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Dataset:
    return Dataset.generate(tmp_path_factory.mktemp("dataset") / "one", PARAMETERS)


def read(dataset: Dataset, topic: str) -> list[pa.Table]:
    return [open_archive(Storage(str(dataset.folder)), topic).reader(p).read_all() for p in range(3)]


def test_equal_parameters_make_equal_topics(dataset, tmp_path) -> None:
    other = Dataset.generate(tmp_path / "other", PARAMETERS)
    assert (dataset.clicks, dataset.rates) == (other.clicks, other.rates) == (20_000, 50 * 8)
    for topic in (CLICKS, RATES):
        assert all(a.equals(b) for a, b in zip(read(dataset, topic), read(other, topic), strict=True))


def test_clicks_come_twice_and_out_of_order(dataset) -> None:
    tables = read(dataset, CLICKS)
    assert sum(table.num_rows for table in tables) == dataset.clicks
    ids = np.concatenate([table["value"].combine_chunks().field("id").to_numpy(False) for table in tables])
    assert len(ids) - len(set(ids)) == 400
    times = tables[0]["timestamp"].cast("int64").to_numpy()
    assert (np.diff(times) < 0).mean() > 0.2
    assert (np.maximum.accumulate(times) - times).max() > 600_000


def test_no_click_has_the_time_of_its_rate(tmp_path) -> None:
    often = Parameters(records=3_000, campaigns=50, partitions=3, rate_minutes=0.001)
    tables = Dataset.generate(tmp_path / "often", often)
    clicks, rates = (pa.concat_tables(read(tables, topic)).select(["key", "timestamp"]) for topic in (CLICKS, RATES))
    assert len(clicks) == 3_000
    assert clicks.join(rates, ["key", "timestamp"], join_type="inner").num_rows == 0


def test_a_dataset_can_be_opened_again(dataset) -> None:
    assert Dataset.open(dataset.folder) == dataset
    assert [len(dataset.files(CLICKS, p)) for p in range(3)] == [1, 1, 1]
