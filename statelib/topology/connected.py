"""What hangs together by ties, directly or by way of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def connected(ties: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Groups of members that hang together; the members of each, and the groups by their first one, in order.

    Args:
        ties: By member, what it is tied to: other members, or something that only others may be tied to as well.
    """
    above: dict[str, str] = {}

    def root(name: str) -> str:
        while above.setdefault(name, name) != name:
            name = above[name]
        return name

    for member, others in ties.items():
        for other in others:
            above[root(other)] = root(member)
    groups: dict[str, list[str]] = {}
    for member in ties:
        groups.setdefault(root(member), []).append(member)
    return list(groups.values())
