"""State files: results of single weights, bound to their run by a digest, so that a later run can go on from them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attngeom.equations.ideal.records import WeightResult
from attngeom.errors import FormatError, InputError
from attngeom.files import check_header, read_json, to_json, write_atomic

KIND = "implicitization"


def digest(record: Mapping[str, Any]) -> str:
    """SHA-256 of a record without its own digest; it tells an edited or damaged file from one that was written here.

    >>> digest({"a": 1, "digest": "x"}) == digest({"a": 1})
    True
    """
    content = {key: record[key] for key in sorted(record) if key != "digest"}
    return hashlib.sha256(to_json(content).encode()).hexdigest()


def write_state(path: Path, header: Mapping[str, Any], results: Iterable[WeightResult]) -> None:
    """Write the results of a run that ``header`` describes."""
    record = {"format": f"attngeom/{KIND}", "version": 1, **header, "results": [r.to_json() for r in results]}
    write_atomic(path, to_json({**record, "digest": digest(record)}))


def read_state(path: Path, header: Mapping[str, Any]) -> list[WeightResult]:
    """The results in a state file of the same run; FormatError if it was edited, InputError if it is of another run."""
    record = check_header(read_json(path), KIND, str(path))
    for key, value in header.items():
        if record.get(key) != value:
            raise InputError(
                f"{path} holds a run with {key} = {str(record.get(key))[:60]}, not {value}; give another file"
            )
    if record.get("digest") != digest(record):
        raise FormatError(f"{path}: damaged or edited, its digest does not fit; remove the file and start again")
    try:
        return [WeightResult.from_json(data) for data in record["results"]]
    except (KeyError, TypeError, ValueError):
        raise FormatError(f"{path}: damaged results; remove the file and start again") from None
