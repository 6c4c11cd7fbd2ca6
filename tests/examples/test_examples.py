"""The examples do what the guides say."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
import sys
import time
from pathlib import Path

import pytest

from hindstream import Job, load_job
from hindstream.spark.phases.task_work import stages_of
from statelib.commits import NothingToDo, commit, plan, publish, record_audit, stage
from statelib.commits.archives import open_archive
from statelib.documents.manifests import Audit
from statelib.settings.settings import load_settings
from statelib.storage import Storage
from statelib.task import replay_here
from tests.command import run

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "page_views.py"


def test_the_job_in_the_readme_can_be_built() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    assert isinstance(names["job"], Job)


@pytest.mark.slow
def test_the_commands_of_the_readme_run_one_after_the_other(tmp_path: Path) -> None:
    """In an empty warehouse, as a newcomer types them."""
    (block,) = re.findall(r"```\n(\./dev run python examples/.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for line in block.splitlines():
        program, *arguments = shlex.split(line.removeprefix("./dev run "), comments=True)
        command = {"python": [sys.executable], "hindstream": [sys.executable, "-m", "hindstream"]}[program]
        ran = run(*command, *arguments, cwd=tmp_path, HINDSTREAM_ENGINE="local")
        assert ran.returncode == 0, ran.stderr


def test_links_in_the_guides_lead_somewhere() -> None:
    for guide in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]:
        links = re.findall(r"\]\(([^)#:]+)\)", guide.read_text(encoding="utf-8"))
        assert [link for link in links if not (guide.parent / link).exists()] == []


def test_page_views(tmp_path, capsys) -> None:
    folder = str(tmp_path / "warehouse")
    example = runpy.run_path(str(EXAMPLE))
    example["main"](folder)
    example["main"](folder)
    assert capsys.readouterr().out.startswith("archived 390 records")

    warehouse = Storage(folder)
    job = load_job(f"{EXAMPLE}:job")
    planned = plan(job, warehouse, now_ms=0)
    assert not isinstance(planned, NothingToDo)
    settings = load_settings({"warehouse": folder, "state_dir": str(tmp_path / "state")}, environ={})
    stages = stages_of(job, planned, warehouse, settings)
    staged = stage(warehouse, planned, replay_here(stages, planned, attempt="0", clock=time.perf_counter))
    record_audit(warehouse, planned, Audit(run_id=planned.run_id, success=True, checks=(), data_docs=None, seconds=0.0))
    commit(warehouse, planned, now_ms=0)
    publish(warehouse, job.name)

    accounts: dict[str, int] = {}
    for task in staged.tasks:
        for metrics in task.metrics.values():
            for name, records in metrics.accounts.items():
                accounts[name] = accounts.get(name, 0) + records
    archive = open_archive(warehouse, "views-by-minute")
    minutes = [row for p in range(2) for row in archive.reader(p).read_all().to_pylist()]
    assert accounts["duplicate"] == 30
    assert accounts["late"] == 7
    assert sum(row["value"]["views"] for row in minutes) < 360 - 7  # the last minutes are still open
    assert len({(row["key"]["key"], row["key"]["window_start"]) for row in minutes}) == len(minutes) > 100
