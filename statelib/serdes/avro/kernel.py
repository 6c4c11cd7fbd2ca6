"""Reads Avro's binary encoding, driven by a small program that a schema is compiled into.

Each value that is read becomes an event, a number and the place in the schema that it is of; what is made of the events
is another's work (`statelib.serdes.avro.decode`). Every value takes at least a byte, so there are no more events than
bytes. Nothing is trusted: each length, index and count is checked before it is used.

A program is int64 words::

    END                                 the value is complete
    BOOLEAN, INT, LONG  place           event: the number
    FIXED               place, size     event: where the bytes begin (also floats and doubles)
    BYTES               place           event: where the bytes begin << 32 | how many
    ENUM                place, symbols  event: the index
    UNION               place, members, then for each member where its code begins     event: the index
    JUMP                to
    BLOCKS              place           begins an array or a map; event: how many items
    ITEM                past            the next item, whose code follows; if there is none goes on at ``past``

Source: the Avro specification 1.12, "Binary Encoding".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.kernels.compiled import Bytes, Int64s, Int64sOut, compiled, helper, i64

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

END, BOOLEAN, INT, LONG, FIXED, BYTES, ENUM, UNION, JUMP, BLOCKS, ITEM = range(11)

GOOD, TRUNCATED, TOO_LONG, INT_RANGE, NO_BOOLEAN, NEGATIVE_LENGTH, NO_MEMBER, NO_SYMBOL, TRAILING, BLOCK = range(10)
"""What is wrong with a value."""

FRAME_WORDS = 2
"""Words of the stack that an open array or map takes."""


@helper
def _read_long(data: NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """A number, and where it ends; negative: minus what is wrong."""
    number, shift = 0, 0
    while at < end:
        byte = int(data[at])
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) & 0x7FFFFFFFFFFFFFFF ^ -(number & 1), at
        shift += 7
        if shift > 63:
            return 0, -TOO_LONG
    return 0, -TRUNCATED


@helper
def _read_count(data: NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """How many items a block has, and where they begin; negative: minus what is wrong."""
    count, at = _read_long(data, at, end)
    if at >= 0 and count < 0:  # then the block's size in bytes follows
        count = -count
        size, at = _read_long(data, at, end)
        if at >= 0 and size < 0:
            return 0, -NEGATIVE_LENGTH
    if at >= 0 and (count < 0 or count > end - at):  # each item takes at least a byte
        return 0, -BLOCK
    return count, at


@helper
def _what_is_wrong(kind: int, number: int, left: int, choices: int) -> int:
    """What is wrong with a number that was read, or with the length of ``left`` bytes or less; `GOOD`: nothing."""
    if kind == LONG:
        return GOOD
    if kind == INT:
        return GOOD if number == (number << 32) >> 32 else INT_RANGE
    if kind == BYTES:
        return NEGATIVE_LENGTH if number < 0 else TRUNCATED if number > left else GOOD
    if number < 0 or number >= choices:
        return NO_SYMBOL if kind == ENUM else NO_MEMBER
    return GOOD


@helper
def _read_value(
    code: NDArray[np.int64],
    data: NDArray[np.uint8],
    at: int,
    end: int,
    stack: NDArray[np.int64],
    place: NDArray[np.int64],
    value: NDArray[np.int64],
    events: int,
) -> tuple[int, int, int]:
    """Reads ``data[at:end]``, the events behind the first ``events``.

    Returns:
        How many events there are, at which byte reading has ended, and what is wrong.
    """
    top, pc = 0, 0
    while True:
        kind = code[pc]
        if kind == END:
            return events, at, GOOD if at == end else TRAILING
        if kind == JUMP:
            pc = code[pc + 1]
        elif kind == FIXED:
            if end - at < code[pc + 2]:
                return events, at, TRUNCATED
            place[events], value[events] = code[pc + 1], at
            events += 1
            at += code[pc + 2]
            pc += 3
        elif kind == BOOLEAN:
            if at >= end or data[at] > 1:
                return events, at, TRUNCATED if at >= end else NO_BOOLEAN
            place[events], value[events] = code[pc + 1], data[at]
            events += 1
            at += 1
            pc += 2
        elif kind == BLOCKS:
            stack[top], stack[top + 1] = events, 0
            top += FRAME_WORDS
            place[events], value[events] = code[pc + 1], 0
            events += 1
            pc += 2
        elif kind == ITEM:
            if stack[top - 1] == 0:
                count, after = _read_count(data, at, end)
                if after < 0:
                    return events, at, -after
                at = after
                if count == 0:
                    top -= FRAME_WORDS
                    pc = code[pc + 1]
                    continue
                value[stack[top - 2]] += count
                stack[top - 1] = count
            stack[top - 1] -= 1
            pc += 2
        else:
            number, after = _read_long(data, at, end)
            if after < 0:
                return events, at, -after
            problem = _what_is_wrong(kind, number, end - after, code[pc + 2])
            if problem != GOOD:
                return events, at, problem
            if kind == BYTES:
                place[events], value[events] = code[pc + 1], after << 32 | number
                at = after + number
            else:
                place[events], value[events] = code[pc + 1], number
                at = after
            events += 1
            if kind == UNION:
                pc = code[pc + 3 + number]
            else:
                pc += 3 if kind == ENUM else 2


@compiled(i64(Int64s, Bytes, Int64s, Int64s, Int64sOut, Int64sOut, Int64sOut, Int64sOut, Int64sOut))
def read_events(
    code: NDArray[np.int64],
    data: NDArray[np.uint8],
    start: NDArray[np.int64],
    length: NDArray[np.int64],
    stack: NDArray[np.int64],
    place: NDArray[np.int64],
    value: NDArray[np.int64],
    wrong: NDArray[np.int64],
    wrong_at: NDArray[np.int64],
) -> int:
    """Reads ``data[start[i]:][:length[i]]`` for each ``i``; a value that is wrong leaves no events.

    Args:
        code: The program.
        data: All values' bytes.
        start: int64[n].
        length: int64[n].
        stack: `FRAME_WORDS` for each array or map that can be open at a time.
        place: Written: int64[at least the sum of ``length``].
        value: Written, of the same length.
        wrong: Written, int64[n]: `GOOD` or what is wrong.
        wrong_at: Written, int64[n]: at which byte of the value.

    Returns:
        How many events there are.
    """
    events = 0
    for row in range(len(start)):
        end = start[row] + length[row]
        more, at, problem = _read_value(code, data, start[row], end, stack, place, value, events)
        wrong[row], wrong_at[row] = problem, at - start[row]
        if problem == GOOD:
            events = more
    return events


@helper
def _stands_at(data: NDArray[np.uint8], at: int, wanted: NDArray[np.uint8]) -> bool:
    for index in range(len(wanted)):  # noqa: SIM110 - compiled
        if data[at + index] != wanted[index]:
            return False
    return True


@compiled(i64(Int64s, Bytes, i64, Bytes, Bytes, Int64sOut, Int64sOut, Int64sOut, Int64sOut, Int64sOut, Int64sOut))
def read_ends(
    code: NDArray[np.int64],
    data: NDArray[np.uint8],
    at: int,
    head: NDArray[np.uint8],
    separator: NDArray[np.uint8],
    stack: NDArray[np.int64],
    place: NDArray[np.int64],
    value: NDArray[np.int64],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    stopped: NDArray[np.int64],
) -> int:
    """Finds where values end that lie one behind the other, each with ``head`` before it and ``separator`` behind it.

    Args:
        code: The program.
        data: The values.
        at: Where the first one begins.
        head: What each begins with; not a part of what the program reads.
        separator: What stands behind each.
        stack: See `read_events`.
        place: Room, int64[the length of ``data``].
        value: The same.
        start: Written, int64[the length of ``data``]: where each value begins, its head included.
        end: Written, of the same length: where it ends.
        stopped: Written, int64[2]: where the first value begins that is none of these, and what is wrong there:
            `GOOD` if it has another head, or if there is none.

    Returns:
        How many values there are.
    """
    found = 0
    stopped[1] = GOOD
    while at < len(data) and at + len(head) <= len(data):
        if not _stands_at(data, at, head):
            break
        _, ends, problem = _read_value(code, data, at + len(head), len(data), stack, place, value, 0)
        if problem not in (GOOD, TRAILING):
            stopped[1] = problem
            break
        if ends + len(separator) > len(data):
            stopped[1] = TRUNCATED
            break
        if not _stands_at(data, ends, separator):
            stopped[1] = TRAILING
            break
        start[found], end[found] = at, ends
        found += 1
        at = ends + len(separator)
    stopped[0] = at
    return found
