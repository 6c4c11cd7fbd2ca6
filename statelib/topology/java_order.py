"""The orders in which Java's collections give texts: Kafka Streams prints nodes and stores as they come.

``HashMap`` gives its keys by the lowest bits of their hashes. ``TreeSet`` gives its elements in order, but Kafka
Streams compares nodes by a number that still grows while they are put in; then it is the tree's shape that decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_LEAST_CAPACITY = 16
_LOAD = 0.75


def hash_code(text: str) -> int:
    """Java's ``String.hashCode()`` of ASCII, as an unsigned number of 32 bits."""
    code = 0
    for letter in text:
        code = (31 * code + ord(letter)) & 0xFFFFFFFF
    return code


def in_hash_order(texts: Iterable[str]) -> list[str]:
    """The order in which a ``HashSet`` gives texts that were added to it one by one, in this order."""
    distinct = list(dict.fromkeys(texts))
    capacity = _LEAST_CAPACITY
    while len(distinct) > capacity * _LOAD:
        capacity *= 2
    return sorted(distinct, key=lambda text: _spread(hash_code(text)) & (capacity - 1))


def copied_in_hash_order(texts: Sequence[str]) -> list[str]:
    """The order in which ``new HashSet<>(set)`` gives the texts of a set that gives them in this order."""
    capacity = _LEAST_CAPACITY
    while capacity < int(len(texts) / _LOAD) + 1:
        capacity *= 2
    return sorted(texts, key=lambda text: _spread(hash_code(text)) & (capacity - 1))


def _spread(code: int) -> int:
    return code ^ (code >> 16)


@dataclass(slots=True, eq=False)
class _Entry:
    text: str
    parent: _Entry | None
    left: _Entry | None = None
    right: _Entry | None = None
    is_black: bool = True


class TreeSet:
    """Java's ``TreeSet``, of which one can only add to and list the elements.

    Args:
        compare: Negative where the first comes before the second. It may give another answer later.
    """

    def __init__(self, compare: Callable[[str, str], int]) -> None:
        self._compare = compare
        self._root: _Entry | None = None

    def __iter__(self) -> Iterator[str]:
        """The elements, from the left of the tree to its right."""
        path: list[_Entry] = []
        entry = self._root
        while path or entry is not None:
            while entry is not None:
                path.append(entry)
                entry = entry.left
            entry = path.pop()
            yield entry.text
            entry = entry.right

    def add(self, text: str) -> None:
        """Adds an element, unless one that is equal is found where it would be."""
        if self._root is None:
            self._root = _Entry(text, None)
            return
        entry: _Entry | None = self._root
        above, order = self._root, 0
        while entry is not None:
            above, order = entry, self._compare(text, entry.text)
            if order == 0:
                return
            entry = entry.left if order < 0 else entry.right
        new = _Entry(text, above)
        if order < 0:
            above.left = new
        else:
            above.right = new
        self._balance(new)

    def _balance(self, new: _Entry) -> None:
        """``TreeMap.fixAfterInsertion``: a red entry has no red child, and all ways down have as many black ones."""
        new.is_black = False
        entry = new
        while (parent := entry.parent) is not None and not parent.is_black:
            grandparent = parent.parent
            if grandparent is None:  # the root is black
                break
            is_left = parent is grandparent.left
            uncle = grandparent.right if is_left else grandparent.left
            if uncle is not None and not uncle.is_black:
                parent.is_black = uncle.is_black = True
                grandparent.is_black = False
                entry = grandparent
                continue
            if entry is (parent.right if is_left else parent.left):
                entry, parent = parent, entry
                self._rotate(entry, to_left=is_left)
            parent.is_black, grandparent.is_black = True, False
            self._rotate(grandparent, to_left=not is_left)
        if self._root is not None:
            self._root.is_black = True

    def _rotate(self, entry: _Entry, *, to_left: bool) -> None:
        """Puts the right child (``to_left``), or the left one, in the place of an entry, and the entry below it."""
        child = entry.right if to_left else entry.left
        if child is None:
            return
        moved = child.left if to_left else child.right
        if to_left:
            entry.right, child.left = moved, entry
        else:
            entry.left, child.right = moved, entry
        if moved is not None:
            moved.parent = entry
        child.parent = entry.parent
        if entry.parent is None:
            self._root = child
        elif entry is entry.parent.left:
            entry.parent.left = child
        else:
            entry.parent.right = child
        entry.parent = child
