"""The files that a page may read: those of the command line, and those that were dropped on it.

No other path is ever opened. Dropped files lie in a private folder for temporary files that ends with the server.
"""

from __future__ import annotations

import re
import secrets
import shlex
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from attngeom.errors import InputError, SizeError
from attngeom.files import to_json
from attngeom.limits.sizes import DROPPED_BYTES, UPLOAD_BYTES
from attngeom.temporaries import temporary_folder

KINDS = {
    "weights": "weights of a network",
    "coefficients": "coefficients of a cubic map",
    "certificate": "a certificate",
    "store": "a store of facts",
    "model": "a folder of a transformer",
    "program": "a network as a program",
    "other": "a file of another kind",
}
_FORMAT = re.compile(rb'"format"\s*:\s*"attngeom/([a-z]+)"')


def kind_of(path: Path) -> str:
    """What a file or folder holds, by its first bytes: a word of ``KINDS``."""
    if path.is_dir():
        return "model" if (path / "config.json").is_file() else "other"
    with path.open("rb") as stream:
        start = stream.read(4096)
    if start.startswith(b"SQLite format 3\0"):
        return "store"
    if path.suffix == ".safetensors":
        return "weights"
    match = _FORMAT.search(start)
    return match[1].decode() if match and match[1].decode() in KINDS else "other"


@dataclass(frozen=True)
class ShelfItem:
    """A file or folder under the key that stands for it in addresses; ``name`` is what the user calls it."""

    key: str
    name: str
    path: str
    kind: str = "other"
    is_named: bool = False
    """Whether it stands on the command line, so that every window may choose it."""
    changed: float = 0.0
    """When it was last written, as of :meth:`Shelf.find`: what was read before is not taken for what is there now."""

    @property
    def short(self) -> str:
        """The name without its folders."""
        return Path(self.name).name or self.name

    @property
    def size(self) -> int:
        """The bytes of the file."""
        return Path(self.path).stat().st_size

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
    """Entries by key; the private folder is made when it is first needed."""

    entries: dict[str, ShelfItem] = field(default_factory=dict)
    _folder: Path | None = None
    _held: ExitStack = field(default_factory=ExitStack)

    @classmethod
    def of_paths(cls, paths: Iterable[str | Path]) -> Shelf:
        """The files of the command line; their keys are their numbers.

        >>> Shelf.of_paths(["no such file"])
        Traceback (most recent call last):
        attngeom.errors.InputError: no such file does not exist; give files or folders that exist
        """
        shelf = cls()
        for number, path in enumerate(map(Path, paths), start=1):
            if not path.exists():
                raise InputError(f"{path} does not exist; give files or folders that exist")
            try:
                kind = kind_of(path)
            except OSError as error:
                raise InputError(f"{path} cannot be read: {error.strerror}; give files that can be read") from None
            shelf.entries[str(number)] = ShelfItem(str(number), str(path), str(path.resolve()), kind, True)
        return shelf

    def find(self, key: str) -> ShelfItem:
        """The entry of a key."""
        if key not in self.entries or not Path(self.entries[key].path).exists():
            raise InputError("this file is no longer there; drop it again, or name it when you start attngeom explore")
        return replace(self.entries[key], changed=Path(self.entries[key].path).stat().st_mtime)

    def only(self, key: str | None) -> Shelf:
        """This shelf, or what it holds under one key."""
        return self if key is None else Shelf({key: self.find(key)})

    def listed(self, kinds: Sequence[str], chosen: str) -> list[ShelfItem]:
        """Entries to choose from: those of these kinds; a dropped file is offered to the window that dropped it."""
        held = self.entries.values()
        return [item for item in held if item.key == chosen or (item.is_named and item.kind in (*kinds, "other"))]

    @property
    def folder(self) -> Path:
        """A folder that nobody else can read."""
        if self._folder is None:
            # What a killed server left there is removed first.
            self._folder = self._held.enter_context(temporary_folder(Path(tempfile.gettempdir())))
        return self._folder

    def keep(self, name: str, record: Mapping[str, Any]) -> ShelfItem:
        """Put a record of the command line beside its files: a network that was traced when the server started."""
        key = str(1 + len(self.entries))
        path = self.folder / f"named{key}.json"
        path.write_text(to_json(dict(record)), encoding="utf-8")
        self.entries[key] = item = ShelfItem(key, name, str(path), kind_of(path), True)
        return item

    async def drop(self, name: str, chunks: AsyncIterator[bytes]) -> ShelfItem:
        """Keep a dropped file; its name is shown and never used as a path, but for a known suffix.

        What does not arrive whole leaves nothing.
        """
        known = (".safetensors", ".db", ".sqlite")
        key = secrets.token_hex(12)
        path = self.folder / (key + next((suffix for suffix in known if name.lower().endswith(suffix)), ".json"))
        size = 0
        try:
            with path.open("wb") as stream:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > UPLOAD_BYTES:
                        raise SizeError(f"a file of more than {UPLOAD_BYTES:,} bytes dropped; name it when you start")
                    stream.write(chunk)
        except BaseException:
            path.unlink()
            raise
        dropped = [entry for entry in self.entries.values() if not entry.is_named]
        while dropped and size + sum(entry.size for entry in dropped) > DROPPED_BYTES:
            Path(self.entries.pop(dropped.pop(0).key).path).unlink()
        self.entries[key] = item = ShelfItem(key, name[-80:] or "dropped file", str(path))
        return item

    def close(self) -> None:
        """Remove the dropped files."""
        self._held.close()
