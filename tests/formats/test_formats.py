"""The list of all durable formats, so that none is forgotten when one is added or raised.

Each has a test that a newer version is refused (or, where nothing rests on the file, made anew), and one that reads
what former versions wrote. Bytes of the present version are golden in the same modules.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("statelib", "hindstream")


class Format(NamedTuple):
    """A durable format.

    Attributes:
        versions: All that are read; the last one is written.
        newer: The test that shows what becomes of a version to come, below ``tests``.
        former: The test that reads former versions, or refuses them for a reason; None: there are none.
    """

    versions: tuple[int | str, ...]
    newer: str
    former: str | None = None


_FAMILIES = "tests/operators"
FORMATS = {
    "statelib.documents.document": Format(
        (1, 2, 3, 4, 5, 6, 7, 8, 9),
        "tests/commits/test_layout.py::test_damaged_documents_are_told_from_newer_ones",
        "tests/formats/test_warehouses.py::test_a_job_goes_on",
    ),
    "statelib.commits.expiry": Format((1,), "tests/faults/test_corruption.py::test_damage_is_named_or_changes_nothing"),
    "statelib.checkpoint.cache": Format(
        (1,), "tests/checkpoint/test_cache.py::test_a_record_that_cannot_be_used_says_nothing"
    ),
    "statelib.topics.version": Format(
        (1, 2),
        "tests/topics/test_archive.py::test_a_newer_format_is_refused",
        "tests/topics/test_archive.py::test_an_archive_of_format_1_is_read",
    ),
    "statelib.topics.delta.log": Format(
        ("hindstream.digest.1",),
        "tests/topics/delta/test_log.py::test_a_digest_of_another_version_is_none",
        "tests/topics/delta/test_log.py::test_an_archive_of_an_older_version_has_no_digests",
    ),
    "statelib.topics.kafka_copy": Format((1,), "tests/topics/test_kafka_copy.py::test_a_newer_format_is_refused"),
    "statelib.topics.parquet.footer": Format(
        ("hsfooter",),
        "tests/topics/parquet/test_footer.py::test_every_flipped_bit_of_a_footer_is_noticed",
        "tests/topics/parquet/test_footer.py::test_files_without_a_seal_are_read",
    ),
    "statelib.columns.row_format": Format((1,), "tests/columns/test_row_format.py::test_another_format_is_refused"),
    "statelib.operators.deduplication.codec": Format(
        (1, 2),
        f"{_FAMILIES}/deduplication/test_store.py::test_other_bytes_are_refused",
        f"{_FAMILIES}/deduplication/test_format_1.py::test_it_becomes_what_today_writes",
    ),
    "statelib.operators.joins.stream_table.buffer_store": Format(
        (1,), f"{_FAMILIES}/joins/stream_table/test_buffer.py::test_an_unknown_format_is_refused"
    ),
    "statelib.operators.tables.codec": Format(
        (1,), f"{_FAMILIES}/tables/test_store.py::test_damaged_bytes_and_other_formats_are_refused"
    ),
    "statelib.operators.processors.codec": Format(
        (1, 2),
        f"{_FAMILIES}/processors/test_punctuation.py::test_golden_bytes",
        f"{_FAMILIES}/processors/test_punctuation.py::test_golden_bytes_of_calls_by_the_wall_clock",
    ),
    "statelib.operators.sessions.codec": Format(
        (1,), f"{_FAMILIES}/sessions/test_store.py::test_an_unknown_format_is_refused"
    ),
    "statelib.operators.windows.store_clock": Format(
        (1,), f"{_FAMILIES}/windows/test_store_clock.py::test_damaged_bytes_and_other_formats_are_refused"
    ),
    "statelib.operators.joins.stream_stream.codec": Format(
        (1,), f"{_FAMILIES}/joins/stream_stream/test_store.py::test_an_unknown_format_is_refused"
    ),
    "statelib.operators.joins.foreign_key.codec": Format(
        (1,), f"{_FAMILIES}/joins/foreign_key/test_store.py::test_another_format_or_type_is_refused"
    ),
    "statelib.operators.suppress.codec": Format(
        (2, 3, 4),
        f"{_FAMILIES}/suppress/test_store.py::test_another_format_is_refused",
        f"{_FAMILIES}/suppress/test_store.py::test_a_store_stays_in_its_format",
    ),
    "statelib.operators.versioned.codec": Format(
        (1,), f"{_FAMILIES}/versioned/test_codec.py::test_another_format_is_refused"
    ),
    "statelib.operators.aggregation.accumulators.hyperloglog": Format(
        (1,), f"{_FAMILIES}/aggregation/accumulators/test_hyperloglog.py::test_other_sketches_are_refused"
    ),
    "statelib.operators.aggregation.accumulators.quantiles": Format(
        (1,), f"{_FAMILIES}/aggregation/accumulators/test_quantiles.py::test_what_cannot_be_is_refused"
    ),
    "statelib.operators.windows.codec": Format(
        (1, 2),
        f"{_FAMILIES}/windows/test_store.py::test_an_unknown_format_is_refused",
        f"{_FAMILIES}/windows/test_store.py::test_a_store_stays_in_its_format",
    ),
    "statelib.placement.process": Format((1,), "tests/placement/test_process.py::test_a_newer_format_is_refused"),
    "statelib.placement.holdings": Format(
        (1,), "tests/placement/test_holdings.py::test_a_position_that_cannot_be_read_is_none"
    ),
    "hindstream.kafka.published_position": Format(
        (1, 2),
        "tests/hindstream/kafka/test_published_position.py::test_a_newer_format_is_refused",
        "tests/hindstream/kafka/test_published_position.py::test_the_first_format_is_read",
    ),
    "hindstream.iceberg.position": Format(
        (1,), "tests/hindstream/iceberg/test_position.py::test_a_newer_format_is_refused"
    ),
    "hindstream.report.history": Format(
        (3,),
        "tests/hindstream/report/test_history.py::test_damage_anywhere_and_other_versions_are_an_empty_history",
        "tests/hindstream/report/test_history.py::test_damage_anywhere_and_other_versions_are_an_empty_history",
    ),
}
"""By the module that has the layout."""

WRITTEN = {"FORMAT_VERSION", "DIGEST", "SEAL", "BY_START", "BY_REFERENCE"}
"""Names of the constants that say which version is written."""


def defined(module: Path) -> set[str]:
    """The constants of `WRITTEN` that a module defines."""
    nodes = ast.parse(module.read_text(encoding="utf-8")).body
    targets = [
        target
        for node in nodes
        for target in (node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)])
    ]
    names = [name for target in targets for name in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return WRITTEN & {name.id for name in names if isinstance(name, ast.Name)}


def test_none_is_forgotten() -> None:
    modules = {path for package in PACKAGES for path in (ROOT / package).rglob("*.py") if defined(path)}
    assert {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in modules} == FORMATS.keys()


@pytest.mark.parametrize("name", FORMATS)
def test_the_version_that_is_written(name: str) -> None:
    module = importlib.import_module(name)
    (constant,) = defined(Path(str(module.__file__)))
    written = getattr(module, constant)
    assert (written.decode() if isinstance(written, bytes) else written) == FORMATS[name].versions[-1]


@pytest.mark.parametrize("name", FORMATS)
def test_each_is_shown(name: str) -> None:
    shown = FORMATS[name]
    for test in filter(None, (shown.newer, shown.former)):
        file, _, function = test.partition("::")
        code = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert function in {node.name for node in ast.walk(code) if isinstance(node, ast.FunctionDef)}, test
    assert shown.former or len(shown.versions) == 1
