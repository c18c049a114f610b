"""Makes the kernel refuse system calls, by a filter that lasts until the process ends.

1. The process gives up gaining privileges, which the kernel requires before it takes a filter.
2. The filter is a program for each call: load its number, compare, return the error. `odd` refuses only
   calls with an odd first argument, usually a file descriptor, so that some calls succeed.
3. The filter applies to every thread of the process and to its children.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

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
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _FIRST_ARGUMENT = 0, 16
_PR_SET_NO_NEW_PRIVS, _SECCOMP_SET_MODE_FILTER, _SECCOMP_FILTER_FLAG_TSYNC = 38, 1, 1
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

    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(program, len(program))
    filter_program = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    done = libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    done |= libc.syscall(
        _SECCOMP[machine], _SECCOMP_SET_MODE_FILTER, _SECCOMP_FILTER_FLAG_TSYNC, filter_program
    )
    if done:
        number = ctypes.get_errno()
        raise OSError(number, f"no filter: {errno.errorcode.get(number, number)}")


def _instruction(code: int, value: int, over_if_not: int = 0) -> bytes:
    """Encode an instruction; the jumps count the instructions to skip."""
    return struct.pack("HBBI", code, 0, over_if_not, value)
