"""A recorded call of the DSL, with its arguments sorted by what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.peers import options
from tests.peers.options import kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from statelib import Materialized


class Call:
    """A call.

    Args:
        told: It.
        made: Gives what it is made on, and what earlier calls have made, by number.
        function: Gives a function of the test, as it was recorded.

    Attributes:
        told: It.
        method: The name of its method, in Java.
        of_class: That of the class that has it.
    """

    def __init__(
        self, told: dict[str, Any], made: Callable[[int, str], Any], function: Callable[[int], dict[str, Any]]
    ) -> None:
        self.told = told
        self.method: str = told["method"]
        self.of_class: str = told["class"]
        self._made = made
        self._function = function

    @property
    def on(self) -> Any:
        """What it is made on."""
        return self._made(self.told["on"], self.of_class)

    @property
    def texts(self) -> list[str]:
        """The texts among its arguments."""
        return [one for one in self.told["with"] if isinstance(one, str)]

    @property
    def functions(self) -> list[int]:
        """The numbers of the functions among them."""
        return [one["function"] for one in self.told["with"] if kind(one) == "function"]

    @property
    def function(self) -> dict[str, Any]:
        """The first function, as it was recorded."""
        return self._function(self.functions[0])

    @property
    def refs(self) -> list[Any]:
        """The streams and tables among them."""
        return [self._made(one["ref"], "") for one in self.told["with"] if kind(one) == "ref"]

    def listed(self) -> list[Any]:
        """The last list among them; empty if there is none."""
        lists: list[list[Any]] = [one["list"] for one in self.told["with"] if kind(one) == "list"]
        return lists[-1] if lists else []

    def option(self, name: str) -> dict[str, Any] | None:
        """The option of a class."""
        return next((one for one in self.told["with"] if kind(one) == name), None)

    def named(self) -> dict[str, Any]:
        """The ``Named`` by its name as an argument, if there is one that has a name."""
        named = options.named(self.option("Named"))
        return {} if named is None else {"named": named}

    def materialized(self) -> Materialized | None:
        """The ``Materialized``."""
        return options.materialized(self.option("Materialized"))

    def named_and_stored(self, name: str = "Named") -> dict[str, Any]:
        """Both; ``name``: the class of the option that has the node's name."""
        named, materialized = options.named(self.option(name)), self.materialized()
        given: Mapping[str, Any] = {"named": named, "materialized": materialized}
        return {name: option for name, option in given.items() if option is not None}
