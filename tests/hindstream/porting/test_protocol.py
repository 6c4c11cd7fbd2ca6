"""The bytes between both processes: version 1 is golden."""

from __future__ import annotations

import io

import pytest

from hindstream.porting.protocol import (
    Answer,
    Ended,
    Failed,
    Ready,
    Written,
    framed,
    naming,
    read_answer,
    read_ready,
    read_version,
    request,
)
from statelib.errors.kinds import InternalError


def test_what_asks_is_as_it_was() -> None:
    assert naming("a.B::c").hex() == "0100000006" + b"a.B::c".hex()
    records = [framed(0, 5, b"k", None, [("h", b"x"), ("n", None)]), framed(1, -1, None, b"")]
    asked = b"".join(request(["in", "é"], records)).hex()
    topics = "020000000200000002696e00000002c3a9"
    first = "000000000000000000000005000000016bffffffff00000002"
    headers = "00000001680000000178000000016effffffff"
    second = "00000001ffffffffffffffffffffffff0000000000000000"
    assert asked == topics + "00000002" + first + headers + second


def test_what_answers_is_read() -> None:
    read_version(io.BytesIO(bytes.fromhex("00000001")))
    processors = "00000001" + "00000005" + b"f\tF\tw".hex()
    ready = bytes.fromhex("010000000164" + "000000010000000161" + "0000000100000000" + processors)
    assert read_ready(io.BytesIO(ready)) == Ready("d", ("a",), ("",), {"f": ("F", "w")})
    record = "02000000016f000000030000000000000007000000016bffffffff000000010000000168ffffffff"
    answer = bytes.fromhex(record + "034008000000000000")
    assert read_answer(io.BytesIO(answer)) == Answer((Written("o", 3, 7, b"k", None, (("h", None),)),), 3)
    failed = bytes.fromhex(record + "00000000020000000145ffffffff00000000")
    assert read_answer(io.BytesIO(failed)) == Failed(2, "E", None, "")


def test_what_is_cut_off_or_of_another_version_is_no_answer() -> None:
    with pytest.raises(Ended):
        read_answer(io.BytesIO(b"\x02\x00\x00"))
    with pytest.raises(InternalError, match="the Java program speaks version 2, not 1"):
        read_version(io.BytesIO(bytes.fromhex("00000002")))
