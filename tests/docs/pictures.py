"""Makes the pictures of pages in docs/images anew: ``python -m tests.docs.pictures``.

It runs the demo, does what docs/versions.md says, and takes pictures of the pages with Chromium: of the upper part, on
a wide screen, in light colours. Those in Airflow are of the demo's own, with its history. Look at each before you
commit it; the command tells what a page has written to the browser's console.
"""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from tests.browser import BROWSER, browser
from tests.command import hindstream
from tests.hindstream.airflow.metadata import with_metadata
from tests.hindstream.airflow.page.api_server import api_server

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
MOST_BYTES = 150 << 10

_DELAYS = ("delays-by-hour", "JFK", "--window", "2013-01-01T23:00Z")
_CONSOLE = re.compile(r"CONSOLE.*")


@dataclass(frozen=True)
class Picture:
    """A picture of the upper part of a page.

    Attributes:
        name: Its file in docs/images.
        page: The page, below the folder that the demo has run in.
        height: In pixels.
    """

    name: str
    page: str
    height: int


PICTURES = (
    Picture("report.png", "demo-warehouse/jobs/flight-delays/reports/index.html", 1086),
    Picture("try.png", "try.html", 1390),
    Picture("explain.png", "explain.html", 620),
)

IN_AIRFLOW = {
    "airflow-dag.png": "/dags/flight-delays/plugin/hindstream",
    "airflow-run.png": "/dags/flight-delays/runs/{run}/plugin/hindstream_run",
}
"""Pages of Airflow, by the name of the picture."""

_IN_TAB = "document.querySelector('iframe')?.contentDocument?.querySelector('h1')?.innerText"
_SETTLES_S = 2


def make_pages(folder: Path) -> None:
    """The pages, by the commands of docs/versions.md."""
    changed, replaced = re.subn(
        r"(?m)^GRACE = .*", "GRACE = timedelta(hours=48)", (ROOT / "hindstream/demo/job.py").read_text()
    )
    assert replaced == 1
    (folder / "longer_grace.py").write_text(changed)
    _done(folder, "demo")
    compared = ("--against", "flight-delays", "--tolerance", "1e-9", "--page", "try.html")
    _done(folder, "try", "longer_grace.py:job", *compared, code=1)
    _done(folder, "explain", "hindstream.demo.job:job", *_DELAYS, "--page", "explain.html")


def _done(folder: Path, *arguments: str, code: int = 0) -> None:
    done = hindstream(
        *arguments, cwd=folder, HINDSTREAM_ENGINE="local", HINDSTREAM_WAREHOUSE="demo-warehouse", PYTHONPATH=str(ROOT)
    )
    if done.returncode != code:
        sys.exit(f"hindstream {' '.join(arguments)}:\n{done.stderr}")


def take(page: Path, image: Path, height: int) -> list[str]:
    """A picture of a page; what the page has written to the console."""
    if BROWSER is None:
        sys.exit("there is no chromium; on Debian: apt-get install chromium")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
    what = [f"--window-size=1200,{height}", f"--screenshot={image}", page.as_uri()]
    said = subprocess.run([BROWSER, *options, *what], capture_output=True, text=True, check=True)
    return _CONSOLE.findall(said.stderr)


def take_in_airflow(folder: Path) -> None:
    """Pictures of the reports beside the demo's DAG and its third run, in the Airflow in which it has run."""
    (database,) = folder.rglob("airflow.db")
    with closing(sqlite3.connect(database)) as connection:
        runs = [run_id for (run_id,) in connection.execute("select run_id from dag_run order by id")]
    (folder / "metadata").mkdir()
    with api_server(database.parent, **with_metadata(folder / "metadata")) as server, browser() as page:
        page.resize(1280, 900)
        page.log_in(server.address, server.tokens["viewer"])
        for name, address in IN_AIRFLOW.items():
            page.open(server.address + address.format(run=quote(runs[2], safe="")))
            page.wait(_IN_TAB)
            time.sleep(_SETTLES_S)  # the grid of runs comes later
            page.picture(IMAGES / name)


def main() -> None:
    """Makes all of them."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        make_pages(folder)
        for picture in PICTURES:
            image = IMAGES / picture.name
            _tell(image, take(folder / picture.page, image, picture.height))
        take_in_airflow(folder)
        for name in IN_AIRFLOW:
            _tell(IMAGES / name)


def _tell(image: Path, console: Sequence[str] = ()) -> None:
    print(f"{image.relative_to(ROOT)}: {image.stat().st_size >> 10} KiB", *console, sep="\n  ")
    if image.stat().st_size > MOST_BYTES:
        sys.exit(f"it is larger than {MOST_BYTES >> 10} KiB: make its height less")


if __name__ == "__main__":
    main()
