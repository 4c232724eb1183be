"""Forged transcripts, traced programs and maps of several layers, for :mod:`tests.proofs.forge`."""

from __future__ import annotations

import base64
import copy
import json
import math
import random
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np

from attngeom.exact.domains import QQ, BalancedField
from attngeom.exact.hankel import hankel_rank
from attngeom.exact.modular import rref_mod_p
from attngeom.layer.polynomial_maps import map_from_json
from attngeom.verification.interpreter import PRIMES, Interpreter
from attngeom.verification.programs import CheckedProgram
from tests.proofs.mutations import Record
from tests.proofs.sources import deep_maps


def with_transcript(record: Record, rng: random.Random) -> Record | None:
    """One wrong product: a residue of a block or of the sequence, and the rank that the sequence shows after it."""
    claim, lower = record["claim"], record["witness"]["lower"]
    key, p = rng.choice(["blocks", "sequence", "sequence"]), lower["prime"]
    data = bytearray(base64.b64decode(lower[key]))
    place = rng.randrange(len(data))
    data[place] = (data[place] + rng.randrange(1, p)) % p
    lower[key] = base64.b64encode(bytes(data)).decode()
    if key == "sequence" and rng.random() < 0.8:
        field = BalancedField(p)
        values = np.frombuffer(bytes(data), dtype=np.uint8).reshape(-1, lower["left"], lower["right"])
        shown = hankel_rank(field.from_residues(values.astype(np.int64)), len(values), field)
        claim["dimension"] += rng.choice([0, 1, -1, min(shown, 3)])
    return record


def with_program(record: Record, rng: random.Random) -> Record | None:
    """Another dimension of a traced program: columns and rows to fit, symmetries left out, invented, or aimed."""
    claim, lower, upper = record["claim"], record["witness"]["lower"], record["witness"]["upper"]
    weights = sum(int(np.prod(shape)) for name, _, shape, _ in claim["program"]["nodes"] if name == "parameter")
    change = rng.choice([-2, -1, -1, 1, 1, 2])
    claim["dimension"] += change
    if not 0 < claim["dimension"] <= weights:
        return None
    if change < 0:
        for key in ("samples", "outputs", "columns"):
            del lower[key][change:]
        if upper["method"] in ("weights", "coefficients"):
            upper["method"] = "symmetries"
        fields = upper.setdefault("fields", []) if upper["method"] != "slice" else upper["slice_fields"]
        if rng.random() < 0.4:
            fields += at_the_point(record, rng)
            return record
        for _ in range(-change):
            # A field that looks like the others: an old one with another factor, sign or place.
            model = copy.deepcopy(rng.choice(fields)) if fields else [[0, 0, "1"]]
            term = rng.choice(model)
            kind = rng.randrange(3)
            if kind == 0:
                term[2] = rng.choice(["2", "-1", "1/2"])
            elif kind == 1:
                term[1] = rng.randrange(weights)
            else:
                model.remove(term)
            if model:
                fields.append(model)
        return record
    spare = [column for column in range(weights) if column not in lower["columns"]]
    lower["columns"] += rng.sample(spare, min(change, len(spare)))
    lower["samples"] += [[rng.randrange(10**6) for _ in sample] for sample in lower["samples"][:change]]
    lower["outputs"] += [-1] * change
    if "fields" in upper and len(upper["fields"]) > change:
        del upper["fields"][:change]
    elif rng.random() < 0.5:
        record["witness"]["upper"] = {"method": rng.choice(["weights", "coefficients"])}
    return record


def at_the_point(record: Record, rng: random.Random) -> list[list[list[object]]]:
    """Translations of weights that no row of the minor sees: they are no symmetries, but look so at the named point."""
    lower, p = record["witness"]["lower"], PRIMES[0]
    interpreter = Interpreter(CheckedProgram.from_json(record["claim"]["program"]), lower["point"], lower["region"])
    rows = [interpreter.gradient(sample, output) for sample, output in zip(lower["samples"], lower["outputs"])]
    reduced = rref_mod_p(np.stack(rows), p)
    fields = []
    for column in reduced.free.tolist():
        moves = {column: 1} | {k: int(-reduced.matrix[i, column]) % p for i, k in enumerate(reduced.pivots)}
        fields.append([[k, None, str(c)] for k, c in moves.items() if c])
    return rng.sample(fields, len(fields))


def with_angles(record: Record, rng: random.Random) -> Record | None:
    """(cos mα − cos nβ or 1) w_1 x_1 beside w_2 x_2, where the difference is 0, for dimension 2; or (cos α − cos β) w_1
    x_1 with both angles in class 0, for dimension 0."""
    first, m, n = rng.uniform(0.01, 3), rng.randrange(1, 17), rng.randrange(1, 17)
    leaves = [["parameter", [], [2], {"name": "w"}], ["input", [], [2], {"name": "x"}]]

    def circle(classes: list[int], multiples: list[int], angles: list[float]) -> list[Any]:
        data = {"part": "cos", "classes": classes, "multiples": multiples, "angles": angles}
        return ["circle", [], [len(classes)], data]

    case = rng.randrange(3)
    if case == 0:
        tables = [circle([0], [1], [angle]) for angle in (first, first + rng.uniform(0.01, 1))]
    elif case == 1:
        tables = [circle([0], [m], angles := [first, rng.choice([1, -1]) * first * m / n]), circle([1], [n], angles)]
    else:
        turn = 2 * math.pi / (m := rng.choice([m, 2**n // 8 or 1]))
        tables = [circle([0], [m], [turn, first]), ["constant", [], [1], {"entries": ["1"]}]]
    nodes = [
        *leaves, *tables,
        ["add", [2, 3], [1], {"coefficients": [1, -1]}],
        ["constant", [], [1], {"entries": ["1"]}],
        ["gather", [4, 5], [2], {"index": [0, 1 if case else -1]}],
        ["contract", [0, 1], [2], {"subscripts": "i,i->i"}],
        ["contract", [6, 7], [2], {"subscripts": "i,i->i"}],
    ]  # fmt: skip
    size = 2 if case else 0
    program = {"format": "attngeom/program", "version": 1, "nodes": nodes, "output": len(nodes) - 1}
    rows = {"samples": [[0], [1]][:size], "outputs": [0, 1][:size], "columns": [0, 1][:size]}
    lower = {"point": f"aimed/{rng.randrange(10**6)}", "region": 0, **rows}
    fields = [[[k, None, "1"]] for k in range(2)]
    upper: Record = {"method": "weights"} if case else {"method": "symmetries", "fields": fields}
    claim = {"kind": "network", "program": program, "dimension": size}
    return {"claim": claim, "witness": {"lower": lower, "upper": upper}}


def with_rounding(record: Record, rng: random.Random) -> Record | None:
    """1[a − b − k > 0] w x for dimension 1: a − b − k is negative, but positive in floats, where a and b are rounded
    apart; in every other case times exp(w)/exp(w)."""
    unit = 2 ** rng.randrange(6, 200)
    near = rng.randrange(1, 3)
    half, k = 2**52 * unit + unit // 2, rng.randrange(2 * near + 1, unit // 2)
    numbers = [["constant", [], [], {"entries": [str(n)]}] for n in (half + near, half - near, k)]
    nodes: list[Any] = [["parameter", [], [], {"name": "w"}], ["input", [], [], {"name": "x"}], *numbers]
    nodes += [["add", [2, 3, 4], [], {"coefficients": [1, -1, -1]}]]
    product = {"subscripts": ",->"}
    has_functions = rng.random() < 0.5
    if has_functions:
        nodes += [["formal", [0], [], {"name": "exp"}], ["inverse", [6], [], {}]]
        nodes += [["contract", [6, 7], [], product], ["contract", [8, 5], [], product]]
    nodes += [["pattern", [len(nodes) - 1], [], {"kind": "positive"}], ["contract", [0, 1], [], product]]
    nodes += [["contract", [len(nodes) - 2, len(nodes) - 1], [], product]]
    program = {"format": "attngeom/program", "version": 1, "nodes": nodes, "output": len(nodes) - 1}
    sample = [0] * (2 if has_functions else 1)
    lower = {"point": f"aimed/{rng.randrange(10**6)}", "region": 0, "samples": [sample], "outputs": [0], "columns": [0]}
    claim = {"kind": "network", "program": program, "dimension": 1}
    return {"claim": claim, "witness": {"lower": lower, "upper": {"method": "weights"}}}


def with_layers(record: Record, rng: random.Random) -> Record | None:
    """Weights beside the map of other weights, one coefficient apart, or a refutation of a map that they compute."""
    claim, witness = record["claim"], record["witness"]
    terms = claim["coefficients"]["terms"]
    if claim["verdict"] == "realizable":
        choice = rng.randrange(4)
        if choice == 0:
            claim["causal"] ^= True
            if expands(claim, witness):
                return None
        elif choice == 1:
            term = rng.choice(terms)
            term["value"] = str(Fraction(term["value"]) * rng.choice([2, Fraction(1, 2), -1]))
        elif choice == 2:
            terms.remove(rng.choice(terms))
        else:
            rows = rng.choice([*witness["attention"], witness["values"]])
            row = rng.choice(rows)
            row[rng.randrange(len(row))] = str(rng.randrange(-3, 4))
            if expands(claim, witness):
                return None
        return record
    # A map that a network computes, with the refutation of another one of the same sizes, its value made to fit.
    sizes = ("layers", "d", "d_out", "t")
    same = [x["claim"] for x in deep_maps() if x["claim"]["verdict"] == "realizable"]
    same = [
        x for x in same if all({**x, **x["coefficients"]}[k] == {**claim, **claim["coefficients"]}[k] for k in sizes)
    ]
    if not same:
        return None
    record["claim"] = {**json.loads(json.dumps(rng.choice(same))), "verdict": "not_realizable"}
    (data,) = witness.values()
    if isinstance(data, dict) and "exponents" in data:
        # A coefficient that is there, most of the time.
        term = rng.choice(record["claim"]["coefficients"]["terms"])
        d, t = (record["claim"]["coefficients"][key] for key in ("d", "t"))
        if len(data["exponents"]) == d * t and rng.random() < 0.7:
            counts = Counter(map(tuple, term["monomial"]))
            data["exponents"] = [counts[row, column] for column in range(t) for row in range(d)]
            data["output"], data["value"] = term["output"], term["value"]
        else:
            data["value"] = rng.choice(["1", "-1", data["value"]])
    return record


def expands(claim: Record, witness: Record) -> bool:
    """Whether changed weights compute the same map at three inputs, by the definition: the change may be seen by none.

    Equal values at three inputs do not show equal maps, but a forgery that is dropped is no loss.
    """
    given, rng = map_from_json(claim["coefficients"], 3 ** claim["layers"]), random.Random(7)
    for _ in range(3):
        X = QQ.convert([[rng.randrange(-9, 10) for _ in range(given.t)] for _ in range(given.d)])
        Z = X
        for rows in witness["attention"]:
            scores = Z.T @ QQ.convert(rows) @ Z
            Z = Z @ (np.triu(scores) if claim["causal"] else scores)
        if not np.array_equal(QQ.convert(given.at(X)), QQ.convert(witness["values"]) @ Z):
            return False
    return True
