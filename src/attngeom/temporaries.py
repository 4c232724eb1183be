"""Temporary files and folders that outlive nobody: their names say who made them, and the next run removes the rest.

What is written appears under a temporary name, is brought to the disk, and gets its name at the end. A process that is
killed leaves its temporary behind; whoever writes into the same folder next removes those whose maker is gone. A leaf.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from attngeom.limits.seconds import ABANDONED_SECONDS

try:
    import fcntl
except ImportError:  # not a POSIX system: names alone tell who is alive
    fcntl = None  # type: ignore[assignment]

PATTERN = re.compile(r"\.attngeom-([0-9a-f]{8})-(\d+)-(\d+)-[0-9a-f]{16}\.tmp")
_looked: set[Path] = set()
"""Folders in which this process has looked for abandoned temporaries."""


def temporary_path(folder: Path) -> Path:
    """A new name in a folder, which says who makes it; temporaries there whose makers are gone are removed."""
    place = folder.resolve()
    if place not in _looked:
        _looked.add(place)
        remove_abandoned(folder)
    return folder / f".attngeom-{_host()}-{os.getpid()}-{_start_of(os.getpid())}-{secrets.token_hex(8)}.tmp"


def remove_abandoned(folder: Path) -> list[Path]:
    """Remove temporaries of this user in a folder whose makers are gone, and say which; others are left alone."""
    removed = []
    try:
        with os.scandir(folder) as entries:
            abandoned = [Path(entry.path) for entry in entries if PATTERN.fullmatch(entry.name)]
    except OSError:
        return []
    for path in abandoned:
        with suppress(OSError):
            if _is_abandoned(path):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
                removed.append(path)
    return removed


def _is_abandoned(path: Path) -> bool:
    """Whether the maker is gone: its process does not run, and no process holds the lock of the temporary."""
    match, status = PATTERN.fullmatch(path.name), path.lstat()
    if match is None or not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return False
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        return False
    host, pid, start = match.groups()
    if host == _host():
        if is_running(int(pid), int(start)):
            return False
    elif time.time() - status.st_mtime < ABANDONED_SECONDS:
        return False
    descriptor = hold(path)
    if descriptor is None:
        return False
    os.close(descriptor)
    return True


def is_running(pid: int, start: int) -> bool:
    """Whether the process of this number that started then still runs; a start of 0 is not known."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    except OverflowError:
        return False
    return start == 0 or _start_of(pid) in (0, start)


def _start_of(pid: int) -> int:
    """When a process started, in ticks since the machine did; 0 where the system does not say."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def _host() -> str:
    name = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    return sha256(name.encode()).hexdigest()[:8]


def hold(path: Path) -> int | None:
    """A descriptor that locks a file or folder until it is closed or the process ends; None if another one has it."""
    descriptor = os.open(path, os.O_RDONLY)
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:  # a file system without locks: names alone tell
            pass
    return descriptor


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk: a rename survives a power loss only after this."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:  # some file systems cannot sync folders, which is no failure to write
        if error.errno not in (None, 22, 95):
            raise
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Bring all files below a folder, and their names, to the disk."""
    for root, _, names in os.walk(folder):
        for name in names:
            descriptor = os.open(Path(root) / name, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_folder(Path(root))


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """A new folder below ``parent``, held by this process, which is gone at the end unless it was renamed."""
    path = temporary_path(parent)
    path.mkdir(mode=0o700)
    descriptor = hold(path)
    try:
        yield path
    finally:
        if descriptor is not None:
            os.close(descriptor)
        if path.exists():
            shutil.rmtree(path)


@contextmanager
def filling(place: Path) -> Iterator[Path]:
    """A folder under a temporary name beside ``place``, which gets that name, whole and on the disk, at the end.

    OSError if there is no room, or if ``place`` is there and not an empty folder; then nothing is changed.
    """
    with temporary_folder(place.parent) as outer:
        # Private until it is whole; its own mode is that of the umask, and so are those of its files: libraries that
        # write them take other ones.
        path = outer / "folder"
        path.mkdir()
        yield path
        mode = stat.S_IMODE(path.stat().st_mode) & 0o666
        for file in path.rglob("*"):
            if file.is_file():
                file.chmod(mode)
        sync_tree(path)
        path.rename(place)
        sync_folder(place.parent)
