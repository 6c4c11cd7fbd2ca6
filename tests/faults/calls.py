"""A process whose file system calls are seen one by one, before they are carried out and after: by ptrace, on Linux.

All that a process leaves on a disk it leaves by system calls, whichever library makes them: Python, RocksDB, Arrow,
delta-rs. So a kill before the n-th of them is any moment that makes a difference, and an error instead of it is what a
disk that is full at this very write would say. A seccomp filter stops the process at calls that change files, and lets
all others pass at full speed.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import sys
import tempfile
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

# Numbers of x86-64's system calls, and where their arguments have the path (P), its directory (D) or a descriptor (F).
_CALLS = {
    1: ("write", "F"), 18: ("pwrite64", "F"), 20: ("writev", "F"), 40: ("sendfile", "F"), 285: ("fallocate", "F"),
    296: ("pwritev", "F"), 328: ("pwritev2", "F"), 326: ("copy_file_range", "--F"), 77: ("ftruncate", "F"),
    74: ("fsync", "F"), 75: ("fdatasync", "F"), 2: ("open", "P"), 257: ("open", "DP"), 85: ("creat", "P"),
    83: ("mkdir", "P"), 258: ("mkdir", "DP"), 84: ("rmdir", "P"), 87: ("unlink", "P"), 263: ("unlink", "DP"),
    82: ("rename", "PP"), 264: ("rename", "DPDP"), 316: ("rename", "DPDP"), 86: ("link", "PP"), 265: ("link", "DPDP"),
    88: ("symlink", "-P"), 266: ("symlink", "-DP"), 76: ("truncate", "P"),
}  # fmt: skip
WRITES = frozenset({"write", "pwrite64", "writev", "sendfile", "pwritev", "pwritev2", "copy_file_range", "fallocate"})
NEEDS_SPACE = WRITES | {"open", "creat", "mkdir", "link", "rename", "symlink"}
NEEDS_PERMISSION = frozenset({"open", "creat", "mkdir", "rmdir", "unlink", "rename", "link", "symlink", "truncate"})
SYNCS = frozenset({"fsync", "fdatasync"})

_FLAGS_AT = {2: 1, 257: 2}
_CHANGES = os.O_CREAT | os.O_WRONLY | os.O_RDWR | os.O_TRUNC
_AT_REMOVEDIR = 0x200
_AT_FDCWD = -100 & 0xFFFFFFFF

_TRACEME, _CONT, _GETREGS, _SETREGS, _SYSCALL, _SETOPTIONS = 0, 7, 12, 13, 24, 0x4200
_OPTIONS = 0x1 | 0x2 | 0x4 | 0x8 | 0x80 | 0x100000  # syscall stops, fork, vfork, clone, seccomp; killed with the tracer
_EVENT_SECCOMP = 7
_SYSCALL_STOP = signal.SIGTRAP | 0x80
_WALL = 0x40000000
_REGISTERS = struct.Struct("27Q")
_RAX, _ORIG_RAX = 10, 15
_ARGUMENTS = (14, 13, 12, 7, 9, 8)
_PAGE = 4096


class Kill(Enum):
    """What an observer answers to end the process here, with SIGKILL."""

    HERE = 0


@dataclass(slots=True)
class Call:
    """A call that changes files below the root.

    Attributes:
        name: As in ``man 2``, without the differences between ``rename`` and ``renameat``.
        path: What it is about; of a descriptor the file that it stands for.
        target: The second path, of ``rename`` and ``link``.
        status: Of a descriptor's file, at the call; None: the call has no descriptor.
        arguments: All six, as they are.
        flags: Of ``open``.
        removes_directory: Of ``unlink``.
    """

    name: str
    path: str
    target: str | None
    status: os.stat_result | None
    arguments: tuple[int, ...]
    flags: int = 0
    removes_directory: bool = False


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = (ctypes.c_ulong, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_libc.ptrace.restype = ctypes.c_long


@cache
def why_unsupported() -> str | None:
    """Why system calls cannot be followed here, which is tried once; None: they can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return "system calls are followed on Linux and x86-64 only"
    seen: list[str] = []
    with tempfile.TemporaryDirectory(prefix="hindstream-probe-") as folder:
        root = Path(folder)

        def work() -> int:
            (root / "probe").mkdir()
            return 0

        try:
            code = traced(work, root, lambda call: seen.append(call.name))
        except OSError as error:
            return f"system calls cannot be followed: {error.strerror}; containers need the capability SYS_PTRACE"
    if code or seen != ["mkdir"]:
        return "system calls cannot be followed: no seccomp filter can be installed, or its stops are not seen"
    return None


def traced(
    work: Callable[[], int],
    root: Path,
    before: Callable[[Call], Kill | int | None],
    after: Callable[[Call, int], None] | None = None,
) -> int:
    """Runs ``work`` in a fork of this process, which should have one thread only.

    Args:
        work: Gives the exit code.
        root: Calls about other files are not told.
        before: Told of each call before it is carried out. It answers None: go on; an errno: fail with that instead;
            `Kill.HERE`.
        after: Told of each call that was carried out, with its result.

    Returns:
        The exit code; negative: the signal that has ended it.

    Raises:
        OSError: The system does not allow it.
    """
    child = os.fork()
    if child == 0:
        _work_as_tracee(work)
    return _Tracer(child, str(root.resolve()), before, after).run()


def _work_as_tracee(work: Callable[[], int]) -> NoReturn:
    try:
        _ptrace(_TRACEME, 0)
    except OSError as error:
        os._exit(error.errno or 70)
    code = 70
    try:
        os.kill(os.getpid(), signal.SIGSTOP)
        _install_filter()
        code = work()
    finally:
        os._exit(code)


def _ptrace(request: int, tid: int, data: object = None) -> None:
    if _libc.ptrace(request, tid, None, data) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"ptrace: {os.strerror(number)}")


def _install_filter() -> None:
    """Stops this process at the calls of `_CALLS`; an ``open`` only if it may change something."""

    def instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("HBBI", code, if_true, if_false, value)

    load, equal, any_bit, give = 0x20, 0x15, 0x45, 0x06
    allow, stop = 0x7FFF0000, 0x7FF00000
    program = [
        instruction(load, 4),
        instruction(equal, 0xC000003E, 1, 0),
        instruction(give, allow),
        instruction(load, 0),
    ]
    for number in sorted(_CALLS):
        argument = _FLAGS_AT.get(number)
        if argument is None:
            program += [instruction(equal, number, 0, 1), instruction(give, stop)]
        else:
            program += [
                instruction(equal, number, 0, 4),
                instruction(load, 16 + 8 * argument),
                instruction(any_bit, _CHANGES, 0, 1),
                instruction(give, stop),
                instruction(give, allow),
            ]
    program.append(instruction(give, allow))
    code = b"".join(program)
    if _libc.prctl(38, 1, 0, 0, 0) or _libc.prctl(22, 2, ctypes.byref(_Program(len(program), code)), 0, 0):
        raise OSError(ctypes.get_errno(), "no seccomp filter")


class _Tracer:
    def __init__(
        self,
        child: int,
        root: str,
        before: Callable[[Call], Kill | int | None],
        after: Callable[[Call, int], None] | None,
    ) -> None:
        self._child, self._below, self._before, self._after = child, f"{root}/", before, after
        self._started = {child}
        self._under_way: tuple[int, Call] | None = None
        self._waiting: list[int] = []
        self._registers = ctypes.create_string_buffer(_REGISTERS.size)

    def run(self) -> int:
        _, status = os.waitpid(self._child, _WALL)
        if not os.WIFSTOPPED(status):
            number = os.waitstatus_to_exitcode(status)
            raise OSError(number, f"ptrace: {os.strerror(number)}")
        try:
            _ptrace(_SETOPTIONS, self._child, _OPTIONS)
            self._memory = os.open(f"/proc/{self._child}/mem", os.O_RDONLY)
        except OSError:
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, _WALL)
            raise
        try:
            _ptrace(_CONT, self._child)
            while True:
                tid, status = os.waitpid(-1, _WALL)
                if os.WIFSTOPPED(status):
                    self._stopped(tid, status)
                elif tid == self._child:
                    return os.waitstatus_to_exitcode(status)
        finally:
            os.close(self._memory)

    def _stopped(self, tid: int, status: int) -> None:
        received, event = os.WSTOPSIG(status), status >> 16
        how, deliver = _CONT, 0
        try:
            if event == _EVENT_SECCOMP:
                if self._under_way is not None:  # one after the other, lest they be seen in another order
                    self._waiting.append(tid)
                    return
                how = self._entered(tid)
            elif received == _SYSCALL_STOP:
                self._returned(tid)
            elif event == 0 and not (received == signal.SIGSTOP and tid not in self._started):
                deliver = received
            self._started.add(tid)
            _ptrace(how, tid, deliver)
            while self._waiting and self._under_way is None:
                tid = self._waiting.pop(0)
                _ptrace(self._entered(tid), tid)
        except ProcessLookupError:
            return  # killed meanwhile

    def _entered(self, tid: int) -> int:
        registers = self._read(tid)
        call = self._call(tid, registers)
        if call is None:
            return _CONT
        answer = self._before(call)
        if answer is Kill.HERE:
            os.kill(self._child, signal.SIGKILL)
            raise ProcessLookupError
        if answer is not None:
            registers[_ORIG_RAX], registers[_RAX] = (1 << 64) - 1, (1 << 64) - int(answer)
            _ptrace(_SETREGS, tid, _REGISTERS.pack(*registers))
            return _CONT
        if self._after is None:
            return _CONT
        self._under_way = tid, call
        return _SYSCALL

    def _returned(self, tid: int) -> None:
        if self._under_way is not None and self._under_way[0] == tid and self._after is not None:
            _, call = self._under_way
            self._under_way = None
            (result,) = struct.unpack("q", struct.pack("Q", self._read(tid)[_RAX]))
            self._after(call, result)

    def _read(self, tid: int) -> list[int]:
        _ptrace(_GETREGS, tid, ctypes.addressof(self._registers))
        return list(_REGISTERS.unpack(self._registers.raw))

    def _call(self, tid: int, registers: list[int]) -> Call | None:
        number = registers[_ORIG_RAX]
        name, shape = _CALLS[number]
        arguments = tuple(registers[place] for place in _ARGUMENTS)
        paths: list[str] = []
        directory, status = "", None
        for kind, value in zip(shape, arguments, strict=False):
            if kind == "D":
                directory = "" if value & 0xFFFFFFFF == _AT_FDCWD else self._of_descriptor(value)
            elif kind == "P":
                paths.append(os.path.normpath(os.path.join(directory, self._text(value))))  # noqa: PTH118
            elif kind == "F":
                path = self._of_descriptor(value)
                if path.startswith(self._below):
                    try:
                        status = Path(f"/proc/{self._child}/fd/{value & 0xFFFFFFFF}").stat()
                    except FileNotFoundError:  # the process has ended since, or another thread has closed it
                        return None
                paths.append(path)
        if not any(path.startswith(self._below) for path in paths):
            return None
        flags = arguments[_FLAGS_AT[number]] if number in _FLAGS_AT else 0
        removes = name == "rmdir" or (number == 263 and bool(arguments[2] & _AT_REMOVEDIR))
        return Call(name, paths[0], paths[1] if len(paths) > 1 else None, status, arguments, flags, removes)

    def _of_descriptor(self, value: int) -> str:
        try:
            return str(Path(f"/proc/{self._child}/fd/{value & 0xFFFFFFFF}").readlink())
        except OSError:
            return ""

    def _text(self, address: int) -> str:
        data = b""
        while b"\0" not in data:
            at = address + len(data)
            data += os.pread(self._memory, _PAGE - at % _PAGE, at)
        return os.fsdecode(data[: data.index(b"\0")])
