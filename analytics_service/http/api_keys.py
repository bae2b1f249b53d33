"""API keys: the file that has their digests, and the name of the key that a request was sent with.

The file has a line for each key: its name and the SHA-256 of the key, in hex. Empty lines and those that begin with `#`
are ignored. A fast hash is enough: keys have 256 random bits, so unlike passwords they cannot be guessed.
"""

import fcntl
import hmac
import logging
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from analytics_service.config.files import NewFile
from analytics_service.config.settings import Settings
from analytics_service.errors import SettingError

log = logging.getLogger(__name__)

# Seconds between checks of the file.
_CHECK_INTERVAL = 1.0
_NAME = r"[A-Za-z0-9._-]{1,64}"
_LINE = re.compile(rf"({_NAME})\s+([0-9a-f]{{64}})")
_BYTES = 32
Digests = dict[str, bytes]


def key_name(value: str) -> str:
    """The name of a key. ValueError if it is malformed."""
    if not re.fullmatch(_NAME, value):
        raise ValueError("must be 1 to 64 letters, digits and . _ -")
    return value


def read_keys(path: Path) -> Digests:
    """The digest of each key by name, in the file's order. SettingError if the file cannot be read or is malformed."""
    try:
        return _parsed(path.read_text("utf-8"))
    except OSError as error:
        raise SettingError(
            f"The file of API keys {path} cannot be read ({error.strerror}). "
            "`analytics-service keys add NAME` makes one."
        ) from error
    except ValueError as error:
        raise SettingError(f"The file of API keys {path} is malformed: {error}.") from error


def _parsed(content: str) -> Digests:
    digests: Digests = {}
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise ValueError(f"line {number} is not a name and a SHA-256 in 64 hex digits")
        name, digest = match.groups()
        if name in digests:
            raise ValueError(f"line {number} repeats the name {name}")
        digests[name] = bytes.fromhex(digest)
    return digests


def require_keys(settings: Settings) -> None:
    """SettingError if the settings name a file of keys that is missing or malformed."""
    if settings.api_keys_file is not None:
        read_keys(settings.api_keys_file)


def add_key(path: Path, name: str) -> str:
    """Add a new key to the file, which is created if it does not exist. The key is returned, and stored nowhere.

    SettingError if there is a key of that name.
    """
    key = secrets.token_urlsafe(_BYTES)
    with _changing(path):
        before = ""
        if path.exists():
            if name in read_keys(path):
                raise SettingError(f"There is a key called {name} in {path}. Remove it first, or choose another name.")
            before = path.read_text("utf-8")
        ending = "" if before.endswith("\n") or not before else "\n"
        _replace(path, f"{before}{ending}{name} {_digest(key).hex()}\n")
    return key


def remove_key(path: Path, name: str) -> None:
    """Remove a key from the file. SettingError if there is no key of that name."""
    with _changing(path):
        if name not in read_keys(path):
            raise SettingError(f"There is no key called {name} in {path}.")
        lines = path.read_text("utf-8").splitlines(keepends=True)
        _replace(path, "".join(line for line in lines if line.split()[:1] != [name]))


@contextmanager
def _changing(path: Path) -> Iterator[None]:
    """Locks the folder, so that one process at a time changes a file in it. Each change writes the complete file."""
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise SettingError(
            f"The folder {path.parent} of the file of API keys cannot be opened ({error.strerror})."
        ) from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    except OSError as error:
        raise SettingError(f"The file of API keys {path} cannot be written ({error.strerror}).") from error
    finally:
        os.close(folder)


def _replace(path: Path, content: str) -> None:
    """Replace a file atomically, by one with its owner and mode. A file that did not exist is for its owner only."""
    target = path.resolve()
    with NewFile(target) as new:
        if target.exists():
            status = target.stat()
            if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(new.file.fileno(), status.st_uid, status.st_gid)
            os.fchmod(new.file.fileno(), stat.S_IMODE(status.st_mode))
        new.file.write(content.encode())
        new.keep()


def _digest(key: str) -> bytes:
    return sha256(key.encode()).digest()


class ApiKeys:
    """The keys in a file. It is read again when it has changed. While it cannot be read, the last keys stay valid.

    A worker that could never read the file has no keys, so it refuses all requests.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._check_at = clock()
        self._version: tuple[int, ...] | None = None
        self._digests: Digests = {}
        self._lock = threading.Lock()

    def name_of(self, key: str) -> str | None:
        """The name of a key; None if it is unknown. Takes the same time for every key, valid or not."""
        digest, matching = _digest(key), None
        for name, valid_digest in self._current().items():
            if hmac.compare_digest(digest, valid_digest):
                matching = name
        return matching

    def _current(self) -> Digests:
        """The keys, read again if the file is due to be checked. Other threads wait: at first there are no keys."""
        with self._lock:
            now = self._clock()
            if now >= self._check_at:
                self._check_at = now + _CHECK_INTERVAL
                version = self._file_version()
                if version != self._version:
                    self._version = version
                    self._read()
            return self._digests

    def _file_version(self) -> tuple[int, ...]:
        """Numbers that change with the file; empty if it cannot be read."""
        try:
            status = self._path.stat()
        except OSError:
            return ()
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self) -> None:
        try:
            self._digests = read_keys(self._path)
        except SettingError as error:
            log.error("%s The keys read before are still valid.", error)
