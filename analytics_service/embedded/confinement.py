"""Restricts this process to some folders of the file system, by Linux's Landlock (kernel 5.19 and later).

ClickHouse opens some files before it asks for a grant, and has functions and settings that ask for none.
"""

import ctypes
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

# System calls, the same on all architectures, and their constants, as in linux/landlock.h and linux/prctl.h.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _DEVICE = 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICE
# Number of rights by version. Version 1 cannot allow moving files between folders, as ClickHouse does.
_RIGHTS = {2: 14, 3: 15, 4: 15}
_RIGHTS_NOW = 16

_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled", ctypes.c_uint64),)


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def confine(written: Iterable[Path], read: Iterable[Path]) -> bool:
    """Restrict this thread, and threads that it starts, to files below these paths; False if the kernel cannot.

    Files that are already open stay open. OSError when a path of `written` is missing; those of `read` may be missing.
    """
    if sys.platform != "linux":
        return False
    version = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION))
    if version < min(_RIGHTS):
        return False
    rights = (1 << _RIGHTS.get(version, _RIGHTS_NOW)) - 1
    handled = _Ruleset(rights)
    rules = _called(_CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(ctypes.sizeof(handled)), ctypes.c_uint32(0))
    try:
        for path in written:
            _allow(rules, path, rights)
        for path in read:
            if path.exists():
                _allow(rules, path, _READ & rights)
        if _libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            raise _error()
        _called(_RESTRICT_SELF, ctypes.c_int(rules), ctypes.c_uint32(0))
    finally:
        os.close(rules)
    return True


def _allow(rules: int, path: Path, rights: int) -> None:
    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        is_folder = stat.S_ISDIR(os.fstat(folder).st_mode)
        rule = _Beneath(rights if is_folder else rights & _OF_FILES, folder)
        _called(_ADD_RULE, ctypes.c_int(rules), ctypes.c_int(_PATH_BENEATH), ctypes.byref(rule), ctypes.c_uint32(0))
    finally:
        os.close(folder)


def _called(number: int, *arguments: object) -> int:
    result: int = _libc.syscall(number, *arguments)
    if result < 0:
        raise _error()
    return result


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
