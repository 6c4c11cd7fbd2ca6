"""The command line as a user meets it: a process, what it prints, its exit code."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys

import pytest
import typer

from hindstream.demo import NAME
from statelib.settings.settings import Settings
from statelib.storage import Storage
from tests.command import hindstream, run
from tests.conftest import ROOT
from tests.hindstream.report.documents import FROM_2100, WINDOWS, make_run

COMMANDS = (
    "demo", "run", "backfill", "data-docs", "status", "describe", "estimate", "inspect", "explain", "settings",
    "plan", "replay", "audit", "commit", "publish", "maintain", "report", "release",
    "archive", "handover", "takeover", "doctor", "placement", "jobs", "topics", "show", "ingest", "init",
    "fork", "drop", "diff", "try", "repair", "promote", "views", "prove", "draft",
)  # fmt: skip
STATE_COMMANDS = ("list", "verify", "rollback", "rebuild", "republish", "lag", "clean")
MIGRATE_COMMANDS = ("plan", "run", "fill", "verify", "rollback")
CONTRACT_COMMANDS = ("import", "export")
TOPIC_COMMANDS = ("history", "restore", "compact")
SWITCH_COMMANDS = ("lag", "diff", "over")


def test_help_names_every_command(tmp_path) -> None:
    result = hindstream("--help", cwd=tmp_path)
    assert result.returncode == 0
    assert [name for name in COMMANDS if f"  {name} " not in result.stdout] == []
    assert "  state " in result.stdout
    assert "  migrate " in result.stdout


def test_help_of_every_command_has_an_example() -> None:
    from hindstream.cli.live.switch_commands import switch  # noqa: PLC0415
    from hindstream.cli.look.contract_commands import contract  # noqa: PLC0415
    from hindstream.cli.look.topic_commands import topic  # noqa: PLC0415
    from hindstream.cli.main import app  # noqa: PLC0415
    from hindstream.cli.mend.migrate_commands import migrate  # noqa: PLC0415
    from hindstream.cli.mend.state_commands import state  # noqa: PLC0415

    helps = {
        c.name or c.callback.__name__.replace("_", "-"): c.help or c.callback.__doc__ or ""
        for c in app.registered_commands
    }
    assert sorted(helps) == sorted(COMMANDS)
    assert [name for name, text in helps.items() if f"hindstream {name}" not in text] == []
    groups = (
        (state, STATE_COMMANDS),
        (migrate, MIGRATE_COMMANDS),
        (topic, TOPIC_COMMANDS),
        (contract, CONTRACT_COMMANDS),
        (switch, SWITCH_COMMANDS),
    )
    for group, of_group in groups:
        helps = {c.name: c.callback.__doc__ for c in group.registered_commands}
        assert sorted(helps) == sorted(of_group)
        example = f"Example: hindstream {group.info.name}"
        assert [name for name, text in helps.items() if example not in text] == []


def test_help_needs_neither_spark_nor_airflow_nor_the_engine(tmp_path) -> None:
    code = "import sys, hindstream.cli.main; print(*{m.partition('.')[0] for m in sys.modules})"
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert {"pyspark", "airflow", "great_expectations", "numba", "pyarrow", "deltalake"}.isdisjoint(loaded)


def test_the_version_is_that_of_the_package(tmp_path) -> None:
    result = hindstream("--version", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, f"hindstream {importlib.metadata.version('hindstream')}\n")


@pytest.mark.parametrize(
    ("words", "offered"),
    [("hindstream mai", {"maintain"}), ("hindstream state re", {"rebuild", "republish"})],
)
def test_a_shell_completes_commands_of_groups_too(words, offered, tmp_path) -> None:
    asked = {"_HINDSTREAM_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = run(sys.executable, "-c", _AS_INSTALLED, cwd=tmp_path, **asked)
    assert {*done.stdout.split()} == offered


_AS_INSTALLED = "import sys; sys.argv[0] = 'hindstream'; from hindstream.__main__ import main; main()"


def test_the_script_of_a_shell_s_completion_is_shown(tmp_path) -> None:
    command = [sys.executable, "-c", _AS_INSTALLED, "--show-completion"]
    shown = run("bash", "-c", '"$@"; exit $?', "bash", *command, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "_HINDSTREAM_COMPLETE=complete_bash" in shown.stdout
    assert subprocess.run(["bash", "-n"], input=shown.stdout, text=True, check=False).returncode == 0


def test_an_error_is_one_message_with_the_exit_code_of_its_kind(tmp_path) -> None:
    result = hindstream("status", "nobody", "--warehouse", "w", cwd=tmp_path)
    assert result.returncode == 78
    assert result.stdout == ""
    assert result.stderr.startswith("hindstream: the job has no runs (job nobody")
    assert result.stderr.count("\n") == 1


def test_debug_shows_the_traceback(tmp_path) -> None:
    result = hindstream("--debug", "status", "nobody", cwd=tmp_path)
    assert "Traceback" in result.stderr


def test_an_unknown_setting_is_refused_with_a_hint(tmp_path) -> None:
    result = hindstream("settings", "--set", "batch_record=5", cwd=tmp_path)
    assert result.returncode == 78
    assert "batch_records" in result.stderr


def test_settings_say_where_each_value_is_from(tmp_path) -> None:
    (tmp_path / "hindstream.toml").write_text('semantics = "kafka-4.3"\n')
    result = hindstream(
        "settings", "--warehouse", "w", "--set", "spark_conf.spark.executor.cores=2",
        cwd=tmp_path, HINDSTREAM_BATCH_RECORDS="1000",
    )  # fmt: skip
    shown = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert "command line" in shown["warehouse"]
    assert '{"spark.executor.cores": "2"}' in shown["spark_conf"]
    assert "HINDSTREAM_BATCH_RECORDS" in shown["batch_records"]
    assert "hindstream.toml" in shown["semantics"]
    assert shown["state_dir"].endswith("default")
    assert "root of all durable data" in result.stdout
    of_all = hindstream("settings", "--output", "json", cwd=tmp_path).stdout.splitlines()
    found = {setting["name"]: setting for setting in map(json.loads, of_all)}
    assert found.keys() == Settings.model_fields.keys()
    assert all(setting["description"] for setting in found.values())
    assert (found["semantics"]["value"], found["semantics"]["origin"]) == ("kafka-4.3", "file hindstream.toml")


def test_status_shows_runs_stores_and_open_windows(tmp_path) -> None:
    storage = Storage(str(tmp_path / "w"))
    make_run(storage, 1)
    make_run(storage, 2, passes=False)
    result = hindstream("status", NAME, "--warehouse", "w", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    for expected in ("00000001-1", "committed", "quarantined", "3/4", f"{WINDOWS:,}", "weather-by-origin", "36", "37"):
        assert expected in result.stdout


def test_status_says_that_a_job_is_sealed(tmp_path) -> None:
    make_run(Storage(str(tmp_path / "w")), 1, end_of_input="seal")
    result = hindstream("status", NAME, "--warehouse", "w", cwd=tmp_path)
    assert "committed, sealed" in result.stdout


def test_status_says_what_holds_the_job_back(tmp_path) -> None:
    make_run(Storage(str(tmp_path / "w")), 1, future_records=(FROM_2100,))
    result = hindstream("status", NAME, "--warehouse", "w", cwd=tmp_path)
    assert "flights, partition 0, offset 117 is stamped 2100-01-01T00:00:00.000Z: the slice ends" in result.stdout
    assert "set max_future" in result.stdout


@pytest.mark.parametrize("command", ["replay", "audit", "commit", "report"])
def test_a_phase_without_a_run_says_what_to_do_first(command, tmp_path) -> None:
    result = hindstream(command, "hindstream.demo.job:job", "--warehouse", "w", cwd=tmp_path)
    assert result.returncode == 78
    assert "hindstream plan" in result.stderr


def test_a_topology_is_described(tmp_path) -> None:
    result = hindstream("describe", "hindstream.demo.job:job", cwd=tmp_path)
    assert result.stdout.startswith("Topologies:\n   Sub-topology: 0\n    Source: ")
    assert "    Sink: " in result.stdout
    assert result.stdout.endswith("\n\n")


def test_a_job_of_a_module_in_the_current_directory_is_found(tmp_path) -> None:
    (tmp_path / "jobs").mkdir()
    shutil.copy(ROOT / "examples" / "page_views.py", tmp_path / "jobs" / "flow.py")
    described = hindstream("describe", "jobs.flow:job", cwd=tmp_path)
    assert described.stdout.startswith("Topologies:")
    as_installed = run(sys.executable, "-c", _AS_A_SCRIPT, "describe", "jobs.flow:job", cwd=tmp_path)
    assert as_installed.stdout == described.stdout


_AS_A_SCRIPT = f"""
import sys
sys.path[:] = [{str(ROOT)!r}, *filter(None, sys.path)]
sys.argv[0] = "hindstream"
from hindstream.__main__ import main
main()
"""


def test_planning_without_archives_says_so(tmp_path) -> None:
    result = hindstream("plan", "hindstream.demo.job:job", "--warehouse", "w", cwd=tmp_path)
    assert result.returncode == 78
    assert "no topic archive" in result.stderr


def test_ctrl_c_says_what_comes_next(tmp_path) -> None:
    (tmp_path / "job.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    ended = hindstream("describe", "job.py:job", cwd=tmp_path)
    assert ended.returncode == 130
    assert ended.stderr.strip() == "hindstream: interrupted. Next: run the same command again, it continues"


def test_no_number_of_rows_is_too_large() -> None:
    from hindstream.cli.main import app  # noqa: PLC0415

    limits = {
        name: option
        for name, command in typer.main.get_command(app).commands.items()
        for option in command.params
        if option.name == "limit"
    }
    assert {"diff", "explain", "inspect", "repair", "show", "try"} <= limits.keys()
    for option in limits.values():
        for given in (10**30, 3):
            assert option.callback(None, option, given) == min(given, sys.maxsize)
