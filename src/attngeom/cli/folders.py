"""What a folder is that the commands of ``attngeom model`` were given: of a model, an adapter, or two towers."""

from __future__ import annotations

from pathlib import Path

from attngeom.cli.app import ADAPTER_FILES
from attngeom.errors import InputError
from attngeom.files import read_json

ADAPTER = "a LoRA adapter; it is for models"
PAIR = "a model with two towers; it is for models of one"


def is_adapter(path: Path) -> bool:
    """Whether a folder holds an adapter, or a file is one; nothing is loaded for the answer."""
    return path.name in ADAPTER_FILES or (path / ADAPTER_FILES[0]).is_file()


def is_pair(path: Path) -> bool:
    """Whether a folder, or a config.json, is of a model with two towers; no weights are loaded for the answer."""
    config = path if path.name == "config.json" else path / "config.json"
    if not config.is_file():
        return False
    try:
        given = read_json(config)
    except InputError:
        return False  # the reader of models says what is wrong
    return isinstance(given, dict) and given.get("model_type") in ("clip", "siglip")


def refuse_options(options: dict[str, bool], given: str = ADAPTER) -> None:
    """InputError for an option that is set and means nothing for such a folder."""
    for name, is_set in options.items():
        if is_set:
            raise InputError(f"{name} given for {given}, leave it out")
