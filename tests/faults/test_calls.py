"""Where the system does not let system calls be followed, that is said."""

from __future__ import annotations

import ctypes
import struct
import sys
from pathlib import Path

import pytest

from tests.faults import calls
from tests.faults.calls import why_unsupported
from tests.faults.campaign import runner
from tests.faults.children import Child

pytestmark = pytest.mark.skipif(why_unsupported() is not None, reason=f"{why_unsupported()}")

PTRACE, PRCTL, SECCOMP = 101, 157, 22


def forbid(number: int, argument: int | None = None) -> None:
    """Has the kernel refuse a system call of this process from now on, as a container's policy does."""

    def instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("HBBI", code, if_true, if_false, value)

    load, equal, give, allow, refuse = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050001
    program = [instruction(load, 0), instruction(equal, number, 0, 3 if argument is not None else 1)]
    if argument is not None:
        program += [instruction(load, 16), instruction(equal, argument, 0, 1)]
    program += [instruction(give, refuse), instruction(give, allow)]
    filtered = calls._Program(len(program), b"".join(program))
    assert not calls._libc.prctl(38, 1, 0, 0, 0)
    assert not calls._libc.prctl(SECCOMP, 2, ctypes.byref(filtered), 0, 0)


def probed(number: int, argument: int | None = None) -> str | None:
    forbid(number, argument)
    why_unsupported.cache_clear()
    return why_unsupported()


def test_a_container_without_ptrace_says_so(tmp_path: Path) -> None:
    ended = Child(tmp_path, lambda: probed(PTRACE)).run()
    assert ended.value == (
        "system calls cannot be followed: ptrace: Operation not permitted; containers need the capability SYS_PTRACE"
    )


def test_a_container_without_seccomp_says_so(tmp_path: Path) -> None:
    ended = Child(tmp_path, lambda: probed(PRCTL, SECCOMP)).run()
    assert "no seccomp filter" in ended.value


def test_the_campaign_ends_with_what_is_in_the_way(tmp_path: Path) -> None:
    def work() -> tuple[int, str]:
        probed(PTRACE)
        sys.stderr = (tmp_path / "said").open("w")
        code = runner.main(["--quick"])
        sys.stderr.flush()
        return code, (tmp_path / "said").read_text()

    code, said = Child(tmp_path, work).run().value
    assert code == 2
    assert said.startswith("the campaign cannot run here: system calls cannot be followed")
