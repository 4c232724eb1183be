"""Strict reading of claims and witnesses: exact keys, canonical rationals, indices in range and in order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Any

from flint import fmpq

from attngeom.errors import AttnGeomError, FormatError
from attngeom.exact.domains import QQ, Array, Domain
from attngeom.exact.numbers import as_fmpq
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Weights


class Unproven(AttnGeomError):
    """A well-formed witness that does not prove its claim."""


def require(condition: bool, reason: str) -> None:
    """Unproven, with the reason, unless the condition holds."""
    if not condition:
        raise Unproven(reason)


def read_object(value: Any, keys: Collection[str], name: str) -> Mapping[str, Any]:
    """A JSON object with exactly these keys: a key that is not read could mean anything to its writer.

    >>> read_object({"a": 1}, ["a"], "claim")
    {'a': 1}
    """
    if not isinstance(value, Mapping):
        raise FormatError(f"{name}: {show(value)} found; an object with the keys {', '.join(sorted(keys))} is required")
    odd = sorted(map(str, set(value) ^ set(keys)))
    if odd:
        word = "unknown" if odd[0] in value else "missing"
        raise FormatError(f"{name}: key {show(odd[0])} is {word}; the keys are {', '.join(sorted(keys))}")
    return value


def show(value: Any) -> str:
    """A value of a file in an error message: short, printable, in one line.

    >>> show("a" * 50)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…"
    """
    text = repr(value)
    return text if len(text) <= 40 else text[:40] + "…"


def read_choice(value: Any, choices: Collection[str], name: str) -> str:
    """One of these words."""
    if not isinstance(value, str) or value not in choices:
        raise FormatError(f"{name} {show(value)} found; one of {', '.join(choices)} is required")
    return value


def read_list(value: Any, length: int, what: str) -> list[Any]:
    """A list of so many entries, which are unread."""
    if type(value) is not list or len(value) != length:
        raise FormatError(f"{show(value)} found; a list of {length} {what} is required")
    return value


def describe_claimed(architecture: Architecture) -> dict[str, Any]:
    """Every field of the architecture of a claim, also those with their usual values.

    >>> describe_claimed(Architecture((2, 1), 1))["temperature"]
    '1'
    """
    return {**architecture.to_json(), "temperature": str(architecture.temperature)}


def in_words(architecture: Architecture) -> str:
    """Every field of an architecture by name, also those with their usual values: nothing of a claim is left unsaid.

    >>> in_words(Architecture((2, 1), 1))[:42]
    'widths [2, 1], attention [1], tokens 3, ki'
    """
    return ", ".join(f"{name} {json.dumps(value)}" for name, value in describe_claimed(architecture).items())


def read_integer(value: Any, least: int, most: int, name: str) -> int:
    """An integer from ``least`` to ``most``."""
    if type(value) is not int or not least <= value <= most:
        raise FormatError(f"{name}: {show(value)} found; an integer from {least} to {most} is required")
    return value


def read_places(value: Any, count: int, bound: int, name: str) -> list[int]:
    """A list of so many different indices below a bound."""
    places = [read_integer(index, 0, bound - 1, name) for index in read_list(value, count, name)]
    if len(set(places)) != count:
        raise FormatError(f"{name} must hold different indices")
    return places


def read_index(value: Any, bound: int) -> int:
    """An integer in [0, bound)."""
    return read_integer(value, 0, bound - 1, "index")


def read_indices(value: Any, length: int, bound: int, strict: bool = True) -> list[int]:
    """A list of indices in increasing order, strictly unless repetitions are allowed."""
    indices = [read_index(x, bound) for x in read_list(value, length, "indices")]
    if any(x > y or (strict and x == y) for x, y in pairwise(indices)):
        raise FormatError(f"indices {show(indices)} found; increasing order is required")
    return indices


def read_integers(value: Any, rows: int, columns: int) -> list[list[int]]:
    """A matrix of integers with at most 19 digits."""
    integers = read_matrix(value, rows, columns, "integers")
    if any(type(x) is not int or abs(x) >= 10**19 for row in integers for x in row):
        raise FormatError(f"a {rows}×{columns} matrix of integers is required")
    return integers


def read_rational(value: Any) -> fmpq:
    """A rational string in lowest terms.

    >>> read_rational("-3/7")
    -3/7
    """
    if type(value) is str:
        rational = as_fmpq(value)
        if str(rational) == value:
            return rational
    raise FormatError(f"{show(value)} found; a rational string in lowest terms is required")


def read_matrix(value: Any, rows: int, columns: int, name: str) -> list[list[Any]]:
    """Row lists of the required shape, entries unread."""
    if type(value) is not list or len(value) != rows or any(type(x) is not list or len(x) != columns for x in value):
        raise FormatError(f"{name}: a {rows}×{columns} matrix, row by row, is required")
    return value


def read_array(value: Any, shape: tuple[int, int], domain: Domain, name: str) -> Array:
    """A matrix of exact numbers as canonical strings, rationals in lowest terms."""
    rows = read_matrix(value, *shape, name)
    if any(type(x) is not str for row in rows for x in row):
        raise FormatError(f"{name}: entries must be strings")
    array = domain.convert(rows).reshape(shape)
    if [domain.format(x) for x in array.ravel()] != [x for row in rows for x in row]:
        raise FormatError(f"{name}: entries must be written in lowest terms")
    return array


def read_tensors(architecture: Architecture, value: Any, name: str) -> Weights:
    """All tensors of an architecture by their names, with rational entries in lowest terms."""
    shapes = dict(architecture.tensor_shapes())
    given = read_object(value, list(shapes), name).items()
    tensors = {key: read_array(rows, shapes[key], QQ, key) for key, rows in given}
    return Weights.from_tensors(architecture, tensors, QQ)


def digest_of(weights: Weights) -> str:
    """A digest of rational weights, for the words of a claim."""
    text = json.dumps([[name, [str(x) for x in array.ravel()]] for name, array in weights.tensors()])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
