"""The notebook: its cells run in a kernel, in their order, and again; its outputs are cleared."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import nbclient
import nbformat
import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

FILE = ROOT / "examples" / "first_answer.ipynb"
CHECKS = """
from pathlib import Path

latest = frame.groupby(["key.key", "key.window_start"])["value.readings"].last()
assert latest.sum() == 360, "each of 720 was sent twice"
assert len(state) > 0
assert Path(result.report).is_file()
"""
FIRST = "assert (result.nothing_to_do, result.counts.duplicates) == (None, 360)"
AGAIN = "assert (result.nothing_to_do is not None, result.counts.duplicates) == (True, 0)"


class Client(nbclient.NotebookClient):
    """Keeps what displays show one after the other, not only the last of it."""

    shown: list[str]

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        if msg["msg_type"] == "update_display_data":
            self.shown.append(msg["content"]["data"]["text/plain"])
        return super().process_message(msg, cell, cell_index)


def code_of(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_its_outputs_are_cleared() -> None:
    code = code_of(nbformat.read(FILE, as_version=4))
    assert [(cell.outputs, cell.execution_count) for cell in code] == [([], None)] * len(code)


@pytest.mark.long
@pytest.mark.slow
def test_its_cells_run_in_a_kernel_and_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tmp_path / "share" / "kernels" / "this"
    kernel.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": command, "display_name": "this", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook, second = (nbformat.read(FILE, as_version=4) for _ in range(2))
    first_cells = code_of(notebook)
    checks = [nbformat.v4.new_code_cell(CHECKS + each) for each in (FIRST, AGAIN)]
    notebook.cells = [*first_cells, checks[0], *code_of(second), checks[1]]
    client = Client(notebook, kernel_name="this", timeout=600)
    client.shown = []
    client.execute(cwd=str(tmp_path))
    outputs = {cell.source: [output.data for output in cell.outputs if "data" in output] for cell in first_cells}
    run = next(found for source, found in outputs.items() if source.startswith("result = hindstream.run("))
    assert any("<table" in data.get("text/html", "") for data in run)
    frame = next(found for source, found in outputs.items() if source.startswith("frame = "))
    assert "value.warmest" in frame[-1]["text/html"]
    assert any(text.startswith("replaying sensors: ") for text in client.shown)
    assert client.shown[-1] == "", "and it is gone afterwards"
