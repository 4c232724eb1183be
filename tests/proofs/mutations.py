"""Changed certificates with a right digest, and the verdicts of both checkers on them."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import attngeom_check

from attngeom.verification import Certificate, verify

Record = dict[str, Any]


def seal(claim: Record, witness: Record, version: int = 2) -> Record:
    """A certificate with the right digest, whatever it says."""
    return Certificate(claim, witness, {"seed": 0}, version).to_json()


def standalone(record: Record) -> tuple[str, str]:
    """What the lone file says: valid, invalid or unknown, and why."""
    try:
        return "valid", attngeom_check.check(json.dumps(record))
    except attngeom_check.Invalid as error:
        return "invalid", str(error)
    except attngeom_check.Unknown as error:
        return "unknown", str(error)


def disagree(record: Record) -> str | None:
    """How the two checkers differ; None if they agree, or if one of them cannot tell."""
    ours, (word, why) = verify(record), standalone(record)
    if ours.valid is None or word == "unknown" or ours.valid == (word == "valid"):
        return None
    return f"verify says {ours.valid} ({ours.reason}), the lone file {word} ({why})"


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values inside of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def mutate(record: Record, rng: random.Random) -> Record:
    """One to three values of the claim or the witness changed, removed, repeated, exchanged."""
    found = {"claim": copy.deepcopy(record["claim"]), "witness": copy.deepcopy(record["witness"])}
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        path = rng.choice([place for place in places(found) if len(place) > 1] or [("claim", "kind")])
        owner: Any = found
        for key in path[:-1]:
            owner = owner[key]
        old = owner[path[-1]]
        action = rng.randrange(10)
        if action < 6:
            owner[path[-1]] = change(old, rng)
        elif action == 6 and isinstance(owner, dict):
            del owner[path[-1]]
        elif action == 7 and isinstance(owner, list):
            owner.insert(path[-1], copy.deepcopy(old))
        elif action == 8 and isinstance(owner, list):
            del owner[path[-1]]
        elif isinstance(owner, list):
            other = rng.randrange(len(owner))
            owner[path[-1]], owner[other] = owner[other], old
        else:
            owner[rng.choice(["seed", "x", "point", "R"])] = rng.choice([0, "1", None, []])
    return found


def change(old: Any, rng: random.Random) -> Any:
    """Another value: close to the old one most of the time."""
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return rng.choice([old + 1, old - 1, -old, 0, old * 2, str(old), float(old), None, 10**19])
    if isinstance(old, str):
        near = ["0", "1", "-1", "2/4", f"{old}0", f"-{old}", f" {old}", old[:-1], f"{old}+1*sqrt(2)", "3*sqrt(2)", 1]
        words = ["realizable", "closure_only", "not_realizable", "count", "symmetries", "softmax", "Q", "Q(sqrt(8))"]
        return rng.choice([*near, *words, "Q(sqrt(5))", "Q(sqrt(-3))"])
    if old is None:
        return rng.choice([1, 2, 0, "1", [], False])
    return rng.choice([None, [], {}, 0, "1"])
