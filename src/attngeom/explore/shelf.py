"""The files that a page may read: those of the command line, and those that were dropped on it.

No other path is ever opened. Dropped files lie in a private folder for temporary files that ends with the server.
"""

from __future__ import annotations

import secrets
import shlex
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from attngeom.errors import InputError, SizeError

MAX_UPLOAD = 64 * 2**20
"""Bytes of a dropped file; larger ones are named on the command line, where nothing is copied."""
FOLDER = "/"
"""Stands among suffixes for folders."""
MAX_DROPPED = 64
"""Dropped files that are kept; the oldest goes first."""


@dataclass(frozen=True)
class ShelfItem:
    """A file or folder under the key that stands for it in addresses; ``name`` is what the user calls it."""

    key: str
    name: str
    path: str

    @property
    def short(self) -> str:
        """The name without its folders."""
        return Path(self.name).name or self.name

    @property
    def size(self) -> int:
        """The bytes of the file."""
        return Path(self.path).stat().st_size

    @property
    def changed(self) -> float:
        """When the file was last written."""
        return Path(self.path).stat().st_mtime

    @property
    def is_folder(self) -> bool:
        return Path(self.path).is_dir()


def named(file: ShelfItem | None, other: str) -> str:
    """The name of a file; of another one that could be there, if none is open."""
    return other if file is None else file.name


def quoted(file: ShelfItem | None, other: str) -> str:
    """The name as a shell reads it.

    >>> quoted(None, "my file.json")
    "'my file.json'"
    """
    return shlex.quote(named(file, other))


@dataclass
class Shelf:
    """Entries by key; ``folder`` is made when the first file is dropped."""

    entries: dict[str, ShelfItem] = field(default_factory=dict)
    _folder: tempfile.TemporaryDirectory[str] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of_paths(cls, paths: Iterable[str | Path]) -> Shelf:
        """The files of the command line; their keys are their numbers, so that links survive a restart.

        >>> Shelf.of_paths(["no such file"])
        Traceback (most recent call last):
        attngeom.errors.InputError: no such file does not exist; give files or folders that exist
        """
        shelf = cls()
        for number, path in enumerate(paths, start=1):
            if not Path(path).exists():
                raise InputError(f"{path} does not exist; give files or folders that exist")
            shelf.entries[str(number)] = ShelfItem(str(number), str(path), str(Path(path).resolve()))
        return shelf

    def find(self, key: str) -> ShelfItem:
        """The entry of a key."""
        if key not in self.entries:
            raise InputError("this file is no longer there; drop it again, or name it when you start attngeom explore")
        return self.entries[key]

    def listed(self, suffixes: Sequence[str], chosen: str) -> list[ShelfItem]:
        """Entries of these suffixes to choose from; a dropped file is offered to the window that dropped it only."""

        def fits(item: ShelfItem) -> bool:
            return item.name.endswith(tuple(suffixes)) or (FOLDER in suffixes and item.is_folder)

        held = list(self.entries.values())
        return [item for item in held if item.key == chosen or (item.key.isdigit() and fits(item))]

    def drop(self, name: str, content: bytes) -> ShelfItem:
        """Keep a dropped file; its name is shown and never used as a path, but for a known suffix."""
        if len(content) > MAX_UPLOAD:
            raise SizeError(f"a file of {len(content):,} bytes dropped; at most {MAX_UPLOAD:,}: name it when you start")
        with self._lock:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="attngeom-explore-")
            suffix = next((known for known in (".safetensors", ".db") if name.lower().endswith(known)), ".json")
            key = f"d{secrets.token_hex(12)}"
            path = Path(self._folder.name) / f"{key}{suffix}"
            path.write_bytes(content)
            self.entries[key] = ShelfItem(key, name[-80:] or "dropped file", str(path))
            dropped = [entry for entry in self.entries.values() if not entry.key.isdigit()]
            for entry in dropped[:-MAX_DROPPED]:
                del self.entries[entry.key]
                Path(entry.path).unlink(missing_ok=True)
        return self.entries[key]

    def close(self) -> None:
        """Remove the dropped files."""
        if self._folder is not None:
            self._folder.cleanup()

    def to_json(self, keys: Iterable[str]) -> list[list[str]]:
        """The entries of some keys, for a process that works on them."""
        return [[e.key, e.name, e.path] for key in keys if (e := self.entries.get(key)) is not None]

    @classmethod
    def from_json(cls, entries: Iterable[Sequence[str]]) -> Shelf:
        """The inverse of :meth:`to_json`."""
        found: Mapping[str, ShelfItem] = {key: ShelfItem(key, name, path) for key, name, path in entries}
        return cls(dict(found))
