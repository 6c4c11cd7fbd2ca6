"""What `docs/prove.md` says of an application and its port is what happens."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from random import Random

import pytest

from hindstream.porting.compiler import compiled
from hindstream.porting.explained import CIRCLE, GLOBAL_TABLES, ON_PURPOSE, SEVERAL_TOPICS, SHIPPED
from hindstream.porting.maven import CENTRAL, Repository
from statelib.storage import Storage
from tests.conftest import ROOT
from tests.differential.kafka import PROJECT
from tests.docs.typed import follow
from tests.hindstream.porting.conftest import archive_topic
from tests.kafka.java_runtime import executable
from tests.kafka.maven import build

PAGE = ROOT / "docs" / "prove.md"
JANUARY_MS = 1_356_998_400_000
EVERY_MS = 60_000


@pytest.mark.long
@pytest.mark.slow
def test_its_commands_print_what_it_says(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (application,) = re.findall(r"^```java\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (port,) = re.findall(r"^```python\n# delays.py\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "delays.py").write_text(port)
    (tmp_path / "Delays.java").write_text(application)
    libraries = build(PROJECT) / "lib"
    (tmp_path / "lib").symlink_to(libraries)
    repository = Repository(CENTRAL, Path.home() / ".m2" / "repository", tmp_path / "cache")
    classes = compiled(tmp_path / "Delays.java", sorted(libraries.glob("*.jar")), executable(), repository)
    with zipfile.ZipFile(tmp_path / "delays.jar", "w") as jar:
        for file in classes.rglob("*.class"):
            jar.write(file, file.relative_to(classes))
    rng = Random(2013)
    rows = [
        (rng.choice(["EWR", "JFK", "LGA"]), rng.randrange(30), JANUARY_MS + EVERY_MS * n - rng.randrange(10 * EVERY_MS))
        for n in range(2_000)
    ]
    archive_topic(Storage(str(tmp_path / "warehouse")), "flights", rows)
    follow(page=PAGE, folder=tmp_path, environ={"HINDSTREAM_WAREHOUSE": "warehouse"})


def test_what_is_explained_is_in_the_tables_of_semantics() -> None:
    page = (ROOT / "docs" / "semantics.md").read_text(encoding="utf-8")
    shipped, replayed = page.split("## Where the two differ")[1].split("## Names")[0].split("## Where a replay differs")
    rows = [line.removeprefix("| ") for line in shipped.splitlines() if line.startswith("| ")][1:]
    unnamed = [row for row in rows if not any(row.startswith(reason.where) for reason in SHIPPED)]
    assert [row[:60] for row in unnamed] == ["versioned store: versions in a time range | those valid in t"]
    assert all(any(row.startswith(reason.where) for row in rows) for reason in SHIPPED)
    assert f"| {SEVERAL_TOPICS} |" in replayed
    for where in (*(reason.where for reason in ON_PURPOSE), CIRCLE, GLOBAL_TABLES):
        assert f"\n| {where}" in replayed
