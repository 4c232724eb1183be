"""Files that survive: strict JSON in, atomic writes out. A leaf that knows nothing of attention."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from attngeom.errors import FormatError, InputError, SizeError
from attngeom.limits.sizes import JSON_BYTES
from attngeom.temporaries import hold, sync_folder, temporary_path

_SURROGATE = re.compile("[\ud800-\udfff]")
ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


def check_target(path: str | Path) -> Path:
    """A path that a result may be written to: a new name in an existing folder, or a regular file.

    Devices, pipes, folders and links are refused, so that nothing but a file is ever replaced.
    """
    path = Path(path)
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise InputError(f"cannot write {path}: no such folder; give a path in a writable folder") from None
        return path
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; give a path in a writable folder") from None
    if not stat.S_ISREG(mode):
        raise InputError(f"cannot write {path}: it is {_describe(mode)}, not a file; give the name of a file")
    return path


def _describe(mode: int) -> str:
    kinds = {stat.S_IFLNK: "a symbolic link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def write_atomic(path: str | Path, data: str | bytes) -> None:
    """Write all of a file or nothing; see :func:`replacing`."""
    with replacing(path) as stream:
        stream.write(data.encode() if isinstance(data, str) else data)


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A stream under a temporary name in the same folder; it gets the name if the block ends well, else it is gone.

    A file that is there keeps its mode; a new one gets the mode of the umask. See :func:`check_target`.
    """
    path = check_target(path)
    temporary, held = temporary_path(path.parent), None
    try:
        stream = temporary.open("xb")
        held = hold(temporary)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; give a path in a writable folder") from None
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if path.exists():
            temporary.chmod(stat.S_IMODE(path.stat().st_mode))
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; nothing was changed") from None
    finally:
        temporary.unlink(missing_ok=True)
        if held is not None:
            os.close(held)


def make_folder(path: str | Path) -> Path:
    """A folder to write into, made with its parents where it does not exist."""
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(f"cannot write into {path}: it is not a folder; give the name of a folder") from None
    except OSError as error:
        raise InputError(f"cannot make the folder {path}: {error.strerror}; give a writable place") from None
    return path


PICKLED = (".pt", ".pth", ".bin", ".pkl", ".ckpt")
"""Endings of checkpoints that only code can read."""
FOREIGN = (".npz", ".npy", ".h5", ".msgpack", ".onnx", ".txt")
"""Endings of files that hold arrays in other formats, or none."""


def refuse_format(path: Path) -> None:
    """FormatError, with the next step, for a file in a format that is not read.

    >>> refuse_format(Path("weights.json"))
    """
    if path.suffix.lower() in FOREIGN:
        raise FormatError(
            f"{path}: {path.suffix} files are not read; save safetensors: safetensors.numpy.save_file(TENSORS, FILE)"
        )
    if path.suffix.lower() in PICKLED:
        raise FormatError(
            f"{path}: pickled checkpoints can run code and are not read; save safetensors: "
            "model.save_pretrained(FOLDER), or safetensors.torch.save_file(model.state_dict(), FILE)"
        )
    if path.suffix.lower() == ".gguf":
        name = path.name[:50]
        if (path.parent / "config.json").exists():
            raise FormatError(
                f"{name} is a whole model; give the file itself, not its folder, to attngeom inspect, compare, "
                "fingerprint, canonicalize, teleport or model"
            )
        raise FormatError(
            f"{name}: a GGUF file alone does not fix the function; put config.json of its model beside it and give "
            f"the file, or: attngeom compare FOLDER {name}"
        )


def check_source(path: str | Path, largest: int = JSON_BYTES) -> Path:
    """The path of a file of at most so many bytes."""
    path = Path(path)
    with _reading(path):
        size = path.stat().st_size
    if not path.is_file():
        raise InputError(f"{path} is not a file; give the path of a file")
    if size > largest:
        raise SizeError(f"{path} has {size:,} bytes; at most {largest:,} are read")
    return path


def read_bytes(path: str | Path, largest: int = JSON_BYTES) -> bytes:
    """The content of a file whose size is checked first."""
    path = check_source(path, largest)
    with _reading(path):
        return path.read_bytes()


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; give the path of an existing file") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def strict_hooks(name: str) -> dict[str, Any]:
    """What the decoder of the standard library is given: unique keys, finite numbers."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise FormatError(f"{name}: key {twice[:40]!r} occurs twice; keys must be unique")
        return record

    def real(digits: str) -> float:
        value = float(digits)
        if value in (float("inf"), float("-inf")):
            raise FormatError(f"{name}: number {digits[:40]} overflows; finite numbers are required")
        return value

    def constant(word: str) -> None:
        raise FormatError(f"{name}: {word} found; finite numbers are required")

    return {"object_pairs_hook": unique, "parse_float": real, "parse_constant": constant}


def parse_json(text: str | bytes, name: str = "input") -> Any:
    """Strict JSON: no duplicate keys, no NaN or Infinity, bounded digits, no halves of characters.

    >>> parse_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        value = json.loads(text, **strict_hooks(name))
        if ESCAPED_SURROGATE.search(text) and _has_surrogate(value):
            raise FormatError(f"{name}: half of a character (a lone surrogate) found; valid Unicode is required")
        return value
    except UnicodeDecodeError:
        raise FormatError(f"{name}: not UTF-8 text; a JSON file is required") from None
    except RecursionError:
        raise FormatError(f"{name}: nested too deeply; the formats need a few levels") from None
    except json.JSONDecodeError as error:
        raise FormatError(f"{name}: not valid JSON at line {error.lineno}: {error.msg}") from None
    except FormatError:
        raise
    except ValueError:
        # Python refuses to convert integers of more than 4300 digits, whose conversion takes quadratic time.
        raise FormatError(f"{name}: a number has too many digits; write large numbers as strings") from None


def _has_surrogate(value: Any) -> bool:
    if isinstance(value, str):
        return _SURROGATE.search(value) is not None
    if isinstance(value, dict):
        return any(map(_has_surrogate, value)) or any(map(_has_surrogate, value.values()))
    return isinstance(value, list) and any(map(_has_surrogate, value))


def read_json(path: str | Path) -> Any:
    """The value of a JSON file, read strictly; see :func:`parse_json`."""
    return parse_json(read_bytes(path), str(path))


def check_header(record: Any, kind: str, name: str, newest: int = 1) -> dict[str, Any]:
    """A JSON object with ``"format": "attngeom/<kind>"`` and a version from 1 to the newest.

    >>> check_header({"format": "attngeom/weights", "version": 1}, "weights", "w.json")["version"]
    1
    """
    if not isinstance(record, dict):
        raise FormatError(f"{name}: a JSON {type(record).__name__} found; an object is required")
    if record.get("format") != f"attngeom/{kind}":
        raise FormatError(f"{name}: format {str(record.get('format'))[:40]!r} found; 'attngeom/{kind}' is required")
    version = record.get("version")
    if type(version) is not int or not 1 <= version <= newest:
        known = "version 1 is read" if newest == 1 else f"versions 1 to {newest} are read"
        raise FormatError(f"{name}: version {str(version)[:40]!r} found; {known}")
    return record


def to_json(record: Any, ascii_only: bool = False) -> str:
    """One line of strict JSON; InputError if a number in it is not finite.

    >>> to_json({"λ": "1/2"}, ascii_only=True)
    '{"\\\\u03bb": "1/2"}'
    """
    try:
        return json.dumps(record, allow_nan=False, ensure_ascii=ascii_only)
    except ValueError:
        raise InputError("a result overflows double precision; give smaller numbers, or exact ones") from None
