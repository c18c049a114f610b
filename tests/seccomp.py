"""Makes the kernel refuse system calls, by a filter that lasts until the process ends.

1. The process gives up gaining privileges, which the kernel requires before it takes a filter.
2. The filter is a program for each call: load its number, compare, return the error. `odd` refuses only
   calls with an odd first argument, usually a file descriptor, so that some calls succeed.
3. The filter applies to every thread of the process and to its children.
4. `interrupt_each` sends the calls to another process, which answers each n-th with EINTR.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import itertools
import os
import platform
import select
import socket
import struct
from collections.abc import Iterable

# Numbers of each call on x86-64 and on ARM.
NUMBERS = {
    "flock": (73, 32),
    "fstat": (5, 80),
    "fstatfs": (138, 44),
    "fsync": (74, 82),
    "getdents64": (217, 61),
    "linkat": (265, 37),
    "mkdirat": (258, 34),
    "mmap": (9, 222),
    "newfstatat": (262, 79),
    "openat": (257, 56),
    "pread64": (17, 67),
    "preadv": (295, 69),
    "preadv2": (327, 286),
    "pwrite64": (18, 68),
    "pwritev": (296, 70),
    "pwritev2": (328, 287),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "statx": (332, 291),
    "symlinkat": (266, 36),
    "unlinkat": (263, 35),
    "utimensat": (280, 88),
}

_LOAD_WORD, _JUMP_EQUAL, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _ERRNO, _NOTIFY = 0x7FFF0000, 0x00050000, 0x7FC00000
_NUMBER, _FIRST_ARGUMENT = 0, 16
_PR_SET_NO_NEW_PRIVS, _SECCOMP_SET_MODE_FILTER = 38, 1
_SECCOMP_FILTER_FLAG_TSYNC, _SECCOMP_FILTER_FLAG_NEW_LISTENER = 1, 8
_RECEIVE, _SEND, _CONTINUE = 0xC0502100, 0xC0182101, 1
_SECCOMP = {"x86_64": 317, "aarch64": 277}


def refuse(calls: dict[str, int], *, odd: bool = False) -> None:
    """Make these calls fail with these error numbers, in every thread of this process."""
    machine = platform.machine()
    at = list(_SECCOMP).index(machine)
    program = b""
    for name, error in calls.items():
        refused = _instruction(_RETURN, _ERRNO | error)
        if odd:
            refused = (
                _instruction(_LOAD_WORD, _FIRST_ARGUMENT)
                + _instruction(_JUMP_BITS, 1, over_if_not=1)
                + refused
                + _instruction(_RETURN, _ALLOW)
            )
        program += _instruction(_LOAD_WORD, _NUMBER)
        program += _instruction(_JUMP_EQUAL, NUMBERS[name][at], over_if_not=len(refused) // 8)
        program += refused
    program += _instruction(_RETURN, _ALLOW)
    _set_filter(program, _SECCOMP_FILTER_FLAG_TSYNC)


def interrupt_each(number: int, calls: Iterable[str]) -> None:
    """Interrupt each n-th of these calls of this thread, and of threads that it starts later.

    It fails as if a signal had come.
    """
    here, there = socket.socketpair()
    if os.fork() == 0:
        try:
            here.close()
            _answer(there, number)
        finally:
            os._exit(0)
    machine = list(_SECCOMP).index(platform.machine())
    program = _instruction(_LOAD_WORD, _NUMBER)
    for name in calls:
        program += _instruction(_JUMP_EQUAL, NUMBERS[name][machine], over_if_not=1)
        program += _instruction(_RETURN, _NOTIFY)
    program += _instruction(_RETURN, _ALLOW)
    listener = _set_filter(program, _SECCOMP_FILTER_FLAG_NEW_LISTENER)
    socket.send_fds(here, [b"listener"], [listener])
    there.close()
    os.close(listener)
    here.detach()  # the system closes it when this process ends


def _answer(there: socket.socket, number: int) -> None:
    """Answer the calls of the process with the filter until it ends."""
    listener = socket.recv_fds(there, 16, 1)[1][0]
    for count in itertools.count(1):
        ready, _, _ = select.select([listener, there], [], [])
        if there in ready:
            return
        request = bytearray(80)
        with contextlib.suppress(FileNotFoundError):  # the thread has ended
            fcntl.ioctl(listener, _RECEIVE, request)
            (identity,) = struct.unpack_from("Q", request)
            error, flags = (-errno.EINTR, 0) if count % number == 0 else (0, _CONTINUE)
            fcntl.ioctl(listener, _SEND, struct.pack("QqiI", identity, 0, error, flags))


def _set_filter(program: bytes, flags: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(program, len(program))
    filter_program = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    done = libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if done == 0:
        done = libc.syscall(_SECCOMP[platform.machine()], _SECCOMP_SET_MODE_FILTER, flags, filter_program)
    if done < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"no filter: {errno.errorcode.get(number, number)}")
    return int(done)


def _instruction(code: int, value: int, over_if_not: int = 0) -> bytes:
    """Encode an instruction; the jumps count the instructions to skip."""
    return struct.pack("HBBI", code, 0, over_if_not, value)
