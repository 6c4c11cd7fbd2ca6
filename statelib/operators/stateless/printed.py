"""Prints the records of a stream (Kafka's ``Printed`` and ``PrintForeachAction``), for development."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from statelib.calls import KafkasNames, arguments_checked
from statelib.calls.names import check_given_name
from statelib.columns.windowed import Windowed
from statelib.operators.mappers.mapping import mapper
from statelib.operators.mappers.python_values import items_of
from statelib.operators.stateless.operator import keys_of

if TYPE_CHECKING:
    import pyarrow as pa

    from statelib.operators.mappers.mapping import MapperLike


@arguments_checked
@dataclass(frozen=True, slots=True)
class Printed(KafkasNames):
    """Where `KStream.print` prints records, and how (Kafka's ``Printed``).

    A line is ``[label]: key, value``, as in Kafka; keys and values are shown as Python shows them.

    Attributes:
        path: The file to which lines are added; None: standard output.
        label: None: the name of the node that is printed.
        text: A mapper that gives what comes behind the label; None: key and value.
        name: The name of the node.
    """

    path: str | None = None
    label: str | None = None
    text: MapperLike | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        """Checks the name, as Kafka does (``Named.validate``)."""
        check_given_name(self.name, "a node")

    @classmethod
    def to_sys_out(cls) -> Printed:
        """To standard output."""
        return cls()

    @classmethod
    def to_file(cls, path: str) -> Printed:
        """To a file of the machine that runs the task. Lines are added; Kafka begins the file anew."""
        return cls(path)

    def with_label(self, label: str) -> Printed:
        """A copy with this label before each record."""
        return replace(self, label=label)

    def with_key_value_mapper(self, text: MapperLike) -> Printed:
        """A copy that prints what the mapper gives, in place of key and value."""
        return replace(self, text=text)

    def with_name(self, name: str) -> Printed:
        """A copy whose node has this name."""
        return replace(self, name=name)


@dataclass(frozen=True, slots=True)
class PrintLines:
    """What ``foreach`` calls to print.

    Args:
        printed: Where and how.
        label: If it says none.
    """

    printed: Printed
    label: str

    def __call__(self, columns: pa.RecordBatch) -> None:
        """Prints the records of a batch."""
        text = self.printed.text
        if text is None:
            pairs = zip(keys_of(columns), items_of(columns["value"]), strict=True)
            texts = [f"{_shown(key)}, {value}" for key, value in pairs]
        else:
            texts = items_of(mapper(text).map(columns))
        label = self.label if self.printed.label is None else self.printed.label
        lines = "".join(f"[{label}]: {line}\n" for line in texts)
        if self.printed.path is None:
            sys.stdout.write(lines)
            sys.stdout.flush()
        else:
            with Path(self.printed.path).open("a", encoding="utf-8") as file:
                file.write(lines)


def _shown(key: object) -> object:
    """A windowed key as Kafka shows it."""
    return f"[{key.key}@{key.window_start}/{key.window_end}]" if isinstance(key, Windowed) else key
