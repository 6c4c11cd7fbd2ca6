"""The notebook: its cells run in their order, and again; its outputs are cleared."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOTEBOOK = json.loads((ROOT / "examples" / "first_answer.ipynb").read_text(encoding="utf-8"))
CODE = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def test_its_outputs_are_cleared() -> None:
    assert [(cell["outputs"], cell["execution_count"]) for cell in CODE] == [([], None)] * len(CODE)


@pytest.mark.spark
def test_its_cells_run_and_run_again(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "a_notebook"}
    monkeypatch.setitem(sys.modules, "a_notebook", ModuleType("a_notebook"))
    for again in (False, True):
        for cell in CODE:
            exec(compile("".join(cell["source"]), "first_answer.ipynb", "exec"), names)
        assert (names["result"].nothing_to_do is not None) == again
        latest = names["frame"].groupby(["key.key", "key.window_start"])["value.readings"].last()
        assert latest.sum() == 360  # each of 720 was sent twice
        assert names["result"].counts.duplicates == (0 if again else 360)
        assert len(names["state"]) > 0
        assert Path(names["result"].report).is_file()
