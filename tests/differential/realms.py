"""Which sub-topologies a program's streams and tables are in, and what may meet (`tests.differential.generator`)."""

from __future__ import annotations


class Realms:
    """Realms are sub-topologies in the making: what meets makes one of two."""

    def __init__(self) -> None:
        self.circles = False
        """Whether repartition topics may form circles."""
        self._parent: list[int] = []  # of each realm, towards that which it was made one with
        self._externals: list[int] = []  # by realm: topics of the archive
        self._internals: list[int] = []  # by realm: repartition topics
        self._edges: set[tuple[int, int]] = set()  # repartition topics, from realm to realm

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._roots())

    @property
    def meets(self) -> bool:
        """Whether repartition topics meet other topics: those may have no order times in common."""
        return any(
            self._internals[root] and self._internals[root] + self._externals[root] > 1 for root in self._roots()
        )

    def source(self, topics: int = 1) -> int:
        """A new one, of topics of the archive."""
        return self._new(externals=topics, internals=0)

    def behind(self, realm: int) -> int:
        """A new one behind a repartition topic."""
        new = self._new(externals=0, internals=1)
        self._edges.add((realm, new))
        return new

    def is_fed_by_repartitions(self, realm: int) -> bool:
        """Whether it reads repartition topics."""
        return self._internals[self.root(realm)] > 0

    def root(self, realm: int) -> int:
        """What stands for all that were made one with it."""
        while self._parent[realm] != realm:
            realm = self._parent[realm]
        return realm

    def may_meet(self, one: int, other: int) -> bool:
        """Whether both may be made one: no circle, and no chance in the order of what comes together."""
        one, other = self.root(one), self.root(other)
        if one == other:
            return True
        return self._internals[one] + self._internals[other] <= 1 and (
            self.circles or not (self.leads(one, other) or self.leads(other, one))
        )

    def leads(self, start: int, end: int) -> bool:
        """Whether there is a way through repartition topics from one to the other."""
        seen, todo = set(), [self.root(start)]
        while todo:
            realm = todo.pop()
            for a, b in self._edges:
                if self.root(a) == realm and self.root(b) not in seen:
                    seen.add(self.root(b))
                    todo.append(self.root(b))
        return self.root(end) in seen

    def meet(self, one: int, other: int) -> int:
        """Makes one of both."""
        one, other = self.root(one), self.root(other)
        if one != other:
            self._parent[other] = one
            self._externals[one] += self._externals[other]
            self._internals[one] += self._internals[other]
        return one

    def _new(self, *, externals: int, internals: int) -> int:
        self._parent.append(len(self._parent))
        self._externals.append(externals)
        self._internals.append(internals)
        return len(self._parent) - 1

    def _roots(self) -> set[int]:
        return {self.root(realm) for realm in range(len(self._parent))}
