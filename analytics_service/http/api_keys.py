"""API keys: the file that has their digests, and which key a request was sent with.

The file has a line for each key: its name and the SHA-256 of the key, in hex. Empty lines and those that begin with `#`
are ignored. Keys have 256 random bits, so a fast hash is right: nobody can try them all, as one can try passwords.
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

# Seconds between looks at the file.
_LOOK_EVERY = 1.0
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


def _parsed(text: str) -> Digests:
    digests: Digests = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _LINE.fullmatch(line.strip())
        if found is None:
            raise ValueError(f"line {number} is not a name and a SHA-256 in 64 hex digits")
        if found[1] in digests:
            raise ValueError(f"line {number} repeats the name {found[1]}")
        digests[found[1]] = bytes.fromhex(found[2])
    return digests


def require_keys(settings: Settings) -> None:
    """SettingError if a file of keys is set that is missing or malformed."""
    if settings.api_keys_file is not None:
        read_keys(settings.api_keys_file)


def add_key(path: Path, name: str) -> str:
    """Add a new key to the file, which is made if there is none. The key is returned, and stored nowhere.

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
    """Remove a key from the file. SettingError if there is none of that name."""
    with _changing(path):
        if name not in read_keys(path):
            raise SettingError(f"There is no key called {name} in {path}.")
        lines = path.read_text("utf-8").splitlines(keepends=True)
        _replace(path, "".join(line for line in lines if line.split()[:1] != [name]))


@contextmanager
def _changing(path: Path) -> Iterator[None]:
    """One process at a time changes a file of the folder: each change writes the whole file anew."""
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


def _replace(path: Path, text: str) -> None:
    """Readers see the old file or the new one. A new file is for its owner only."""
    target = path.resolve()
    with NewFile(target) as new:
        if target.exists():
            _copy_access(target, new.file.fileno())
        new.file.write(text.encode())
        new.keep()


def _copy_access(source: Path, descriptor: int) -> None:
    """Give a file that replaces another one the same readers."""
    known = source.stat()
    if (known.st_uid, known.st_gid) != (os.geteuid(), os.getegid()):
        os.fchown(descriptor, known.st_uid, known.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(known.st_mode))


def _digest(key: str) -> bytes:
    return sha256(key.encode()).digest()


class ApiKeys:
    """The keys in a file. It is read again when it has changed; as long as it cannot be read, the last keys hold.

    A worker that never could read it knows no key, so it refuses all requests.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._look_at = clock()
        self._version: tuple[int, ...] | None = None
        self._digests: Digests = {}
        self._lock = threading.Lock()

    def name_of(self, key: str) -> str | None:
        """The name of a key; None if it is unknown. Takes the same time for every key, known or not."""
        given, name = _digest(key), None
        for known, digest in self._now().items():
            if hmac.compare_digest(given, digest):
                name = known
        return name

    def _now(self) -> Digests:
        """The keys, read again if a look at the file is due. Other threads wait, because at first there are no keys."""
        with self._lock:
            now = self._clock()
            if now >= self._look_at:
                self._look_at = now + _LOOK_EVERY
                version = self._seen()
                if version != self._version:
                    self._version = version
                    self._read()
            return self._digests

    def _seen(self) -> tuple[int, ...]:
        """Numbers that differ once the file has changed."""
        try:
            seen = self._path.stat()
        except OSError:
            return ()
        return seen.st_mtime_ns, seen.st_size, seen.st_ino

    def _read(self) -> None:
        try:
            self._digests = read_keys(self._path)
        except SettingError as error:
            log.error("%s The keys read before are still valid.", error)
