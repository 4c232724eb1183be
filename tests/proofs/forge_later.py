"""Forged comparisons, unique heads, ideals and laws of inputs, for :mod:`tests.proofs.forge`."""

from __future__ import annotations

import copy
import json
import random
from fractions import Fraction
from functools import cache

import numpy as np

from attngeom.errors import AttnGeomError
from attngeom.exact.domains import QQ, RR
from attngeom.learning import learning_coefficient
from attngeom.network import Architecture, Weights, random_symmetry
from attngeom.network.symmetry.element import matrix_to_json
from attngeom.verification.functions import evaluate
from tests.proofs.later import functions, ideals, laws, uniqueness
from tests.proofs.mutations import Record


def weights_of(claim: Record, side: str) -> Weights:
    architecture = Architecture.from_json(claim["architecture"])
    return Weights.from_tensors(architecture, {key: QQ.convert(x) for key, x in claim[side].items()}, QQ)


def tensors_of(weights: Weights) -> Record:
    return {key: matrix_to_json(array, QQ) for key, array in weights.tensors()}


@cache
def differ(text: str) -> bool:
    """Whether two networks of a claim have other outputs at a random input, by a forward pass in floats."""
    claim = json.loads(text)
    rng = np.random.default_rng(1)
    sides = [weights_of(claim, side).to(RR) for side in ("first", "second")]
    X = 0.3 * rng.normal(size=(sides[0].architecture.widths[0], sides[0].architecture.tokens))
    with np.errstate(all="ignore"):
        one, two = (evaluate(side, X, RR) for side in sides)
    return bool(np.max(np.abs(one - two)) > 1e-6 * (1 + np.max(np.abs(one))))


def with_functions(record: Record, rng: random.Random) -> Record | None:
    """Same for different, and different for same: a weight changed below its witness, or the word alone."""
    claim, witness = record["claim"], record["witness"]
    if claim["kind"] != "functions":
        return None
    if claim["same"] and rng.random() < 0.6:
        side = rng.choice(["first", "second"])
        tensor = claim[side][rng.choice(sorted(claim[side]))]
        row = rng.choice(tensor)
        place = rng.randrange(len(row))
        row[place] = str(Fraction(row[place]) + rng.choice([1, -1, 2, Fraction(1, 3)]))
        if witness["argument"] == "symmetry" and rng.random() < 0.3:
            scales = rng.choice(witness["scales"])
            scales[0] = str(Fraction(scales[0]) * rng.choice([2, -1, Fraction(1, 2)]))
        if not differ(json.dumps(claim)):
            return None
    elif claim["same"]:
        claim["same"] = False
        shape = claim["architecture"]["widths"][0], claim["architecture"]["tokens"]
        X = [[str(rng.randrange(-9, 10)) for _ in range(shape[1])] for _ in range(shape[0])]
        other = [{"argument": "input", "input": X}, {"argument": "virtual"}, {"argument": "layers"}, witness]
        record["witness"] = rng.choice(other)
    elif rng.random() < 0.5:
        claim["same"] = True
        record["witness"] = rng.choice([{"argument": "virtual"}, {"argument": "layers"}, witness])
    else:
        first = weights_of(claim, "first")
        claim["second"] = tensors_of(random_symmetry(first.architecture, QQ, seed=rng.randrange(99)).apply(first))
    return record


def with_uniqueness(record: Record, rng: random.Random) -> Record | None:
    """A second set that is the first one, or has another function; a theorem for heads that are not unique."""
    claim, witness = record["claim"], record["witness"]
    if claim["kind"] != "uniqueness":
        return None
    weights = weights_of(claim, "tensors")
    if claim["unique"]:
        claim["unique"] = False
        moved = random_symmetry(weights.architecture, QQ, seed=rng.randrange(99)).apply(weights)
        record["witness"] = rng.choice([witness, {"tensors": tensors_of(moved)}, {"tensors": changed(moved, rng)}])
        return record
    if rng.random() < 0.6:
        claim["unique"] = True
        record["witness"] = {"theorem": rng.choice(["H", "D", "S", "one"])}
        return record
    record["witness"] = {"tensors": tensors_of(weights)}
    return record


def changed(weights: Weights, rng: random.Random) -> Record:
    tensors = tensors_of(weights)
    row = rng.choice(tensors[rng.choice([x for x in sorted(tensors) if x[-1] in "VO"])])
    row[0] = str(Fraction(row[0]) + 1)
    return tensors


def with_ideal(record: Record, rng: random.Random) -> Record | None:
    """A module less or more, another degree or number, or sizes outside of the hypotheses of the theorem."""
    claim = record["claim"]
    if claim["kind"] != "ideal":
        return None
    listed, sizes, case = claim["generators"], claim["variety"], rng.randrange(5)
    if case == 0 and listed:
        listed.pop(rng.randrange(len(listed)))
    elif case == 1 and listed:
        module = copy.deepcopy(rng.choice(listed))
        shape = rng.choice(module["shapes"])
        shape[0] += 1
        listed.append(module)
        listed.sort(key=lambda x: (x["degree"], x["shapes"]))
    elif case == 2:
        claim[rng.choice(["dimension", "linear_relations"])] += rng.choice([1, 2, 5])
    elif case == 3:
        # Another rank of A, or another list, at sizes that have one.
        other = rng.choice([x["claim"] for x in ideals()])
        if other["variety"] == sizes or other["generators"] == listed:
            return None
        claim["generators"] = copy.deepcopy(other["generators"])
        record["witness"] = {"theorem": rng.choice(["6", "7", "plane", "plane, two heads", "one token"])}
    else:
        key = rng.choice(["d", "heads", "d_out", "tokens"])
        sizes[key] = 3 + (sizes[key] or 0)
        if key == "d" and sizes["tokens"] is not None:
            sizes["targets"] = sizes["d"]
        if key == "heads":
            sizes["value_width"] = sizes["value_width"] or 1
        record["witness"] = {"theorem": rng.choice(["6", "7", "plane", "plane, two heads", "one token"])}
        # More rows and tokens have lists of their own, with other numbers.
        claim["dimension"] += 1
    return record


def with_law(record: Record, rng: random.Random) -> Record | None:
    """The pair of one law or loss for another one, kept where it is known to be false; or another pair."""
    claim = record["claim"]
    if claim["kind"] != "learning-coefficient" or not {"loss", "vocabulary", "inputs"} & set(claim):
        return None
    case = rng.randrange(3)
    if case == 0:
        claim["lambda"] = str(Fraction(claim["lambda"]) + rng.choice([Fraction(1, 2), Fraction(-1, 2)]))
        return record
    if case == 1 and "loss" in claim:
        del claim["loss"]
    elif "vocabulary" in claim:
        kept = rng.choice([1, 2])
        claim["vocabulary"] = [row[:kept] for row in claim["vocabulary"]]
    elif "inputs" in claim:
        claim["inputs"] = claim["inputs"][: rng.choice([1, 2, 3])]
    else:
        return None
    return record if known_pair(json.dumps(claim)) not in (None, [claim["lambda"], claim["multiplicity"]]) else None


@cache
def known_pair(text: str) -> tuple[object, ...] | list[object] | None:
    """The pair of a claim where it is proven; no pair, (), where it is seen to be smaller than claimed."""
    claim = json.loads(text)
    law = {key: QQ.convert(claim[key]) for key in ("vocabulary", "inputs") if key in claim}
    try:
        answer = learning_coefficient(weights_of(claim, "tensors"), loss=claim.get("loss", "squared"), **law)
    except AttnGeomError:
        return None
    if answer.pair is not None:
        return [str(answer.value), answer.multiplicity]
    return () if answer.upper < Fraction(claim["lambda"]) else None


SOURCES = {with_functions: functions, with_uniqueness: uniqueness, with_ideal: ideals, with_law: laws}
