"""A stream that is being split (Kafka's ``Branched`` and ``BranchedKStream``, KIP-418)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from statelib.calls import KafkasNames, arguments_checked
from statelib.calls.names import check_given_name
from statelib.errors.kinds import ConfigurationError
from statelib.operators.mappers.mapping import mapper
from statelib.operators.stateless.branch import Branch, Split

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib.dsl.internal_builder import InternalStreamsBuilder
    from statelib.dsl.options import Named
    from statelib.operators.mappers.mapping import MapperLike


Branch_ = TypeVar("Branch_")
"""A stream."""


@arguments_checked
@dataclass(frozen=True, slots=True)
class Branched(KafkasNames, Generic[Branch_]):
    """The name of a branch, and what to do with it (Kafka's ``Branched``).

    Attributes:
        name: The second part of the branch's name; the first is the split's name. None: the branch's number, counted
            from 1; the default branch has 0.
        function: Called with the branch. Its result replaces the branch in the split's result; if it is None, the
            branch is left out.
        consumer: Called with the branch, which is then left out of the split's result.
    """

    name: str | None = None
    function: Callable[[Branch_], Branch_ | None] | None = None
    consumer: Callable[[Branch_], None] | None = None

    def __post_init__(self) -> None:
        """Checks the name, as Kafka does (``Named.validate``)."""
        check_given_name(self.name, "a branch")

    @classmethod
    def as_(cls, name: str) -> Branched[Branch_]:
        """A branch whose name ends in ``name``."""
        return cls(name)

    @classmethod
    def with_function(cls, function: Callable[[Branch_], Branch_ | None], name: str | None = None) -> Branched[Branch_]:
        """A branch that the result of ``function`` replaces."""
        return cls(name, function=function)

    @classmethod
    def with_consumer(cls, consumer: Callable[[Branch_], None], name: str | None = None) -> Branched[Branch_]:
        """A branch that is passed to ``consumer``."""
        return cls(name, consumer=consumer)

    def with_name(self, name: str) -> Branched[Branch_]:
        """A copy with this name."""
        return replace(self, name=name)


@arguments_checked
class BranchedKStream(KafkasNames, Generic[Branch_]):
    """Kafka's ``BranchedKStream`` (KIP-418), made by `KStream.split`.

    Add branches with `branch`, then finish with `default_branch` or `no_default_branch`.

    Both return a dict of the branches by name: the split's name followed by the branch's (see `Branched`).

    Args:
        builder: Shared by all streams and tables of a topology.
        parent: The node of the stream that is split.
        named: The split's name.
        stream_of: Gives the stream of a branch's node.
    """

    def __init__(
        self,
        builder: InternalStreamsBuilder,
        parent: str,
        named: Named | None,
        *,
        stream_of: Callable[[str], Branch_],
    ) -> None:
        self._builder = builder
        self._stream_of = stream_of
        self._split = Split()
        name = builder.name_of(named, "KSTREAM-BRANCH")
        self._node = builder.add_processor(name, [parent], self._split)
        self._branches: dict[str, Branch_] = {}

    def branch(self, predicate: MapperLike, branched: Branched[Branch_] | None = None) -> BranchedKStream[Branch_]:
        """Adds a branch: the records for which ``predicate`` is true and which no earlier branch took.

        Raises:
            ConfigurationError: The split has its default branch already, so no records are left.
        """
        if self._split.has_default:
            raise ConfigurationError(
                "branch() is called after default_branch()",
                node=self._node,
                next_step="call default_branch() last",
            )
        self._split = replace(self._split, predicates=(*self._split.predicates, mapper(predicate)))
        number = len(self._split.predicates)
        self._add(number - 1, branched or Branched(), str(number))
        return self

    def default_branch(self, branched: Branched[Branch_] | None = None) -> dict[str, Branch_]:
        """Adds a branch for the records that no other branch took, and returns all branches by name."""
        self._split = replace(self._split, has_default=True)
        self._add(len(self._split.predicates), branched or Branched(), "0")
        return self._branches

    def no_default_branch(self) -> dict[str, Branch_]:
        """Returns all branches by name. Records that no branch took are dropped, and counted as ``unmatched``."""
        return self._branches

    def _add(self, number: int, branched: Branched[Branch_], numeral: str) -> None:
        self._builder.replace_spec(self._node, self._split)
        name = self._builder.name_of(self._node + (numeral if branched.name is None else branched.name), "")
        self._builder.add_processor(name, [self._node], Branch(number))
        branch = self._stream_of(name)
        if branched.consumer is not None:
            branched.consumer(branch)
            return
        result = branch if branched.function is None else branched.function(branch)
        if result is not None:
            self._branches[name] = result
