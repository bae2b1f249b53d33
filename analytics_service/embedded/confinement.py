"""Restricts this process to some folders of the file system, by Linux's Landlock (kernel 5.19 and later), and keeps it
from opening files as SQLite does, by seccomp.

ClickHouse opens some files before it asks for a grant, and has functions and settings that ask for none.
"""

import ctypes
import errno
import os
import platform
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

# By architecture: its number in linux/audit.h, and that of the system call openat.
_OPENAT = {"x86_64": (0xC000003E, 257), "aarch64": (0xC00000B7, 56)}
_SET_SECCOMP, _FILTER = 22, 2
# Instructions of a filter: load a word, and with a number, jump if equal to one, return one.
_LOAD, _AND, _JUMP, _RETURN = 0x20, 0x54, 0x15, 0x06
# Offsets of the call's number, its architecture, and its third argument.
_NUMBER, _ARCHITECTURE, _FLAGS = 0, 4, 32
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000

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


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("filter", ctypes.POINTER(_Instruction)))


def refuse_sqlite() -> None:
    """Let no file be opened with O_NOFOLLOW from now on, as only SQLite does: it makes the file that SQL's `sqlite`
    names before ClickHouse asks for a grant, also among ClickHouse's own. Folders are opened as before."""
    if sys.platform != "linux" or platform.machine() not in _OPENAT:
        return
    architecture, openat = _OPENAT[platform.machine()]
    code = (
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP, 0, 6, architecture),
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP, 0, 4, openat),
        (_LOAD, 0, 0, _FLAGS),
        (_AND, 0, 0, os.O_NOFOLLOW | os.O_DIRECTORY),
        (_JUMP, 0, 1, os.O_NOFOLLOW),
        (_RETURN, 0, 0, _FAIL | errno.EACCES),
        (_RETURN, 0, 0, _ALLOW),
    )
    filter_ = (_Instruction * len(code))(*(_Instruction(*row) for row in code))
    program = _Program(len(code), filter_)
    if _libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or _libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program)):
        raise _error()


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
