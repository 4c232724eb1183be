"""Files that nobody meant to write: bytes and JSON values altered at random, from a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from attngeom.verification import Certificate

VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    3,
    251,
    2**31 - 1,
    2**63,
    10**30,
    -(10**40),
    0.0,
    -0.0,
    0.5,
    1e-320,
    1e308,
    -1e150,
    "",
    "0",
    "1/0",
    "0/1",
    "-3/7",
    "1e9999",
    "9" * 5000,
    "nan",
    "[red]x[/nope]",
    "\u202e\x00\x1b[31m",
    "x" * 5000,
    "../../etc",
    [],
    {},
    [[]],
    [[[[[[1]]]]]],
    {"": ""},
    {"widths": [1, 1]},
)
"""What a place in a JSON file may be replaced with."""
BYTES = (b"\x00", b"\xff", b"[", b"]", b"{", b"}", b'"', b",", b"-", b"9" * 40, b"e999", b"NaN", b"\\ud800")
NUMBERS = ("0", "0", "1", "-1", "2", "1/3", "-7/5", "1000000007", "1/1000000007", "1" + "0" * 60, "1/1" + "0" * 60)
"""What an exact entry may be replaced with."""
SCALES = (0.0, 0.0, -1.0, 1.0, 2.0, 1e-8, 1e8, 1e-80, 1e80, 1e-150, 1e150, 1e-160, 1e160, 1e-300, 1e300, 1 + 1e-12)
"""By what a float entry, a row or a tensor may be multiplied."""


def mutate_bytes(data: bytes, draw: random.Random) -> bytes:
    """One to four small changes: a byte flipped, a piece cut, copied, moved to another place, or a token put in."""
    for _ in range(draw.randint(1, 4)):
        size = len(data)
        first, second = sorted((draw.randint(0, size), draw.randint(0, size)))
        second = min(second, first + draw.choice((1, 2, 8, 64, size)))
        change = draw.randrange(6)
        if change == 0 and size:
            place = draw.randrange(size)
            data = data[:place] + bytes([data[place] ^ (1 << draw.randrange(8))]) + data[place + 1 :]
        elif change == 1:
            data = data[:first] + data[second:]
        elif change == 2:
            data = data[:second] + data[first:second] + data[second:]
        elif change == 3:
            data = data[:first]
        elif change == 4:
            data = data[:first] + draw.choice(BYTES) + data[first:]
        else:
            data = data[:first] + bytes(draw.randrange(256) for _ in range(second - first)) + data[second:]
    return data[: 2**20]


def mutate_json(data: bytes, draw: random.Random) -> bytes:
    """One to three places of a JSON value replaced, removed, repeated, scaled or exchanged; the text stays JSON."""
    record = json.loads(data)
    for _ in range(draw.randint(1, 3)):
        record = _mutate_value(record, draw)
    return json.dumps(record).encode()


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        found += _places(part, (*path, key))
    return found


def _edit(value: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    if not path:
        return change(value)
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _edit(copy[path[0]], path[1:], change)
    return copy


def _get(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _mutate_value(record: Any, draw: random.Random) -> Any:
    places = _places(record)
    path = draw.choice(places)
    kind = draw.randrange(6)
    if kind == 0:
        return _edit(record, path, lambda _: draw.choice(VALUES))
    if kind == 1 and path:
        return _edit(record, path[:-1], lambda parent: _without(parent, path[-1]))
    if kind == 2 and path:
        return _edit(record, path[:-1], lambda parent: _repeated(parent, path[-1], draw))
    if kind == 3:
        return _edit(record, path, lambda value: _scaled(value, draw))
    if kind == 4:
        return _edit(record, path, lambda _: _get(record, draw.choice(places)))
    return _edit(record, path, lambda value: [value] if draw.random() < 0.5 else {"x": value})


def _without(parent: Any, key: Any) -> Any:
    if isinstance(parent, dict):
        return {name: value for name, value in parent.items() if name != key}
    return parent[:key] + parent[key + 1 :]


def _repeated(parent: Any, key: Any, draw: random.Random) -> Any:
    if isinstance(parent, dict):
        return {**parent, f"{key}{draw.choice(('', '2', '_', ' '))}": parent[key]}
    return parent[:key] + [parent[key]] * draw.choice((2, 3, 50)) + parent[key + 1 :]


def _scaled(value: Any, draw: random.Random) -> Any:
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return draw.choice((value + 1, value - 1, -value, value * 1000, value * 10**18))
    if isinstance(value, float):
        return draw.choice((-value, value * 1e-170, value * 1e-30, min(value * 1e100, 1e308), value * (1 + 1e-13)))
    if isinstance(value, str):
        return draw.choice((value + "1", "-" + value, value[1:], value + "/3", value.upper(), value * 2))
    if isinstance(value, list):
        return draw.choice((value[::-1], value * 2, value[:1], draw.sample(value, len(value))))
    return dict(reversed(value.items()))


def mutate_entries(data: bytes, draw: random.Random) -> bytes:
    """Exact or float entries of a JSON file replaced by other numbers: the file stays valid, the object is extreme."""
    record = json.loads(data)
    places = [path for path in _places(record) if _is_entry(path, _get(record, path))]
    common = draw.choice(NUMBERS)
    for path in draw.sample(places, draw.randint(1, min(6, len(places)))) if places else ():
        number = draw.choice((common, common, draw.choice(NUMBERS)))
        record = _edit(record, path, lambda old, new=number: new if isinstance(old, str) else old * draw.choice(SCALES))
    return json.dumps(record).encode()


def _is_entry(path: tuple[Any, ...], value: Any) -> bool:
    within = "tensors" in path or "value" in path or "terms" in path[-1:] or "witness" in path or "inputs" in path
    return within and (isinstance(value, float) or (isinstance(value, str) and value[-1:].isdigit()))


def mutate_claim(data: bytes, draw: random.Random) -> bytes:
    """A certificate with another claim or witness, sealed again as a forger would."""
    record = json.loads(mutate_json(data, draw) if draw.random() < 0.5 else mutate_entries(data, draw))
    try:
        return json.dumps(Certificate(record["claim"], record["witness"], record["provenance"]).to_json()).encode()
    except Exception:
        # What a certificate cannot even be made of is given as it is.
        return json.dumps(record).encode()


def mutate_tensors(data: bytes, draw: random.Random) -> bytes:
    """Tensors of a safetensors file with entries, rows or all of them scaled, repeated or removed."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    tensors = {name: array.astype(np.float64) for name, array in load(data).items()}
    for _ in range(draw.randint(1, 3)):
        name = draw.choice(sorted(tensors))
        array = tensors[name].copy()
        part: Any = draw.choice((..., draw.randrange(len(array)), tuple(draw.randrange(k) for k in array.shape)))
        with np.errstate(all="ignore"):
            change = draw.randrange(4)
            if change == 0 and len(array) > 1:
                array[0] = array[-1]
            elif change == 1:
                array[...] = tensors[draw.choice([k for k in sorted(tensors) if tensors[k].shape == array.shape])]
            else:
                array[part] *= draw.choice(SCALES)
        tensors[name] = np.nan_to_num(array)
    return bytes(save(tensors, metadata=header.get("__metadata__")))


def mutate_scales(data: bytes, draw: random.Random) -> bytes:
    """Tensors of a safetensors file, each, or each row, times a number between 1e-320 and 1e300, or all times one."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    width, common = draw.choice((10, 100, 300)), draw.random() < 0.3
    exponent = draw.uniform(-width, width)
    tensors = {}
    with np.errstate(all="ignore"):
        for name, array in load(data).items():
            rows = len(array) if draw.random() < 0.2 else 1
            powers = [exponent if common else draw.uniform(-1.06 * width, width) for _ in range(rows)]
            # A power below the smallest float is applied in two steps.
            factors = [10.0 ** (np.array(powers) / 2).reshape(-1, *(1,) * (array.ndim - 1))] * 2
            tensors[name] = np.nan_to_num(array.astype(np.float64) * factors[0] * factors[1])
    return bytes(save(tensors, metadata=header.get("__metadata__")))


def mutate_values(data: bytes, draw: random.Random) -> bytes:
    """Float coefficients, all times one number between 1e-300 and 1e300, some of them times another."""
    record = json.loads(data)
    factor, other = (10.0 ** draw.uniform(-300, 300) for _ in range(2))
    for term in record["terms"]:
        value = term["value"]
        if isinstance(value, float):
            scaled = value * (other if draw.random() < 0.1 else factor)
            term["value"] = min(max(scaled, -1e308), 1e308)
    return json.dumps(record).encode()
