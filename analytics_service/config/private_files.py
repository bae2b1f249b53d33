"""Files that get their name only when they are complete."""

import os
import secrets
from pathlib import Path
from types import TracebackType


class NewFile:
    """A file that replaces the file at its path when `keep` is called, and is deleted otherwise.

    Until then it has the unique name `part` in the same folder, so two writers of a path do not mix. Only its owner may
    read it, unless `mode` says otherwise (the umask applies).
    """

    def __init__(self, path: Path, mode: int = 0o600) -> None:
        self._path = path
        self.part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
        self.file = os.fdopen(os.open(self.part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb")

    def keep(self) -> None:
        """Give the file its name. It is synced first, so that a crash never leaves an empty file at the path."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        self.part.replace(self._path)

    def __enter__(self) -> "NewFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.file.close()
        finally:
            self.part.unlink(missing_ok=True)
