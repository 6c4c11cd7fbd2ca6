"""The file of a draft: imports, what fails where something is to be written, and the topology."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hindstream.porting.draft.statements import Recognised

_WIDTH = 110
_ALWAYS = {"Job", "StreamsBuilder"}

_PROCESSOR = '''
def todo_processor(what: str, of: Any = Processor) -> Any:
    """A processor that is left to write."""

    class Missing(of):
        def process(self, record: Any) -> None:
            raise NotImplementedError(f"left to write: {what}")

    return Missing


'''

_HEAD = '''"""{title}

Names, stores and topics are the application's. What its functions do is left to write: each todo() fails when a record
comes to it, and says which it is. A mapper is a path, an expression or a function: docs/operators/mappers.md.
pa.string() stands for a type of an aggregate or a store that has to be given.
"""

from __future__ import annotations

{imports}

def todo(what: str) -> Any:
    """A function that is left to write."""

    def missing(*_: Any) -> Any:
        raise NotImplementedError(f"left to write: {{what}}")

    return missing

{processor}builder = StreamsBuilder({quoted})

'''


def file_of(recognised: Recognised, name: str, optimization: str | None = None) -> str:
    """Its text; ``optimization``: see `hindstream.porting.draft.draft.draft`."""
    has_processors = any("todo_processor(" in line for line in recognised.lines)
    names = sorted((recognised.names | _ALWAYS | ({"Processor"} if has_processors else set())) - {"timedelta"})
    uses_time = any("timedelta(" in line for line in recognised.lines)
    imports = ["from datetime import timedelta"] if uses_time else []
    imports += ["from typing import Any", ""]
    if any("pa." in line for line in recognised.lines):
        imports += ["import pyarrow as pa", ""]
    imports += ["from hindstream import (", *(f"    {one}," for one in names), ")", ""]
    title = f"The first draft of a port: {name}."
    quoted = json.dumps(name)
    head = _HEAD.format(
        title=title, imports="\n".join(imports), quoted=quoted, processor=_PROCESSOR if has_processors else ""
    )
    how = ",".join(sorted(recognised.optimizations)) if optimization is None else optimization
    built = (
        f'builder.build({{"topology.optimization": {json.dumps(how)}}})'
        if how not in {"", "none"}
        else "builder.build()"
    )
    return head + "\n".join(map(wrapped, recognised.lines)) + f"\n\njob = Job({quoted}, {built})\n"


def wrapped(line: str) -> str:
    """A long statement with the arguments of its last call on lines of their own."""
    if len(line) <= _WIDTH or not line.endswith(")"):
        return line
    depth, begin, in_text = 0, 0, False
    for place, letter in enumerate(line):
        in_text ^= letter == '"'
        if not in_text:
            begin = place + 1 if letter == "(" and not depth else begin
            depth += (letter in "([{") - (letter in ")]}")
    if line[begin:-1].strip() == "":
        return line
    arguments = "".join(f"    {argument},\n" for argument in _arguments(line[begin:-1]))
    return f"{line[:begin]}\n{arguments})"


def _arguments(text: str) -> list[str]:
    """Split at the commas that are in no brackets and no text."""
    found, depth, in_text, begin = [], 0, False, 0
    for place, letter in enumerate(text):
        in_text ^= letter == '"'
        if in_text:
            continue
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            found.append(text[begin:place].strip())
            begin = place + 1
    return [*found, text[begin:].strip()]
