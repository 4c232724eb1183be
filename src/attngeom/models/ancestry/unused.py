"""An exact test of independence: tokens that one model never saw have no reason to find themselves in another one.

Let A never have seen n tokens of one kind. Its first values and its training treat them alike, so the law of A does not
change when their rows of embedding and head are permuted, all else fixed. Let B be independent of A. The stream is
aligned by the *other* tokens, rows are centred over the kind, and rows of A are matched with rows of B by an optimal
assignment. All of this commutes with permuting the rows of A, and ties fall at random because the names of A are drawn
anew first: the matching is a uniform permutation, whatever B is. So the number of tokens that find their own name has
the law of the fixed points of a uniform permutation, P(at least k) ≤ 1/k!. Tokens of several kinds are matched within
their kind: kinds are not alike, and two makers who both leave unused ids at zero would seem to be related. Rows of A at
zero, and rows that occur more than once, are left out: they tell nothing, and given which names have the others, the
law of A is still that of permuted rows. So padding, or rows that a tool filled, do not find themselves because the
other maker had the same.

Names of tokens, and tokens that no text contains, are read from the tokenizer files of a folder, without a library.
They come in kinds: ids that the tokenizer does not use, bytes that UTF-8 does not have, and names that say that they
are reserved.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np

from attngeom.errors import AttnGeomError, InputError
from attngeom.exact.arrays import Array
from attngeom.files import read_json
from attngeom.limits.work import MATCHED_TOKENS
from attngeom.models.ancestry.streams import find_change
from attngeom.models.matching import assign
from attngeom.models.views import ModelView

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


def fixed_points(count: int) -> list[Fraction]:
    """P(a uniform permutation of ``count`` things has exactly k fixed points), k = 0 … count.

    >>> [str(p) for p in fixed_points(3)]
    ['1/3', '1/2', '0', '1/6']
    """
    parts = list(accumulate(Fraction((-1) ** j, factorial(j)) for j in range(count + 1)))
    return [parts[count - k] / factorial(k) for k in range(count + 1)]


def tail(counts: Sequence[int], own: int) -> Fraction:
    """P(at least ``own`` fixed points) in independent uniform permutations of so many things each.

    >>> tail([4], 4), tail([2, 2], 4)
    (Fraction(1, 24), Fraction(1, 4))
    """
    law = [Fraction(1)]
    for count in counts:
        step = fixed_points(count)
        law = [
            sum((law[i] * step[k - i] for i in range(max(0, k - count), min(k, len(law) - 1) + 1)), Fraction(0))
            for k in range(len(law) + count)
        ]
    return sum(law[own:], Fraction(0))


@dataclass(frozen=True, kw_only=True)
class UnusedTest:
    """How many unused tokens find themselves, and the chance of so many if the models are independent."""

    tokens: int
    own: int
    p: float
    """Times the number of parents that were tried."""
    kinds: Mapping[str, int]
    seed: int

    @property
    def assumption(self) -> str:
        return "the parent never saw these tokens"

    @property
    def sentence(self) -> str:
        return (
            f"{self.own} of {self.tokens} unused tokens find themselves, p = {self.p:.2g}, if the parent never saw "
            "them: child and parent share initial values or ancestry"
            if self.p <= 0.05
            else f"{self.own} of {self.tokens} unused tokens find themselves, p = {self.p:.2g}, if the parent never "
            "saw them: no sign of common initial values or ancestry"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "tokens": self.tokens, "own": self.own, "p": self.p, "assumption": self.assumption,
            "kinds": dict(self.kinds), "seed": self.seed,
        }  # fmt: skip


def unused_test(
    parent: ModelView, child: ModelView, kinds: Mapping[str, Sequence[int]], *, seed: int = 0, tries: int = 1,
    tokens: Array | None = None,
) -> UnusedTest | None:  # fmt: skip
    """The test for tokens that the parent never saw, by kind; None where fewer than two can be told apart."""
    twin = _names_in_child(parent.model.spec.vocabulary, child.model.spec.vocabulary, tokens)
    rng = np.random.default_rng([seed, 77])
    near, far = _tables(parent), _tables(child)
    chosen: list[tuple[str, Array]] = []
    for kind, ids in kinds.items():
        kept = np.array(sorted(i for i in set(ids) if i in twin), dtype=int)
        if len(kept) > MATCHED_TOKENS:
            kept = np.sort(rng.choice(kept, MATCHED_TOKENS, replace=False))
        kept = _told_apart(near, kept)
        if len(kept) > 1:
            chosen.append((kind, kept))
    if not chosen:
        return None
    every = {int(i) for ids in kinds.values() for i in ids}
    aligned, stack = find_change(parent, child, every, tokens), child.model.spec.stack.name
    back = aligned.change[stack].T
    if aligned.near is not None:
        own_back = aligned.near[stack].T
        near = {part: table @ own_back for part, table in near.items()}
    own = 0
    for _, places in chosen:
        names, others = rng.permutation(places), np.array([twin[int(i)] for i in places])
        scores = np.zeros((len(places), len(places)))
        for part in sorted(near.keys() & far.keys()):
            scores = scores + _centred(near[part][names]) @ _centred(far[part][others] @ back).T
        order, columns = assign(-scores)
        own += int((names[order] == places[columns]).sum())
    counts = [len(places) for _, places in chosen]
    p = min(1.0, tries * float(tail(counts, own)))
    return UnusedTest(tokens=sum(counts), own=own, p=p, kinds={kind: len(places) for kind, places in chosen}, seed=seed)


def _told_apart(tables: Mapping[str, Array], places: Array) -> Array:
    """The places whose rows are not zero and occur once.

    >>> _told_apart({"head": np.array([[1.0], [2], [0], [1], [3], [0]])}, np.arange(6)).tolist()
    [1, 4]
    """
    rows = np.concatenate([table[places] for table in tables.values()], axis=1)
    _, values, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    return np.asarray(places[(counts[values.reshape(-1)] == 1) & rows.any(axis=1)])


def _names_in_child(rows: int, child_rows: int, tokens: Array | None) -> dict[int, int]:
    """Ids of the parent → ids of the child of the same name; ids that no tokenizer names are named by themselves."""
    pairs = {} if tokens is None else {int(i): int(j) for i, j in tokens}
    taken = set(pairs.values())
    return {i: i for i in range(min(rows, child_rows)) if i not in taken} | pairs


def _tables(view: ModelView) -> dict[str, Array]:
    """Rows of tokens in the embedding and in the head."""
    tables = {"embedding": view.tables()["embedding"][1]}
    head = view.reader()
    if head is not None and len(head.weight) == view.model.spec.vocabulary:
        tables["head"] = head.weight
    return tables


def _centred(rows: Array) -> Array:
    """Rows less their mean, of norm 1; rows that are equal become zero."""
    centred = rows - rows.mean(axis=0)
    sizes = np.linalg.norm(centred, axis=1)
    floor = 1e-12 * (np.linalg.norm(rows, axis=1).max() or 1.0)
    return np.asarray(np.where(sizes[:, None] > floor, centred / np.maximum(sizes, 1e-300)[:, None], 0.0))
