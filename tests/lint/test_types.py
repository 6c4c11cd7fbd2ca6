"""What the API's types promise, a type checker sees."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

FACES = ("hindstream", "hindstream.airflow", "hindstream.kafka", "hindstream.spark", "hindstream.testing", "statelib")
BUFFERS = """\
from datetime import timedelta

from hindstream import BufferConfig, Suppressed

wait = timedelta(seconds=30)
eager = BufferConfig.max_records(1_000).with_max_bytes(5_000_000)
strict = eager.spill_to_disk_when_full().with_max_records(2_000)
Suppressed.until_window_closes(BufferConfig.unbounded())
Suppressed.until_window_closes(eager.with_no_bound())
Suppressed.until_window_closes(eager.shut_down_when_full())
Suppressed.until_window_closes(strict)
Suppressed.until_time_limit(wait, eager)
Suppressed.until_time_limit(wait, strict, clock="last").with_name("calm")
Suppressed.until_window_closes(eager)  # refused
Suppressed.until_window_closes(BufferConfig.max_bytes(1))  # refused
Suppressed.until_window_closes(strict.emit_early_when_full())  # refused
Suppressed.until_time_limit(wait, eager, clock="wall")  # refused
"""
PROCESSORS = """\
from hindstream import FixedKeyProcessor, Named, Processor, StreamsBuilder

stream = StreamsBuilder("app").stream("in")
stream.process(Processor, Named.as_("own"), "store", "other")
stream.process(Processor, Named.as_("own"))
stream.process(Processor, "store", named=Named.as_("own")).process_values(FixedKeyProcessor, "store")
stream.process_values(FixedKeyProcessor, Named.as_("own"), "store")
stream.process(Processor, 5)  # refused
stream.process_values(FixedKeyProcessor, Named.as_("own"), b"store")  # refused
"""


def checked(module: Path) -> str:
    mypy = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(module)]
    return subprocess.run(mypy, text=True, capture_output=True, cwd=ROOT, check=False).stdout


def test_a_strict_buffer_is_required_where_the_kip_requires_it(tmp_path: Path) -> None:
    module = tmp_path / "buffers.py"
    module.write_text(BUFFERS, encoding="utf-8")
    found = checked(module)
    refused = [number for number, line in enumerate(BUFFERS.splitlines(), 1) if "refused" in line]
    assert [int(number) for number in re.findall(r":(\d+): error", found)] == refused, found
    assert found.count('expected "StrictBufferConfig"') == 3


def test_a_processors_name_stands_where_kafka_has_it(tmp_path: Path) -> None:
    module = tmp_path / "processors.py"
    module.write_text(PROCESSORS, encoding="utf-8")
    found = checked(module)
    refused = [number for number, line in enumerate(PROCESSORS.splitlines(), 1) if "refused" in line]
    assert [int(number) for number in re.findall(r":(\d+): error", found)] == refused, found


def test_each_name_that_is_imported_has_a_type_and_a_misspelt_one_is_refused(tmp_path: Path) -> None:
    lines = ["import hindstream", "version: str = hindstream.__version__"]
    for face in FACES:
        for name in importlib.import_module(face).__all__:
            own = f"{face}.{name}".replace(".", "_")
            lines += [f"from {face} import {name} as {own}", f"reveal_type({own})"]
    right = len(lines)
    lines += [f"from {face} import Misspelt as {face.replace('.', '_')}_Misspelt" for face in FACES]
    lines += ["hindstream.Misspelt"]
    module = tmp_path / "faces.py"
    module.write_text("\n".join(lines), encoding="utf-8")
    found = checked(module)
    refused = [int(number) for number in re.findall(r":(\d+): error", found)]
    assert refused == [*range(right + 1, len(lines) + 1)], found
    types = re.findall(r'Revealed type is "(.*)"', found)
    assert len(types) == (right - 2) // 2
    assert [revealed for revealed in types if revealed in {"Any", "object"}] == []
