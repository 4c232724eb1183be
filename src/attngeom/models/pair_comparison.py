"""Do two pairs of towers score images and texts alike? Tower by tower, behind turns and scales of what is compared."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attngeom import digits
from attngeom.errors import AttnGeomError, InputError
from attngeom.exact.arrays import Array
from attngeom.limits.rounding import TENSORS_AGREE
from attngeom.limits.trials import OUTPUT_CHECKS
from attngeom.limits.work import OUTPUT_PRODUCTS
from attngeom.models.comparison import Level, ModelComparison, Scope, compare
from attngeom.models.crews import Crew, Progress, hired
from attngeom.models.evaluation import forward
from attngeom.models.fingerprints import Fingerprint, digest_of, fingerprint
from attngeom.models.model import Model
from attngeom.models.pairs import TwoTowers, without
from attngeom.models.pooling import pooled
from attngeom.models.reading import ROUNDOFF
from attngeom.models.residues import P, apply, dot, integers, random_residues
from attngeom.models.witness import allowed_gap, relative_gap
from attngeom.results import Result, Standing, weakest


@dataclass(frozen=True, kw_only=True, eq=False)
class PairComparison(Result):
    """Whether two pairs give every image and text the same score, and the comparison of each tower."""

    same_function: bool | None
    towers: Mapping[str, ModelComparison] = field(default_factory=dict)

    @property
    def is_positive(self) -> bool | None:
        return self.same_function

    @property
    def verdict(self) -> str:
        return {True: "same function", False: "different functions", None: "undecided"}[self.same_function]

    def to_json(self) -> dict[str, Any]:
        towers = {name: tower.to_json() for name, tower in self.towers.items()}
        return {**self.select("same_function", "standing", "reason"), "towers": towers, "seed": self.seed}

    def rows(self) -> Mapping[str, Any]:
        towers = {f"tower of {name}s": tower.verdict for name, tower in self.towers.items()}
        return {"verdict": self.verdict, **towers, **self.select("standing", "reason", "seed")}

    def __str__(self) -> str:
        return self.text()

    def text(self, *, every: bool = False) -> str:
        """One sentence, then those of the towers."""
        lines = [f"{self.verdict} ({self.standing}): {self.reason}"]
        for name, tower in self.towers.items():
            lines += [f"tower of {name}s: {tower.text(every=every)}"]
        return "\n".join(lines)


def compare_pairs(
    one: TwoTowers, other: TwoTowers, *, level: Level = "auto", scope: Scope = "layer", tolerance: float | None = None,
    unit: float | None = None, seed: int = 0, progress: Progress | None = None, crew: Crew = 1,
) -> PairComparison:  # fmt: skip
    """Compare two models with two towers; the options are those of `compare`."""
    if one.kind != other.kind:
        raise InputError(f"a {one.kind} and a {other.kind} given; their scores are different functions, give two alike")
    unit = max(ROUNDOFF[one.dtype], ROUNDOFF[other.dtype]) if unit is None else unit
    near = other.with_heads_of(one)
    with hired(crew) as workers:
        towers = {
            name: compare(
                tower, near.towers[name], level=level, scope=scope, tolerance=tolerance, unit=unit, seed=seed,
                progress=progress, crew=workers,
            )
            for name, tower in one.towers.items()
        }  # fmt: skip
    constants = _constants(one, other, unit)
    verdicts = {name: tower.same_function for name, tower in towers.items()}
    standing: Standing = weakest(*(tower.standing for tower in towers.values()))
    if constants is not None:
        same: bool | None = constants[0]
        reason, standing = constants[1], "estimate"
    elif False in verdicts.values():
        wrong = next(name for name, verdict in verdicts.items() if verdict is False)
        same, reason, standing = False, f"tower of {wrong}s: {towers[wrong].reason}", "estimate"
        if not _heads_agree(one, near, unit):
            same, reason = _checked(one, other, unit, reason, seed)
    elif None in verdicts.values():
        same, reason = None, "a tower is undecided"
    else:
        same, reason = True, "both towers agree" + (" behind one turn of what they write" if one.turns else "")
    standing = "undecided" if same is None else standing
    return PairComparison(same_function=same, standing=standing, reason=reason, towers=towers, seed=seed)


def _constants(one: TwoTowers, other: TwoTowers, unit: float) -> tuple[bool | None, str] | None:
    """The verdict of what lies outside the towers, if it differs."""
    mine, theirs = one.numbers, other.numbers
    for name in mine.keys() | theirs.keys():
        a, b = mine.get(name, 0.0), theirs.get(name, 0.0)
        if abs(a - b) > TENSORS_AGREE * unit * max(abs(a), abs(b), 1.0):
            return False, f"{name} differs: {a:.6g} and {b:.6g}"
    ends = [pair.towers["text"].config.get("eos_token_id") for pair in (one, other)]
    if one.kind == "clip" and ends[0] != ends[1]:
        return None, f"the token that stands for a text differs: eos_token_id {ends[0]} and {ends[1]}"
    for name in {*one.others, *other.others}:
        there = name in one.tensors and name in other.tensors
        if not there or not np.array_equal(one.tensors.raw(name), other.tensors.raw(name)):
            return None, f"tensor {name[:80]} is not known to this family and differs"
    return None


def _heads_agree(one: TwoTowers, near: TwoTowers, unit: float) -> bool:
    """Whether the turn of what is compared is known: it makes the heads equal, whatever else differs."""
    mine, theirs = one.heads, near.heads
    rows = [(mine[name].rows, theirs[name].rows) for name in mine if name in theirs]
    limit = allowed_gap(unit, 1e-9)
    return all(a.shape == b.shape and np.linalg.norm(a - b) <= limit * np.linalg.norm(a) for a, b in rows)


def _checked(one: TwoTowers, other: TwoTowers, unit: float, reason: str, seed: int) -> tuple[bool | None, str]:
    """Whether towers score otherwise whose heads differ: they may turn in ways that their comparison does not find."""
    try:
        inputs = random_inputs(one, seed)
        ours, theirs = (scores(pair, *inputs) for pair in (one, other))
    except AttnGeomError as error:
        return (None if one.turns else False), f"{reason}; and scores cannot be evaluated: {error}"[:300]
    gap = relative_gap(ours, theirs) if ours.shape == theirs.shape else float("inf")
    if np.isnan(gap):
        return None, f"{reason}; and scores of outputs that are zero are no numbers"
    if gap > allowed_gap(unit, 1e-9):
        return False, f"{reason}; scores of random images and texts differ by {digits.error(gap)}"
    return None, f"{reason}; but scores of random images and texts agree to {digits.error(gap)}"


def random_inputs(pair: TwoTowers, seed: int = 0) -> tuple[Array, Array]:
    """Some images, (n, channels, height, width), and texts, (m, tokens)."""
    rng, text, image = np.random.default_rng(seed), pair.towers["text"], pair.towers["image"]
    side, channels = (int(image.config.get(key, least)) for key, least in (("image_size", 224), ("num_channels", 3)))
    count = text.spec.stack.positions
    images = rng.normal(size=(OUTPUT_CHECKS, channels, side, side))
    return images, rng.integers(0, text.spec.vocabulary, size=(OUTPUT_CHECKS, count))


def scores(pair: TwoTowers, images: Array, texts: Array) -> Array:
    """Scores of images (rows) and texts (columns), evaluated in float64; the last token stands for a text."""
    if pair.parameters * (len(texts) * texts.shape[1] + len(images)) > OUTPUT_PRODUCTS:
        raise InputError("they are too large")
    text, image = pair.towers["text"], pair.towers["image"]
    left = np.stack([_pooled(image, forward(image, {"pixel_values": own})) for own in images])
    right = np.stack([forward(text, {"input_ids": own})[-1] for own in texts])
    with np.errstate(invalid="ignore", divide="ignore"):
        left, right = (own / np.linalg.norm(own, axis=1, keepdims=True) for own in (left, right))
    numbers = pair.numbers
    return np.asarray(np.exp(numbers["logit_scale"]) * left @ right.T + numbers.get("logit_bias", 0.0))


def _pooled(image: Model, states: Array) -> Array:
    """What stands for an image: the head that pools, or the first token."""
    if not image.places.pooling:
        return np.asarray(states[0])
    vectors = pooled(image, states)
    if vectors is None:
        raise InputError("the head that pools is missing")
    return np.asarray(vectors[0])


@dataclass(frozen=True, kw_only=True, eq=False)
class PairFingerprint(Result):
    """The fingerprints of both towers, of what compares their outputs, and of the whole."""

    towers: Mapping[str, Fingerprint]
    head: str
    digest: str

    def to_json(self) -> dict[str, Any]:
        towers = {name: tower.to_json() for name, tower in self.towers.items()}
        return {"fingerprint": self.digest, "head": self.head, "towers": towers, **self.select("standing", "reason")}

    def rows(self) -> Mapping[str, Any]:
        towers = {f"tower of {name}s": tower.digest[:32] for name, tower in self.towers.items()}
        return {**towers, "head": self.head[:32], "model": self.digest[:32], **self.select("standing", "reason")}


def fingerprint_pair(
    pair: TwoTowers, seed: int = 0, *, crew: Crew = 1, progress: Progress | None = None
) -> PairFingerprint:  # fmt: skip
    """The fingerprint of a pair, the same for heads that were turned together or multiplied by numbers > 0."""
    with hired(crew) as workers:
        towers = {
            name: fingerprint(without(tower), seed, crew=workers, progress=progress)
            for name, tower in pair.towers.items()
        }
    eos = pair.towers["text"].config.get("eos_token_id") if pair.kind == "clip" else None
    numbers = {name: int(integers(np.array([value]))[0]) for name, value in pair.numbers.items()}
    others = {name: hashlib.sha256(pair.tensors.raw(name).tobytes()).hexdigest() for name in sorted(pair.others)}
    head = digest_of([_head_invariants(pair, seed), numbers, eos, others])
    total = digest_of([{name: tower.digest for name, tower in towers.items()}, head])
    probability = sum(tower.error_probability for tower in towers.values())
    return PairFingerprint(
        standing="probabilistic", reason=f"different functions collide with probability {probability:.1e}",
        towers=towers, head=head, digest=total, seed=seed,
    )  # fmt: skip


def _head_invariants(pair: TwoTowers, seed: int) -> list[Any]:
    """Products of what the heads make of random vectors, as quotients that no scale changes, and the sign of all.

    Where the heads may not turn, what they make is compared number by number.
    """
    made, norms = {}, {}
    for name, tower in pair.towers.items():
        if name in pair.heads:
            made[name] = _made(tower, f"{seed}/{name}")
            norms[name] = pow(dot(made[name][0], made[name][0]), P - 2, P)  # 0 of a head of zeros
    values: list[Any] = []
    for name, rows in made.items():
        if pair.turns:
            values += [dot(a, b) * norms[name] % P for a in rows for b in rows]
        else:
            values += [int(x) * int(rows[0][0]) * norms[name] % P for row in rows for x in row]
    heads = [head.weight for head in pair.heads.values()]
    if pair.turns:
        left, right = made.values()
        first = dot(left[0], right[0]) * norms["image"] % P * norms["text"] % P
        values += [dot(a, b) * first % P for a in left for b in right]
        product = heads[0].T @ heads[1]
    else:
        product = np.concatenate([head.ravel() for head in heads] or [np.zeros(1)])
    values.append(float(np.sign(product.reshape(-1)[np.abs(product).argmax()])))
    return values


def _made(tower: Model, label: str) -> list[Array]:
    """What a head makes of three random vectors behind the last norm, and its constant, mod p."""
    stack, head = tower.spec.stack, tower.spec.head
    norm = tower.final_norm(stack)
    assert head is not None and norm is not None and stack.final_norm is not None
    gain = (integers(norm.stored) + 0) % P
    total_zero = stack.final_norm.kind == "layer"
    probes = [gain * random_residues(len(gain), f"{label}/{k}", total_zero=total_zero) % P for k in range(3)]
    values = apply(tower.head(), [*probes, integers(norm.bias)])
    constant = values[:, -1] if not head.bias else (values[:, -1] + integers(tower.head_bias())) % P
    return [*values[:, :-1].T, constant]
