"""API keys: a file with a name and a SHA-256 in hex on each line. Empty lines and comments (`#`) are ignored.

A fast hash is enough: keys have 256 random bits, so unlike passwords they cannot be guessed.
"""

import os
import re
import secrets
from functools import cache
from hashlib import sha256
from pathlib import Path

from analytics_service.config.settings import Settings
from analytics_service.errors import SettingError

_NAME = r"[A-Za-z0-9._-]{1,64}"
_LINE = re.compile(rf"({_NAME})\s+([0-9a-f]{{64}})|\s*(?:#.*)?")


def digest(key: str) -> str:
    return sha256(key.encode()).hexdigest()


def read_keys(path: Path) -> dict[str, str]:
    """Names of keys by their digests. Raises SettingError if the file cannot be read or is malformed."""
    names: dict[str, str] = {}
    for number, line in enumerate(_lines(path), 1):
        match = _LINE.fullmatch(line)
        if match is None or match[1] in names.values():
            fault = f"repeats the name {match[1]}" if match else "is not a name and a SHA-256 in 64 hex digits"
            raise SettingError(f"The file of API keys {path} is malformed: line {number} {fault}.")
        if match[1]:
            names[match[2]] = match[1]
    return names


# All workers inherit the keys that were read before the fork, so they agree.
keys_at_start = cache(read_keys)


def require_keys(settings: Settings) -> None:
    """Raises SettingError if the settings name a file of keys that is missing or malformed."""
    if settings.api_keys_file is not None:
        read_keys(settings.api_keys_file)


def add_key(path: Path, name: str) -> str:
    """Add a new key to the file, creating it if needed, and return the key. Only its digest is stored."""
    key, exists = secrets.token_urlsafe(32), path.exists()
    if not re.fullmatch(_NAME, name):
        raise SettingError("The name of a key must be 1 to 64 letters, digits and . _ -")
    if exists and name in read_keys(path).values():
        raise SettingError(f"{path} already has a key called {name}. Remove it first, or choose another name.")
    _write(path, [*(_lines(path) if exists else ()), f"{name} {digest(key)}"])
    return key


def remove_key(path: Path, name: str) -> None:
    """Remove a key from the file. Raises SettingError if it has no key of that name."""
    if name not in read_keys(path).values():
        raise SettingError(f"{path} has no key called {name}.")
    _write(path, [line for line in _lines(path) if line.split()[:1] != [name]])


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", error)
        hint = "`analytics-service keys add NAME` creates one."
        raise SettingError(f"The file of API keys {path} cannot be read ({reason}). {hint}") from error


def _write(path: Path, lines: list[str]) -> None:
    """Write in place: the file keeps its owner and mode. Only its owner may read a new file."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
            file.truncate()
    except OSError as error:
        raise SettingError(f"The file of API keys {path} cannot be written ({error.strerror}).") from error
