"""The functions of a recorded test, as tables: they answer what they answered in Java."""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib.columns.windowed import Windowed
from tests.peers.recording import NotExpressed, plain, type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class NeverCalled(Exception):
    """A function is called with what Kafka Streams has never called it with."""


class FailsInJava(Exception):
    """It failed there, too."""


class Table:
    """A function.

    Args:
        told: Its calls.
        of: What is made of its results.
    """

    def __init__(self, told: dict[str, Any], of: Callable[[Any], Any] = plain) -> None:
        if told.get("too_many"):
            raise NotExpressed("more calls than are recorded")
        self._kind = told["type"]
        self.__signature__ = Signature(
            [Parameter(f"_{number}", Parameter.POSITIONAL_ONLY) for number in range(_takes(told))]
        )
        self._results: dict[tuple[Any, ...], list[Any]] = {}
        self.seen: list[tuple[Any, ...]] = []
        for call in told["calls"]:
            result = FailsInJava(call["threw"]) if "threw" in call else of(call.get("is"))
            results = self._results.setdefault(arguments(call["of"]), [])
            results.append(result)
        for given, results in self._results.items():
            if all(type(one) is type(results[0]) and one == results[0] for one in results):
                self._results[given] = results[:1]

    def __call__(self, *given: Any) -> Any:
        """What it answered; of what it has answered differently, one after the other."""
        given = tuple(map(hashable, given))
        self.seen.append(given)
        if given not in self._results:
            raise NeverCalled(f"{self._kind}{given}: it was called with {list(self._results)[:6]}")
        results = self._results[given]
        result = results[0] if len(results) == 1 else results.pop(0)
        if isinstance(result, FailsInJava):
            raise result
        return result


_ARITIES = {"Initializer": 0, "ValueMapper": 1, "Function": 1, "Aggregator": 3, "Merger": 3, "ValueJoinerWithKey": 3}


def _takes(told: dict[str, Any]) -> int:
    return _ARITIES.get(told["type"], 2)


def arguments(told: Sequence[Any]) -> tuple[Any, ...]:
    """Those of a call."""
    return tuple(map(plain, told))


def hashable(value: Any) -> Any:
    """A value of the engine as a recording has it: a window in a struct is a `Windowed`."""
    if isinstance(value, dict) and set(value) == {"key", "window_start", "window_end"}:
        return Windowed(hashable(value["key"]), _ms(value["window_start"]), _ms(value["window_end"]))
    if isinstance(value, Windowed):
        return Windowed(hashable(value.key), value.window_start, value.window_end)
    return value


def _ms(time: Any) -> int:
    return time if isinstance(time, int) else round(time.timestamp() * 1000)


def results(told: dict[str, Any]) -> list[Any]:
    """What a function has answered, as recorded."""
    return [call.get("is") for call in told["calls"] if "threw" not in call]


def has_windowed_keys(told: dict[str, Any]) -> bool:
    """Whether its first argument is a key with a window."""
    return any(isinstance(call["of"][0], dict) and "windowed" in call["of"][0] for call in told["calls"])


def type_or_string(told: Sequence[Any]) -> pa.DataType:
    """The Arrow type of some values; of none at all that of texts."""
    return type_of(told) or pa.string()
