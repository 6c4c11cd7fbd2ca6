"""What `docs/bucket-to-cluster.md` says is what happens: a real store, a Spark cluster, Airflow."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT
from tests.docs.bucket import MOST_HELD, answer, orders, place, recomputed, upload
from tests.docs.typed import follow

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = [pytest.mark.spark, pytest.mark.airflow, pytest.mark.long]

PAGE = ROOT / "docs" / "bucket-to-cluster.md"


def test_its_commands_print_what_it_says_and_its_answer_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "servers").mkdir()
    (tmp_path / "orders").mkdir()
    with place(tmp_path / "servers", monkeypatch) as servers:
        april = partial(upload, servers.s3, tmp_path / "april", orders(range(1_500, 2_000)))
        follow(
            PAGE,
            tmp_path / "orders",
            servers.environ,
            replaced=servers.replaced,
            situations={"Connect has added April": april},
        )
        found = answer(servers.s3)
    expected = recomputed(orders(range(2_000)))
    assert found.items() <= expected.items()
    assert 0 < len(expected) - len(found) <= MOST_HELD
