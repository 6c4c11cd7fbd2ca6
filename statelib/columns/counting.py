"""Distinct and repeated numbers, and sorting by small ones: in linear time, where numpy compares."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from statelib.kernels.compiled import Int32s, Int32sOut, Int64s, Int64sOut, compiled, i64, nothing

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EMPTY = -1
_GROUP_VALUES = 1 << 13
_CELLS_A_PAIR = 16
"""A cell that is empty takes some percent of what a step of a sort does."""
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@compiled(i64(Int64s, Int64sOut, Int64sOut, Int64sOut))
def _number(
    values: NDArray[np.int64], places: NDArray[np.int64], distinct: NDArray[np.int64], number: NDArray[np.int64]
) -> int:
    """Fills ``number``, and ``distinct`` as far as there are any; ``places``: an empty table of a power of two."""
    mask = len(places) - 1
    known: int = i64(0)
    for i in range(len(values)):
        value = values[i]
        place = i64((np.uint64(value) * _MULTIPLIER) >> _HALF) & mask
        while places[place] != _EMPTY and distinct[places[place]] != value:
            place = (place + 1) & mask
        if places[place] == _EMPTY:
            places[place] = known
            distinct[known] = value
            known += 1
        number[i] = places[place]
    return known


def distinct(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers the different values from 0, in the order in which they first come.

    Args:
        values: int64[n].

    Returns:
        int64: each value once; int64[n]: the number of each.
    """
    places = np.full(2 << len(values).bit_length(), _EMPTY)
    found, number = np.empty(len(values), np.int64), np.empty(len(values), np.int64)
    return found[: _number(values, places, found, number)], number


@compiled(i64(Int32s, Int32sOut, Int32sOut, Int32sOut))
def _renumber(
    numbers: NDArray[np.int32], new: NDArray[np.int32], found: NDArray[np.int32], renumbered: NDArray[np.int32]
) -> int:
    """Fills ``renumbered``, and ``found`` as far as there are any; ``new``: by number `_EMPTY`."""
    known: int = i64(0)
    for i in range(len(numbers)):
        number = numbers[i]
        if new[number] == _EMPTY:
            new[number] = known
            found[known] = number
            known += 1
        renumbered[i] = new[number]
    return known


def renumber(numbers: NDArray[np.int32], bound: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """As `distinct`, for numbers from 0 to less than ``bound`` (of the magnitude of n, or less); all int32."""
    found, renumbered = np.empty(min(bound, len(numbers)), np.int32), np.empty(len(numbers), np.int32)
    return found[: _renumber(numbers, np.full(bound, _EMPTY, np.int32), found, renumbered)], renumbered


@compiled(i64(Int64s, Int64sOut, Int64sOut))
def _collect_repeated(values: NDArray[np.int64], places: NDArray[np.int64], found: NDArray[np.int64]) -> int:
    """Writes a value to ``found`` each time that it comes again; ``places``: an empty table of a power of two."""
    mask = len(places) - 1
    again: int = i64(0)
    empties = i64(0)
    for value in values:
        if value == _EMPTY:
            empties += 1
            if empties > 1:
                found[again] = value
                again += 1
            continue
        place = i64((np.uint64(value) * _MULTIPLIER) >> _HALF) & mask
        while places[place] != _EMPTY and places[place] != value:
            place = (place + 1) & mask
        if places[place] == value:
            found[again] = value
            again += 1
        places[place] = value
    return again


@compiled(nothing(Int64s, i64, Int64sOut, Int64sOut))
def _group(values: NDArray[np.int64], bits: int, begin: NDArray[np.int64], grouped: NDArray[np.int64]) -> None:
    """A counting sort by ``bits`` of a hash; ``begin``: zeros, two more than groups; afterwards where each ends."""
    shift = np.uint64(64 - bits)
    for value in values:
        begin[i64((np.uint64(value) * _MULTIPLIER) >> shift) + 2] += 1
    for n in range(2, len(begin)):
        begin[n] += begin[n - 1]
    for value in values:
        group = i64((np.uint64(value) * _MULTIPLIER) >> shift) + 1
        grouped[begin[group]] = value
        begin[group] += 1


def repeated_numbers(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64: those of ``values`` (int64[n]) that are there more than once, each once, ascending.

    They are put into groups first, whose tables the processor's cache has room for.
    """
    bits = max((len(values) // _GROUP_VALUES).bit_length(), 1)
    ends, grouped = np.zeros((1 << bits) + 2, np.int64), np.empty(len(values), np.int64)
    _group(values, bits, ends, grouped)
    most = int(np.diff(ends[:-1]).max())
    places, found = np.empty(2 << most.bit_length(), np.int64), np.empty(most, np.int64)
    again: list[NDArray[np.int64]] = []
    for start, end in pairwise(ends[:-1]):
        table = places[: 2 << int(end - start).bit_length()]
        table.fill(_EMPTY)
        again.append(found[: _collect_repeated(grouped[start:end], table, found)].copy())
    return np.unique(np.concatenate(again))


@compiled(nothing(Int64s, Int64s, Int64sOut, Int64sOut))
def _sort(
    number: NDArray[np.int64], order: NDArray[np.int64], begin: NDArray[np.int64], ordered: NDArray[np.int64]
) -> None:
    """A counting sort of ``order``; ``begin``: zeros, two more than the greatest number."""
    for i in order:
        begin[number[i] + 2] += 1
    for n in range(2, len(begin)):
        begin[n] += begin[n - 1]
    for i in order:
        place = begin[number[i] + 1]
        ordered[place] = i
        begin[number[i] + 1] = place + 1


def sort_by(number: NDArray[np.int64], numbers: int, order: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """The order by ``number``; equal ones stay in the ``order`` that they have.

    Args:
        number: int64[n], from 0 to less than ``numbers``.
        numbers: Of the same magnitude as n, or less.
        order: int64[n], indices; None: as they come.

    Returns:
        int64[n], indices.
    """
    ordered = np.empty(len(number), np.int64)
    _sort(number, np.arange(len(number)) if order is None else order, np.zeros(numbers + 2, np.int64), ordered)
    return ordered


@compiled(nothing(Int64s, Int64s, i64, Int32sOut, Int64sOut))
def _read_off(
    major: NDArray[np.int64],
    minor: NDArray[np.int64],
    minors: int,
    grid: NDArray[np.int32],
    ordered: NDArray[np.int64],
) -> None:
    """Puts each index into the grid, where its numbers say, and reads them off; ``ordered``: one more than indices."""
    for i in range(len(major)):
        grid[major[i] * minors + minor[i]] = i
    found: int = i64(0)
    for i in grid:
        ordered[found] = i
        found += i != _EMPTY


def sort_pairs(major: NDArray[np.int64], majors: int, minor: NDArray[np.int64], minors: int) -> NDArray[np.int64]:
    """The order by two numbers, by the first one before the second.

    Args:
        major: int64[n], from 0 to less than ``majors``.
        majors: Of the same magnitude as n, or less.
        minor: int64[n], from 0 to less than ``minors``; no pair is there twice.
        minors: Of the same magnitude as n, or less.

    Returns:
        int64[n], indices.
    """
    if majors * minors > _CELLS_A_PAIR * len(major):
        return sort_by(major, majors, sort_by(minor, minors))
    ordered = np.empty(len(major) + 1, np.int64)
    _read_off(major, minor, minors, np.full(majors * minors, _EMPTY, np.int32), ordered)
    return ordered[:-1]
