"""One door: commands that take idealised weights see whether they were given a model, an adapter or something else.

``attngeom compare A B`` of two folders is ``attngeom model compare A B``; what nobody can read is told in one line with
the next step.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from attngeom.errors import InputError
from attngeom.files import refuse_format
from attngeom.limits.sizes import SAFETENSORS_HEADER

COMMANDS = ("compare", "inspect", "canonicalize", "teleport", "fingerprint")
Kind = Literal["weights", "model", "other"]


def lead(arguments: list[str]) -> list[str]:
    """The command line with ``model`` before a command that was given models or adapters.

    >>> lead(["compare", "a.json", "b.json"])
    ['compare', 'a.json', 'b.json']
    """
    place = next((i for i, word in enumerate(arguments) if not word.startswith("-")), None)
    if place is None or arguments[place] not in COMMANDS or {"-h", "--help"} & set(arguments):
        return arguments
    paths = [Path(word) for word in _given(arguments[place + 1 :])]
    kinds = {path: kind_of(path) for path in paths}
    models = [path for path, kind in kinds.items() if kind == "model"]
    if not models:
        return arguments
    odd = next((path for path, kind in kinds.items() if kind == "weights"), None)
    if odd is not None:
        raise InputError(
            f"{odd.name[:60]} has idealised weights, {models[0].name[:60]} is a model; give two of one kind"
        )
    return [*arguments[:place], "model", *arguments[place:]]


def _given(words: list[str]) -> list[str]:
    """Words that name something that is there, and are not the value of an option."""
    return [
        word
        for i, word in enumerate(words)
        if not word.startswith("-") and not (i and words[i - 1] in ("--out", "--inputs", "--targets"))
    ]


def kind_of(path: Path) -> Kind:
    """What lies at a path; InputError, with the next step, for what is not read."""
    if path.is_file():
        refuse_format(path)
    if path.is_dir():
        return "model"
    if path.suffix == ".safetensors" and path.is_file():
        return "weights" if _is_idealised(path) or not (path.parent / "config.json").is_file() else "model"
    if path.name == "config.json" and path.is_file():
        return "model"
    return "weights" if path.is_file() else "other"


def _is_idealised(path: Path) -> bool:
    """Whether a safetensors file says in its header that it has weights of an idealised network."""
    try:
        with path.open("rb") as stream:
            size = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(size)) if size <= SAFETENSORS_HEADER else {}
    except (OSError, ValueError):
        return False
    about = header.get("__metadata__") if isinstance(header, dict) else None
    return isinstance(about, dict) and "attngeom" in about
