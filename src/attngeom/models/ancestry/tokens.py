"""Names of tokens, and tokens that no text contains: read from the tokenizer files of a folder, without a library.

Tokens that a model never saw come in kinds, and only tokens of one kind are treated alike by its maker: ids that the
tokenizer does not use, bytes that UTF-8 does not have, and names that say that they are reserved.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attngeom.errors import AttnGeomError, InputError
from attngeom.files import read_json

NEVER = (0xC0, 0xC1, *range(0xF5, 0x100))
"""Bytes that no text in UTF-8 contains."""
RESERVED = re.compile(r"reserved|unused", re.IGNORECASE)
FILES = ("tokenizer.json", "vocab.json")


@dataclass(frozen=True)
class Vocabulary:
    """Token → id, and whether its characters stand for bytes, as GPT-2 writes them."""

    ids: Mapping[str, int]
    of_bytes: bool


def read_vocabulary(folder: Path | None) -> Vocabulary | None:
    """The vocabulary of a folder with tokenizer.json or vocab.json; None where there is none that can be read."""
    if folder is None:
        return None
    for name in FILES:
        path = folder / name
        if not path.is_file():
            continue
        try:
            table = read_json(path)
        except AttnGeomError:
            continue
        vocabulary = _from_tokenizer(table) if name == "tokenizer.json" else _from_table(table)
        if vocabulary is not None:
            return vocabulary
    return None


def _from_tokenizer(table: Any) -> Vocabulary | None:
    model = table.get("model") if isinstance(table, dict) else None
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocabulary, list):  # Unigram: pairs of token and score
        vocabulary = {entry[0]: i for i, entry in enumerate(vocabulary) if isinstance(entry, list) and entry}
    if not isinstance(vocabulary, dict):
        return None
    ids = _ids(vocabulary)
    added = table.get("added_tokens")
    for entry in added if isinstance(added, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("content"), str) and isinstance(entry.get("id"), int):
            ids[entry["content"]] = entry["id"]
    kinds = str([table.get("pre_tokenizer"), table.get("decoder")])
    return Vocabulary(ids, "ByteLevel" in kinds)


def _from_table(table: Any) -> Vocabulary | None:
    if not isinstance(table, dict):
        return None
    return Vocabulary(_ids(table), any("Ġ" in token for token in table))


def _ids(table: Mapping[Any, Any]) -> dict[str, int]:
    return {token: i for token, i in table.items() if isinstance(token, str) and isinstance(i, int) and i >= 0}


def unused_tokens(vocabulary: Vocabulary, rows: int) -> dict[str, tuple[int, ...]]:
    """By kind the ids below ``rows`` that no text in UTF-8 contains.

    >>> unused_tokens(Vocabulary({"a": 0, "<0xC0>": 1, "<0xFF>": 2}, False), 5)
    {'ids beyond the tokenizer': (3, 4), 'bytes outside UTF-8': (1, 2)}
    """
    taken = set(vocabulary.ids.values())
    names = [f"<0x{byte:02X}>" for byte in NEVER] + ([chr(byte) for byte in NEVER] if vocabulary.of_bytes else [])
    kinds = {
        "ids beyond the tokenizer": [i for i in range(rows) if i not in taken],
        "bytes outside UTF-8": [vocabulary.ids[name] for name in names if name in vocabulary.ids],
        "reserved names": [i for token, i in vocabulary.ids.items() if RESERVED.search(token)],
    }
    kept = {kind: tuple(sorted({i for i in ids if i < rows})) for kind, ids in kinds.items()}
    return {kind: ids for kind, ids in kept.items() if len(ids) > 1}


def parse_tokens(text: str) -> tuple[int, ...]:
    """Ids and ranges of ids, both ends included.

    >>> parse_tokens("3, 10-12")
    (3, 10, 11, 12)
    """
    numbers: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:\s*-\s*(\d{1,9}))?\s*", part)
        low, high = (0, -1) if match is None else (int(match[1]), int(match[2] or match[1]))
        if not low <= high < low + 10**6:
            raise InputError(f"unused tokens {part.strip()[:40]!r} given; ids and ranges are required, as in 3,100-131")
        numbers += range(low, high + 1)
    if len(set(numbers)) != len(numbers):
        raise InputError("unused tokens given twice; each id once is required")
    return tuple(numbers)
