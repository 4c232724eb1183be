"""New folders of models: under a temporary name until they are whole; large ones can be gone on with.

Temporary folders of small models vanish if the work fails. Those of large ones are called NAME.partial, keep the layers
that are finished, and say which work they belong to.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import numpy as np
from safetensors import SafetensorError

from attngeom.errors import AttnGeomError, InputError
from attngeom.models.crews import CrewLost
from attngeom.models.model import Model
from attngeom.temporaries import filling
from attngeom.version import __version__

PARTIAL = "partial.txt"
"""The file in an unfinished folder that says which work it belongs to."""


@contextmanager
def new_folder(place: Path, source: Path | None) -> Iterator[Path]:
    """A temporary folder beside ``place`` that gets its name at the end, or vanishes if the work fails."""
    _check_place(place, source)
    try:
        with filling(place) as temporary:
            yield temporary
    except (OSError, SafetensorError) as error:
        words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"nothing was changed: cannot write {place}: {words[:80]}; give a place with room") from None


@contextmanager
def resumed_folder(place: Path, source: Path | None, work: str) -> Iterator[Path]:
    """The folder ``place``.partial, with what the same work left there when it was killed; named ``place`` at the end.

    Bad input and results that do not pass their check leave nothing; a killed run and lost workers leave it.
    """
    _check_place(place, source)
    partial = place.with_name(f"{place.name}.partial")
    note = partial / PARTIAL
    if partial.exists() and not (note.is_file() and note.read_text() == work):
        raise InputError(f"{partial} is there and is not of this work; remove it, or give another name for the result")
    try:
        partial.mkdir(exist_ok=True)
        note.write_text(work)
        yield partial
        note.unlink()
        partial.rename(place)
    except CrewLost:
        raise
    except AttnGeomError:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    except (OSError, SafetensorError) as error:
        words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"cannot write {place}: {words[:120]}; {partial.name} is kept, make room and go on") from None


def identity(value: object, *more: object) -> str:
    """A digest of what is written: settings, arrays, and for models the names, sizes and dates of their files."""
    digest = sha256(f"{__version__}{type(value).__name__}{more}".encode())

    def add(item: object) -> None:
        if isinstance(item, Model):
            homes = sorted({header.home for header in item.tensors.headers.values()})
            stats = [(item.path / home).stat() for home in homes] if item.path is not None else []
            digest.update(str([homes, [(s.st_size, s.st_mtime_ns) for s in stats], item.spec.parameters]).encode())
        elif isinstance(item, np.ndarray):
            digest.update(np.ascontiguousarray(item).tobytes())
        elif isinstance(item, dict):
            for key, entry in item.items():
                digest.update(str(key).encode())
                add(entry)
        elif isinstance(item, tuple | list):
            for entry in item:
                add(entry)
        else:
            digest.update(str(item).encode())

    add({name: getattr(value, name) for name in getattr(value, "__dataclass_fields__", {})})
    return digest.hexdigest()


def _check_place(place: Path, source: Path | None) -> None:
    if place.exists() or place.is_symlink():
        raise InputError(f"{place} exists already; give the name of a new folder, models are never changed in place")
    if not place.parent.is_dir():
        raise InputError(f"{place.parent} is not a folder; give a place in an existing folder")
    if source is not None and source.resolve() == place.resolve():
        raise InputError(f"{place} is the model itself; give the name of a new folder")
