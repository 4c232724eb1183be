"""``make forge``: false certificates of every kind, built by search, through ``verify`` and the lone checker.

A forgery starts from a true certificate and is aimed: its claim is false by construction, and its witness is what would
fool a careless checker: a minor of the right size for a wrong dimension, chosen where it is nonzero if there is one;
the claim of another architecture; exchanged claims and witnesses; a point with another name, prime or support; a
theorem cited just outside of its hypotheses; a value that agrees with the changed coefficients; one wrong product in a
transcript, with the rank that it then shows; invented symmetries of a traced program, classes of angles that are not
independent, signs that rounding makes, identities of functions that are taken for free; weights of deep networks beside
the map of others, and refutations of maps that networks compute; learning coefficients that too few samples, a small
prime or the pair of another stratum would show; networks that differ called the same, heads with a second set called
unique, lists of generators with a module less, the pair of one law of inputs for another. Every digest is right.
What is counted: forgeries, and those that a checker accepts, which must be none. They come in pieces of 5,000 with
seeds that follow each other; with ``--out FILE`` the figures of each finished piece are kept, and a later run goes on.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import islice
from pathlib import Path

import attngeom_check

from attngeom.dimensions import dimension
from attngeom.errors import AttnGeomError
from attngeom.network import Architecture
from attngeom.verification import verify
from attngeom.verification.reading import describe_claimed
from attngeom.verification.theorems import THEOREMS
from tests.proofs.examples import examples
from tests.proofs.forge_later import SOURCES as LATER
from tests.proofs.forge_later import with_functions, with_ideal, with_law, with_uniqueness
from tests.proofs.forge_learning import learning_sources, with_learning, with_ranks, with_stratum
from tests.proofs.forge_maps import with_angles, with_layers, with_program, with_rounding, with_transcript
from tests.proofs.forge_values import with_relations
from tests.proofs.mutations import Record, seal, standalone
from tests.proofs.sources import deep_maps, traced, transcripts


def with_dimension(record: Record, rng: random.Random) -> Record | None:
    """A minor for a dimension that is wrong by one to three, at another point, prime or support."""
    claim, lower = record["claim"], record["witness"].get("lower")
    if lower is None or claim["kind"] != "dimension":
        return None
    architecture = Architecture.from_json(claim["architecture"])
    N, wrong = architecture.num_parameters, claim["dimension"] + rng.choice([-3, -2, -1, -1, 1, 1, 2, 3])
    if not 0 <= wrong <= N:
        return None
    claim["dimension"] = wrong
    lower["samples"] = max(lower["samples"], wrong + 4)
    lower["rows"] = rng.sample(range(lower["samples"]), wrong)
    lower["columns"] = rng.sample(range(N), wrong)
    lower["point"] = f"aimed/{rng.randrange(10**6)}"
    if rng.random() < 0.3:
        lower["prime"] = rng.choice([2, 3, 5, 7, 251, 65521, 8388593, 2147483629])
    if rng.random() < 0.3:
        layer = rng.choice(lower["support"])
        place = rng.randrange(4)
        if layer[place] is not None:
            layer[place] = max(1, layer[place] - 1)
    if rng.random() < 0.4:
        record["witness"]["upper"] = rng.choice(
            [{"method": "count"}, {"method": "symmetries", "prime": rng.choice([2, 3, 7, 65521]), "point": "aimed"}]
        )
    return record


def of_another_architecture(record: Record, rng: random.Random) -> Record | None:
    """The same evidence for an architecture of another dimension."""
    claim = record["claim"]
    if claim["kind"] != "dimension" or "lower" not in record["witness"]:
        return None
    given = claim["architecture"]
    key = rng.choice(["residual", "causal", "kind", "tokens", "attention", "widths", "heads", "value_width"])
    if key in ("residual", "causal"):
        given[key] ^= True
    elif key == "kind":
        given[key] = rng.choice([kind for kind in ("lightning", "softmax", "sigmoid") if kind != given[key]])
    elif key in ("attention", "widths"):
        place = rng.randrange(len(given[key]))
        given[key][place] = max(1, given[key][place] + rng.choice([-1, 1]))
    elif key == "value_width":
        given[key] = rng.choice([None, 1, 2, 3])
    else:
        given[key] = max(1, given[key] + rng.choice([-1, 1]))
    return record if is_false(claim) else None


_KNOWN: dict[str, int | None] = {}
MAX_PARAMETERS = 150


def known_dimension(given: Record) -> int | None:
    """The dimension of a small architecture by a minor and an upper bound, −1 if there is no such architecture."""
    text = json.dumps(given, sort_keys=True)
    if text not in _KNOWN:
        try:
            architecture = Architecture.from_json(given)
            small = architecture.num_parameters <= MAX_PARAMETERS
            answer = dimension(architecture, prove=True, method="minor") if small else None
            _KNOWN[text] = answer.dimension if answer is not None and answer.is_proven else None
        except ValueError:
            _KNOWN[text] = -1
    return _KNOWN[text]


def is_false(claim: Record) -> bool:
    """Whether a claim about a dimension is known to be false, by a proof that is not the one cited."""
    known = known_dimension(claim["architecture"]) if claim["kind"] == "dimension" else None
    return known is not None and known != claim["dimension"]


POOL = 600
"""Small architectures for which theorems are cited; the dimension of each is proven once."""


@cache
def small_architecture(number: int) -> Architecture:
    """A random architecture of at most three layers and widths up to three."""
    rng = random.Random(number)
    residual, heads = rng.random() < 0.3, rng.choice([1, 1, 2])
    width = rng.randrange(1, 4)
    widths = [width if residual else rng.randrange(1, 4) for _ in range(rng.choice([2, 2, 3, 4]))]
    return Architecture(
        widths,
        [rng.randrange(1, 4) for _ in widths[1:]],
        rng.choice([1, 2, 3]),
        rng.choice(["lightning", "softmax", "sigmoid"]),
        heads=heads,
        value_width=rng.choice([1, 2, 3]) if heads > 1 else rng.choice([None, None, 1, 2]),
        residual=residual,
        causal=rng.random() < 0.3,
    )


def at_the_edge(record: Record, rng: random.Random) -> Record | None:
    """A theorem cited for a small architecture, inside or outside of its hypotheses, with a value that is wrong."""
    if "hypotheses" not in record["witness"]:
        return None
    architecture = small_architecture(rng.randrange(POOL))
    claim, name = record["claim"], rng.choice(sorted(THEOREMS))
    claim["architecture"] = describe_claimed(architecture)
    record["witness"] = {"theorem": name, "hypotheses": record["witness"]["hypotheses"]}
    try:
        # What the theorem would say: its value where its hypotheses hold, or those of the theorem of another kind.
        claim["dimension"] = THEOREMS[rng.choice([name, *sorted(THEOREMS)])](architecture)
    except AttnGeomError:
        claim["dimension"] = known_dimension(claim["architecture"]) or 1
    claim["dimension"] += rng.choice([0, 0, -1, 1, architecture.heads])
    return record if is_false(claim) else None


def with_coefficients(record: Record, rng: random.Random) -> Record | None:
    """One coefficient, weight, verdict or rank changed; a claimed value follows the coefficients where it can."""
    claim, witness = record["claim"], record["witness"]
    if claim["kind"] not in ("layer", "heads"):
        return None
    terms = claim["coefficients"]["terms"]
    if claim["verdict"] != "not_realizable" and "form" not in witness:
        choice = rng.randrange(4)
        if choice == 0 and terms:
            term = rng.choice(terms)
            term["value"] = str(
                Fraction(term["value"]) + rng.choice([Fraction(1), Fraction(-1, 3), Fraction(1, 10**9)])
            )
            if term["value"] == "0":
                terms.remove(term)
        elif choice == 1 and terms:
            terms.remove(rng.choice(terms))
        elif choice == 2 and terms:
            term = copy.deepcopy(rng.choice(terms))
            term["output"][1] = rng.randrange(claim["coefficients"]["t"])
            if any(x["output"] == term["output"] and sorted(x["monomial"]) == sorted(term["monomial"]) for x in terms):
                return None
            terms.append(term)
        elif claim["kind"] == "layer" and claim["rank"]:
            claim["attention"] = claim["rank"] = claim["rank"] - 1 or None
            if claim["rank"] is None:
                return None
        else:
            return None
        return record
    if "violated" not in witness or claim["kind"] != "layer":
        return None
    # A layer that is realizable, with the refutation of another map, its value made to fit.
    layer = examples()[rng.choice(["layer: rational", "layer: two points", "layer: real quadratic"])]
    claim["coefficients"] = copy.deepcopy(layer["claim"]["coefficients"])
    claim["attention"] = None
    violated = witness["violated"]
    try:
        value, _ = attngeom_check.FAMILIES[violated["family"]](
            violated["data"], attngeom_check.Cubic(claim["coefficients"])
        )
    except (attngeom_check.Invalid, attngeom_check.Unknown, KeyError, ValueError):
        value = Fraction(1)
    violated["value"] = str(value if rng.random() < 0.5 else rng.choice([Fraction(1), Fraction(-7, 2)]))
    return record


def with_heads(record: Record, rng: random.Random) -> Record | None:
    """Fewer heads or smaller widths than the evidence is for, or a commutant with a pair less."""
    claim, witness = record["claim"], record["witness"]
    if claim["kind"] != "heads":
        return None
    if claim["verdict"] == "realizable":
        if not witness["heads"] or len(witness["heads"]) < claim["heads"]:
            return None
        claim["heads"] -= 1
        if rng.random() < 0.5:
            witness["heads"].pop(rng.randrange(len(witness["heads"])))
        return record if claim["heads"] >= 1 else None
    # The coefficients of its own heads, which exist, with the evidence against another map.
    own = examples()["heads: its own heads"]["claim"]
    if (claim["heads"], claim["attention"], claim["value"]) != (own["heads"], own["attention"], own["value"]):
        claim.update({key: own[key] for key in ("heads", "attention", "value")})
    claim["coefficients"] = copy.deepcopy(own["coefficients"])
    if "commutant" in witness and rng.random() < 0.5:
        witness["commutant"]["basis"].pop()
        witness["commutant"]["argument"] = {"count": rng.choice([0, 1])}
    return record


def with_laws(record: Record, rng: random.Random) -> Record | None:
    """More laws or fewer than there are, with fields that fit the number."""
    claim, witness = record["claim"], record["witness"]
    if claim["kind"] != "laws":
        return None
    change = rng.choice([-2, -1, 1, 2])
    claim["count"] += change
    fields, samples = witness["gradients"], witness["samples"]
    if change > 0:
        del fields[len(fields) - change :]
    else:
        fields += [rng.randrange(samples) for _ in range(-change)]
    witness["point"] = f"aimed/{rng.randrange(10**6)}"
    return record


def exchanged(record: Record, rng: random.Random) -> Record | None:
    """The claim of one certificate with the witness of another of the same kind that proves something else."""
    same = [x for x in examples().values() if x["claim"]["kind"] == record["claim"]["kind"]]
    other = copy.deepcopy(rng.choice(same))
    if other["claim"] == record["claim"] or record["claim"]["kind"] in ("layer", "layers", "heads", "network"):
        return None
    large = Architecture.from_json(record["claim"]["architecture"]).num_parameters > MAX_PARAMETERS
    if large and "lower" in other["witness"]:
        # Refused after seconds of upper bounds, the same few each time.
        return None
    record["witness"] = other["witness"]
    if record["claim"]["kind"] == "dimension":
        record["claim"]["dimension"] += rng.choice([-1, 1])
    elif record["claim"]["kind"] == "laws":
        record["claim"]["count"] += rng.choice([-1, 1])
    else:
        record["claim"]["multiplicity"] += 1
    return record


Forger = Callable[[Record, random.Random], Record | None]
FORGERS: dict[Forger, int] = {
    with_dimension: 17,
    of_another_architecture: 10,
    at_the_edge: 12,
    with_coefficients: 13,
    with_heads: 4,
    with_laws: 10,
    with_learning: 8,
    with_ranks: 4,
    with_stratum: 4,
    exchanged: 4,
    with_transcript: 4,
    with_program: 3,
    with_angles: 1,
    with_rounding: 1,
    with_relations: 2,
    with_layers: 5,
    with_functions: 4,
    with_uniqueness: 3,
    with_ideal: 3,
    with_law: 2,
}
"""The share of each, more or less in percent."""


OWN_SOURCES = {with_transcript: transcripts, with_layers: deep_maps, **LATER}
OWN_SOURCES |= dict.fromkeys((with_program, with_angles, with_rounding, with_relations), traced)
OWN_SOURCES |= dict.fromkeys((with_learning, with_ranks, with_stratum), learning_sources)


def sources(forger: Forger) -> list[Record]:
    """The true certificates from which it starts."""
    given = OWN_SOURCES[forger]() if forger in OWN_SOURCES else list(examples().values())
    if forger is exchanged:
        given = [*given, *learning_sources()]
    return [x for x in given if any(forger(copy.deepcopy(x), random.Random(k)) for k in range(5))]


@cache
def source_texts() -> dict[Forger, list[str]]:
    """Claims and witnesses of the true certificates as texts, made once for all pieces: to read is to copy."""
    return {
        forger: [json.dumps({"claim": x["claim"], "witness": x["witness"]}) for x in sources(forger)]
        for forger in FORGERS
    }


def forgeries(seed: int) -> Iterator[tuple[str, str, Record]]:
    """The forger, the kind and the sealed certificate, without end, in the shares of the table."""
    rng = random.Random(seed)
    by_forger = source_texts()
    while True:
        (forger,) = rng.choices(list(FORGERS), list(FORGERS.values()))
        found = None
        while found is None:
            found = forger(json.loads(rng.choice(by_forger[forger])), rng)
        yield forger.__name__, found["claim"]["kind"], seal(found["claim"], found["witness"])


def functions_of(claim: Record) -> set[str]:
    """The functions of a traced program: exp, log, gauss, sin, cos."""
    nodes = claim["program"]["nodes"] if claim["kind"] == "network" else []
    return {data["name"] for operation, _, _, data in nodes if operation == "formal"}


def run(count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """So many forgeries through both checkers: how many of each forger, and those that one of them accepted."""
    counts: Counter[str] = Counter()
    accepted: list[str] = []
    for forger, kind, record in islice(forgeries(seed), count):
        ours, (word, reason) = verify(record), standalone(record)
        counts[f"{forger}, {kind}"] += 1
        counts[f"kind {kind}"] += 1
        for name in functions_of(record["claim"]):
            counts[f"programs with {name}"] += 1
        counts["unknown to verify"] += ours.valid is None
        counts["unknown to the lone checker"] += word == "unknown"
        if ours.valid or word == "valid":
            accepted.append(f"{forger}: verify {ours.valid}, lone checker {word} ({reason}): {json.dumps(record)}")
    return counts, accepted


PIECE = 5000


def run_pieces(count: int, seed: int, kept: Path | None) -> Iterator[Record]:
    """The figures of each piece; a finished one is taken from the file, a new one is added to it."""
    lines = kept.read_text().splitlines() if kept is not None and kept.exists() else []
    done = {(x["seed"], x["count"]): x for x in map(json.loads, lines)}
    for number, start in enumerate(range(0, count, PIECE)):
        key = seed + number, min(PIECE, count - start)
        if key not in done:
            began = time.process_time()
            counts, accepted = run(key[1], key[0])
            seconds = round(time.process_time() - began)
            done[key] = {"seed": key[0], "count": key[1], "cpu_s": seconds, "counts": counts, "accepted": accepted}
            if kept is not None:
                with kept.open("a") as stream:
                    stream.write(json.dumps(done[key]) + "\n")
        yield done[key]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="figures of finished pieces, one JSON object in each line")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    accepted: list[str] = []
    for piece in run_pieces(given.count, given.seed, given.out):
        counts.update(piece["counts"])
        accepted += piece["accepted"]
        print(
            f"seed {piece['seed']}: {piece['count']:,} in {piece['cpu_s']} CPU s, {len(accepted)} accepted", flush=True
        )
    for name, number in sorted(counts.items()):
        print(f"{number:8,}  {name}")
    for line in accepted[:20]:
        print(line[:3000])
    print(f"{given.count:,} forgeries, from seed {given.seed} on: {len(accepted)} accepted")
    return 1 if accepted else 0


if __name__ == "__main__":
    sys.exit(main())
