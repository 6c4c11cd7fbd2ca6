"""The notebook: its cells run in their order, and again; its outputs are cleared."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import nbclient
import nbformat
import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = ROOT / "examples" / "first_answer.ipynb"
NOTEBOOK = json.loads(FILE.read_text(encoding="utf-8"))
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


@pytest.mark.slow
def test_a_kernel_shows_its_results_and_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kernels = tmp_path / "share" / "kernels" / "this"
    kernels.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernels / "kernel.json").write_text(json.dumps({"argv": command, "display_name": "this", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    shown: list[str] = []

    class Client(nbclient.NotebookClient):
        def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
            if msg["msg_type"] == "update_display_data":
                shown.append(msg["content"]["data"]["text/plain"])
            return super().process_message(msg, cell, cell_index)

    notebook = nbformat.read(FILE, as_version=4)
    Client(notebook, kernel_name="this", timeout=600).execute(cwd=str(tmp_path))
    outputs = {
        "".join(cell.source): [output.data for output in cell.outputs if "data" in output]
        for cell in notebook.cells
        if cell.cell_type == "code"
    }
    run = next(found for source, found in outputs.items() if source.startswith("result = hindstream.run("))
    assert any("<table" in data.get("text/html", "") for data in run)
    frame = next(found for source, found in outputs.items() if source.startswith("frame = "))
    assert "value.warmest" in frame[-1]["text/html"]
    assert any(text.startswith("replaying sensors: ") for text in shown)
    assert shown[-1] == "", "and it is gone afterwards"
