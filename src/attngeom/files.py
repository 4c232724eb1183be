"""Files that survive: strict JSON in, atomic writes out. A leaf that knows nothing of attention."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from attngeom.errors import FormatError, InputError, SizeError

MAX_JSON_BYTES = 2**31


def write_atomic(path: str | Path, data: str | bytes) -> None:
    """Write under a temporary name in the same folder, flush to disk, then rename: readers see all or nothing."""
    path = Path(path)
    content = data.encode() if isinstance(data, str) else data
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; give a path in a writable folder") from None
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; nothing was changed") from None
    finally:
        temporary.unlink(missing_ok=True)


def read_bytes(path: str | Path, largest: int = MAX_JSON_BYTES) -> bytes:
    """The content of a file whose size is checked first."""
    path = Path(path)
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise InputError(f"{path} is not a file; give the path of a file")
        if size > largest:
            raise SizeError(f"{path} has {size:,} bytes; at most {largest:,} are read")
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; give the path of an existing file") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def parse_json(text: str | bytes, name: str = "input") -> Any:
    """Strict JSON: no duplicate keys, no NaN or Infinity, bounded digits.

    >>> parse_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """

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

    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        return json.loads(text, object_pairs_hook=unique, parse_float=real, parse_constant=constant)
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


def read_json(path: str | Path) -> Any:
    """The value of a JSON file, read strictly; see :func:`parse_json`."""
    return parse_json(read_bytes(path), str(path))


def check_header(record: Any, kind: str, name: str) -> dict[str, Any]:
    """A JSON object with ``"format": "attngeom/<kind>"`` and version 1.

    >>> check_header({"format": "attngeom/weights", "version": 1}, "weights", "w.json")["version"]
    1
    """
    if not isinstance(record, dict):
        raise FormatError(f"{name}: a JSON {type(record).__name__} found; an object is required")
    if record.get("format") != f"attngeom/{kind}":
        raise FormatError(f"{name}: format {str(record.get('format'))[:40]!r} found; 'attngeom/{kind}' is required")
    if record.get("version") != 1 or isinstance(record.get("version"), bool):
        raise FormatError(f"{name}: version {str(record.get('version'))[:40]!r} found; version 1 is read")
    return record


def to_json(record: Any) -> str:
    """One line of strict JSON."""
    return json.dumps(record, allow_nan=False, ensure_ascii=False)
