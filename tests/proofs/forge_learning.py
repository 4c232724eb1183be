"""Forged learning coefficients, for :mod:`tests.proofs.forge`: other pairs, aimed ranks, other strata."""

from __future__ import annotations

import copy
import json
import random
from fractions import Fraction
from functools import cache

from attngeom.errors import AttnGeomError
from attngeom.exact.domains import QQ
from attngeom.learning import learning_coefficient
from attngeom.network import Architecture, Weights
from tests.proofs.examples import examples
from tests.proofs.mutations import Record
from tests.proofs.sources import deep_learning, formal_learning, product_learning

BY_RANKS = ("B", "R", "bounds")


@cache
def learning_sources() -> list[Record]:
    """Certificates of all theorems on learning coefficients; those of formal ranks and of products more than once."""
    own = [x for x in examples().values() if x["claim"]["kind"] == "learning-coefficient"]
    return [*own, *deep_learning(), *formal_learning(), *product_learning()]


def with_learning(record: Record, rng: random.Random) -> Record | None:
    """Another pair, with the witness of another theorem half of the time."""
    claim, witness = record["claim"], record["witness"]
    if claim["kind"] != "learning-coefficient":
        return None
    if rng.random() < 0.5:
        claim["lambda"] = str(Fraction(claim["lambda"]) + rng.choice([Fraction(1, 2), Fraction(-1, 2), Fraction(1, 4)]))
    else:
        claim["multiplicity"] += rng.choice([1, 2])
    if rng.random() < 0.5:
        other = copy.deepcopy(rng.choice(learning_sources())["witness"])
        other["ranks"] = witness["ranks"]
        record["witness"] = other
    return record


def with_ranks(record: Record, rng: random.Random) -> Record | None:
    """A smaller pair, and ranks that show it: fewer samples or tokens, another prime or name, another theorem of ranks.

    Where the theorem reads λ off the rank, so many samples are left that this rank is the forged 2λ.
    """
    claim, witness = record["claim"], record["witness"]
    if witness.get("theorem") not in BY_RANKS:
        return None
    less = rng.choice([1, 1, 2, 3])
    claim["lambda"] = str(Fraction(claim["lambda"]) - Fraction(less, 2))
    witness["theorem"] = rng.choice([witness["theorem"], *BY_RANKS])
    aim = rng.randrange(4)
    if aim == 0:
        witness["samples"] = max(1, int(2 * Fraction(claim["lambda"])))
    elif aim == 1:
        witness["prime"] = rng.choice([2, 3, 5, 7, 11, 251, 65521])
    elif aim == 2:
        witness["tokens"] = max(1, witness["tokens"] - 1)
    witness["point"] = f"aimed/{rng.randrange(10**6)}"
    return record


def with_stratum(record: Record, rng: random.Random) -> Record | None:
    """Weights on another stratum, with their ranks, beside the pair of the old one: kept where it is known as false."""
    claim = record["claim"]
    if claim["kind"] != "learning-coefficient":
        return None
    tensors = claim["tensors"]
    name = rng.choice(sorted(tensors))
    letter = name.rsplit(".", 1)[1]
    case = rng.randrange(4)
    if case == 0:
        tensors[name] = [["0" for _ in row] for row in tensors[name]]
    elif case == 1:
        tensors[name] = [tensors[name][0] for _ in tensors[name]]
    elif case == 2:
        other = rng.choice([x for x in sorted(tensors) if x.rsplit(".", 1)[1] == letter])
        if [len(tensors[other]), len(tensors[other][0])] != [len(tensors[name]), len(tensors[name][0])]:
            return None
        tensors[name] = tensors[other]
    else:
        tensors[name] = [[str(rng.randrange(-2, 3)) for _ in row] for row in tensors[name]]
    truth = known_pair(json.dumps([claim["architecture"], tensors]))
    if truth is None or truth[0] == [claim["lambda"], claim["multiplicity"]]:
        return None
    record["witness"]["ranks"] = truth[1]
    return record


@cache
def known_pair(text: str) -> tuple[list[object], list[list[int | None]]] | None:
    """The pair at given weights and the ranks of their heads, where a theorem gives it; None elsewhere."""
    given, tensors = json.loads(text)
    try:
        architecture = Architecture.from_json(given)
        weights = Weights.from_tensors(architecture, {k: QQ.convert(x) for k, x in tensors.items()}, QQ)
        found = learning_coefficient(weights)
    except AttnGeomError:
        return None
    if found.certificate is None:
        return None
    claim, witness = found.certificate.claim, found.certificate.witness
    return [claim["lambda"], claim["multiplicity"]], witness["ranks"]
