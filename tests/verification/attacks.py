"""Certificates that were altered with knowledge of their meaning, sealed again, and the tally of the verifier on them.

``python -m tests.verification.attacks COUNT SEED`` prints how many were tried, accepted, and falsely accepted.
"""

from __future__ import annotations

import copy
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from attngeom.certification import certify
from attngeom.errors import AttnGeomError
from attngeom.exact import QQ
from attngeom.layer.coefficients import Coefficients
from attngeom.layer.files import coefficients_from_json
from attngeom.verification import Certificate, verify
from attngeom.verification.definitions import DEFINITIONS
from attngeom.verification.maps import accessor_of
from tests.certification.cases import change_one, change_table, conjugate_pair, cubics, from_matrices, random_layer
from tests.verification.dimension_attacks import Record, altered_dimensions, is_dimension_claim_true
from tests.verification.oracle import is_true

Attack = Callable[[Record, random.Random], None]


def random_cubics(rng: np.random.Generator) -> Coefficients:
    """One token: rows ν_n · q for one random q, or one cubic with a factor over a cubic field."""
    d, d_out = int(rng.integers(2, 5)), int(rng.integers(1, 3))
    if rng.random() < 0.25:
        return cubics(2, [{(0, 0, 0): 1, (0, 1, 1): int(rng.integers(-4, 5)), (1, 1, 1): int(rng.integers(1, 8))}])
    A = np.tril(rng.integers(-2, 3, (d, d)))
    return from_matrices(QQ.convert(A + A.T), QQ.convert(rng.integers(-2, 3, (d_out, d))), 1)


def layer_records(seed: int) -> Iterator[Record]:
    """True claims about one layer, of every verdict and witness."""
    rng = np.random.default_rng(seed)
    while True:
        kind = rng.integers(0, 6)
        coefficients = (
            random_layer(rng, 3, (1, 2))[0]
            if kind < 2
            else conjugate_pair(rng, 3)
            if kind == 2
            else random_cubics(rng)
            if kind == 3
            else (change_one if kind == 4 else change_table)(random_layer(rng, 3, (2,))[0], rng)
        )
        attention = None if rng.random() < 0.3 else int(rng.integers(1, 4))
        found = certify(coefficients, attention).certificate
        if found is not None:
            yield json.loads(json.dumps(found.to_json()))


def swap_verdict(record: Record, rng: random.Random) -> None:
    claim = record["claim"]
    claim["verdict"] = rng.choice(["realizable", "closure_only", "not_realizable"])
    claim["rank"] = rng.choice([claim["rank"], None, 0, 1, 2])


def change_attention(record: Record, rng: random.Random) -> None:
    record["claim"]["attention"] = rng.choice([None, 1, 2, 3, 4])


def change_rank(record: Record, rng: random.Random) -> None:
    record["claim"]["rank"] = rng.choice([None, 0, 1, 2, 3])


def change_coefficients(record: Record, rng: random.Random) -> None:
    terms = record["claim"]["coefficients"]["terms"]
    action = rng.randrange(5)
    if action == 0 or not terms:
        terms.clear()
    elif action == 1:
        terms.pop(rng.randrange(len(terms)))
    elif action == 2:
        rng.choice(terms)["value"] = rng.choice(["1", "-1", "2", "1/2", "-3"])
    elif action == 3:
        for term in terms:
            term["value"] = term["value"][1:] if term["value"].startswith("-") else "-" + term["value"]
    else:
        for term in terms:
            term["output"][0] = 0
        unique = {json.dumps([x["output"], sorted(x["monomial"])]): x for x in terms}
        terms[:] = unique.values()


def _numbers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _numbers(item, (*path, key))
    elif value is None or isinstance(value, (str, int)):
        yield path


def _set(record: Any, path: tuple[Any, ...], value: Any) -> None:
    for step in path[:-1]:
        record = record[step]
    record[path[-1]] = value


def change_witness(record: Record, rng: random.Random) -> None:
    for _ in range(rng.randrange(1, 4)):
        path = rng.choice(list(_numbers(record["witness"])))
        values = [0, 1, 2, -1, "0", "1", "-1", "2", "1/2", "sqrt(2)", "1*sqrt(-1)", "Q", "Q(sqrt(4))", None]
        _set(record["witness"], path, rng.choice(values))


def change_field(record: Record, rng: random.Random) -> None:
    """Another field or modulus, squares and reducible cubics among them, with the weights left as they are."""
    if "field" in record["witness"]:
        record["witness"]["field"] = rng.choice(
            [f"Q(sqrt({D}))" for D in (-1, -2, -4, 0, 1, 2, 4, 8, 9, 10**40)] + ["Q"]
        )
        return
    if "form" in record["witness"]:
        record["witness"]["form"]["modulus"] = rng.choice(MODULI)


MODULI = [
    ["0", "2", "-3", "1"],
    ["0", "-1", "0", "1"],
    ["-1", "0", "0", "1"],
    ["0", "0", "0", "1"],
    ["1", "0", "1", "1"],
]


def zero_divisors(record: Record, rng: random.Random) -> None:
    """V and B over a ring with zero divisors: all products vanish, V and B do not."""
    coefficients = record["claim"]["coefficients"]
    coefficients["t"], coefficients["terms"] = 1, []
    d, d_out = coefficients["d"], coefficients["d_out"]
    zero = ["0", "0", "0"]
    modulus, v, b = rng.choice(
        [
            (["0", "2", "-3", "1"], ["0", "1", "0"], ["2", "-3", "1"]),
            (["0", "2", "-3", "1"], ["2", "-3", "1"], ["0", "1", "0"]),
            (["0", "-1", "0", "1"], ["0", "1", "0"], ["-1", "0", "1"]),
            (["-1", "0", "0", "1"], ["-1", "1", "0"], ["1", "1", "1"]),
            (["0", "0", "0", "1"], ["0", "0", "1"], ["0", "1", "0"]),
        ]
    )
    V = [[v if (i, j) == (0, 0) else zero for j in range(d)] for i in range(d_out)]
    B = [[b if i == j else zero for j in range(d)] for i in range(d)]
    record["witness"] = {"form": {"modulus": modulus, "V": V, "B": B}}
    record["claim"]["verdict"] = rng.choice(["realizable", "closure_only", "not_realizable"])
    record["claim"]["attention"] = rng.choice([None, 1, 2])
    record["claim"]["rank"] = rng.choice([None, 0, 1, 2, 3])


def complex_weights_of_a_real_map(record: Record, rng: random.Random) -> None:
    """closure_only with weights that are a complex multiple of real ones."""
    points = record["witness"].get("points")
    if not points:
        return swap_verdict(record, rng)
    record["claim"]["verdict"], record["witness"]["field"] = "closure_only", "Q(sqrt(-1))"
    for row in (row for point in points for row in point["A"]):
        row[:] = [str(x) if str(x) == "0" or "sqrt" in str(x) else f"{x}*sqrt(-1)" for x in row]
    for row in (row for point in points for row in point["V"]):
        row[:] = [str(x) if str(x) == "0" or "sqrt" in str(x) else f"{_negative(str(x))}*sqrt(-1)" for x in row]
    return None


def _negative(x: str) -> str:
    return x[1:] if x.startswith("-") else "-" + x


def refute_with_random_data(record: Record, rng: random.Random) -> None:
    """An equation with random data, and its true value: nonzero values must occur only where no layer is."""
    claim = record["claim"]
    try:
        coefficients = coefficients_from_json(claim["coefficients"])
    except AttnGeomError:
        return
    d, d_out, t = coefficients.d, coefficients.d_out, coefficients.t
    family = rng.choice(list(DEFINITIONS))

    def indices(count: int, bound: int, strict: bool = True) -> list[int]:
        distinct = strict and count <= bound
        return sorted(rng.sample(range(bound), count) if distinct else rng.choices(range(bound), k=count))

    def integers(rows: int, columns: int) -> list[list[int]]:
        return [[rng.randrange(-2, 3) for _ in range(columns)] for _ in range(rows)]

    side = rng.choice(["row", "target"])
    number = d if side == "row" else d_out
    quartics = list(combinations_with_replacement(range(d), 4))
    size = rng.randrange(2, 4)
    pairs = [list(x) for x in combinations_with_replacement(range(d), 2)]
    pool = {
        "output": [rng.randrange(d_out), rng.randrange(t)],
        "monomial": sorted([rng.randrange(d), rng.randrange(t)] for _ in range(3)),
        "row": rng.randrange(d_out),
        "column": rng.randrange(t),
        "context": rng.randrange(t),
        "S": indices(2, d, False),
        "R": indices(3, d, False),
        "m": rng.randrange(d),
        "pairs": sorted(rng.sample(pairs, min(size, len(pairs)))),
        "targets": indices(2 if family == "segre-quadric" else 3 if family == "binary-restriction" else size, number),
        "rows": indices(2, d_out) if family == "segre-quadric" else indices(8, 10),
        "W": indices(4, d, False),
        "slice": {"side": side, "index": rng.randrange(d_out if side == "row" else d)},
        "I": indices(3, d),
        "J": indices(3, d),
        "K": indices(3, number, False),
        "line": integers(2, d),
        "square": [[indices(2, number), indices(2, number)] for _ in range(rng.randrange(1, 3))],
        "combination": integers(1, d_out)[0],
        "combinations": integers(2, d_out),
        "plane": integers(3, d),
        "monomials": [list(x) for x in sorted(rng.sample(quartics, min(2 * d, len(quartics))))],
    }
    keys = {
        "support": "output monomial",
        "sequence-copy": rng.choice(["row column R", "row column context S m"]),
        "symmetrization": "row column R",
        "attention-rank": "row pairs targets",
        "segre-quadric": "rows targets W",
        "slice-pencil": "slice I J K",
        "binary-restriction": "slice line targets",
        "sylvester-resultant": "slice line square",
        "lie-plane": "combination plane rows",
        "shared-quadric": "combinations monomials",
    }[family]
    data = {key: pool[key] for key in keys.split()}
    if family == "attention-rank":
        claim["attention"] = size - 1
    try:
        value = DEFINITIONS[family].evaluate(data, accessor_of(coefficients))
        degree = DEFINITIONS[family].degree(data)
    except (AttnGeomError, IndexError):
        return
    claim["verdict"], claim["rank"] = "not_realizable", None
    record["witness"] = {"violated": {"family": family, "degree": degree, "data": data, "value": str(value)}}


ATTACKS: tuple[Attack, ...] = (
    swap_verdict,
    change_attention,
    change_rank,
    change_coefficients,
    change_witness,
    change_field,
    zero_divisors,
    complex_weights_of_a_real_map,
    refute_with_random_data,
    refute_with_random_data,
)


def altered_layers(count: int, seed: int) -> Iterator[Record]:
    """Altered certificates about one layer: one to three attacks, or the witness of another certificate."""
    rng = random.Random(seed)
    source, last = layer_records(seed), None
    for _ in range(count):
        record = next(source)
        other = copy.deepcopy(record)
        if last is not None and rng.random() < 0.1:
            record["witness"] = last["witness"]
        for _ in range(rng.randrange(1, 4)):
            rng.choice(ATTACKS)(record, rng)
        last = other
        yield record


def is_layer_claim_true(claim: Record) -> bool | None:
    """The oracle, and what a new decision says; they must not contradict each other."""
    try:
        truth = is_true(claim)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    if truth is None:
        found = certify(coefficients_from_json(claim["coefficients"]), claim["attention"])
        return found.verdict == claim["verdict"]
    return truth


def seal(record: Record) -> Record:
    """The record with a digest that matches."""
    return Certificate(record["claim"], record["witness"], {"seed": 0}).to_json()


def tally(count: int, seed: int) -> tuple[Counter[str], list[Record]]:
    """How many altered certificates were tried and accepted, and those that were accepted although they are false."""
    total: Counter[str] = Counter()
    false = []
    for records, truth in (
        (altered_layers(count, seed), is_layer_claim_true),
        (altered_dimensions(count // 4, seed), is_dimension_claim_true),
    ):
        for record in map(seal, records):
            total["tried"] += 1
            if verify(record).valid:
                total["accepted"] += 1
                if not truth(record["claim"]):
                    false.append(record)
    return total, false


if __name__ == "__main__":
    counts, wrong = tally(int(sys.argv[1]), int(sys.argv[2]))
    print(dict(counts), "falsely accepted:", len(wrong))
    for found in wrong[:5]:
        print(json.dumps(found))
