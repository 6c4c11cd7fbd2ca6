"""Another version takes a live application's place, and goes back: by the runbook's commands, while input flows."""

from __future__ import annotations

import doctest
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from hindstream.kafka.cluster import Cluster
from hindstream.kafka.live_outputs import progress
from hindstream.runs import open_warehouse
from statelib.commits import CommitLog
from statelib.job.job import load_job
from statelib.job.switch_over import load_switch_over
from statelib.settings.settings import load_settings
from tests.docs.blocks import RUNBOOKS, Typed, parts
from tests.docs.test_runbooks import typed_in
from tests.kafka.delays import FACTOR, Delays, write_jobs
from tests.kafka.maven import build

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from statelib.settings.settings import Settings
    from tests.kafka.broker import Broker

pytestmark = [pytest.mark.slow, pytest.mark.spark]

_LIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_SOME = 300


@pytest.fixture(scope="module", autouse=True)
def connector(spark: SparkSession) -> None:
    for jar in sorted((build() / "spark-jars").iterdir()):
        spark.sql(f"ADD JAR '{jar}'")


def settings_in(folder: Path, broker: Broker) -> Settings:
    """Those of a settings file that is written there."""
    servers = broker.settings["bootstrap.servers"]
    text = (
        f'warehouse = "{folder}/warehouse"\nstate_dir = "{folder}/state"\n[kafka]\n"bootstrap.servers" = "{servers}"\n'
    )
    (folder / "hindstream.toml").write_text(text)
    return load_settings(file=folder / "hindstream.toml", environ={})


def test_the_runbook(broker: Broker, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    settings = settings_in(tmp_path, broker)
    write_jobs(tmp_path / "jobs")
    delays, cluster = Delays(broker, tmp_path), Cluster(settings)
    delays.create_topics()
    apps = {name: ExitStack() for name in ("old", "shadow", "new", "again")}

    def the_shadow_is_comparable() -> None:
        job, switch = load_job("jobs/delays_2.py"), load_switch_over("jobs/delays_2.py")
        made = CommitLog(open_warehouse(settings), job.name).head()
        while (found := progress(cluster, job, switch, made)).comparable_ms < 60_000 or found.shadow.most > _SOME:
            feed.wait(_SOME)

    with delays.feed() as feed:

        def bring_about(situation: str) -> None:
            if situation == "the old application runs":
                apps["old"].enter_context(delays.app("delays-1"))
                feed.wait(_SOME)
            elif situation == "the shadow runs":
                apps["shadow"].enter_context(delays.app("shadow-delays-2", factor=FACTOR, outputs="shadow-"))
                the_shadow_is_comparable()
            elif situation == "the old application has stopped":
                apps["old"].close()
                feed.wait(_SOME)
            else:
                assert situation == "the new application has stopped"
                apps["shadow"].close()
                app = apps["new"].enter_context(delays.app("delays-2", factor=FACTOR))
                feed.wait(_SOME)
                app.catch_up()
                apps["new"].close()
                feed.wait(_SOME)

        for part in parts((RUNBOOKS / "switching-a-live-application.md").read_text().replace("\n   ", "\n")):
            if not isinstance(part, Typed):
                bring_about(part)
                continue
            code, printed = typed_in(part.command, monkeypatch)
            assert code == (1 if " diff " in part.command else 0), (part.command, printed)
            assert doctest.OutputChecker().check_output(part.printed, printed, _LIKE), f"{part.command}\n{printed}"
        app = apps["again"].enter_context(delays.app("delays-3"))
        feed.wait(_SOME)
    app.catch_up()
    apps["again"].close()
    delays.check_readers(3)
