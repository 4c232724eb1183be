"""``canonicalize``, ``teleport``, ``fingerprint``: new weights with the same function, checked, and a line for all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal

import numpy as np

from attngeom.canonical.compact import coordinates
from attngeom.canonical.faithful import check_same_function
from attngeom.canonical.form import GAUGES, CanonicalForm, Gauge, canonical_form, restore
from attngeom.canonical.kinds import CanonicalWeights, canonical_description, canonicalize_kind
from attngeom.canonical.least_norm import least_norm, loss, loss_gradient, maximise_gradient
from attngeom.errors import InputError
from attngeom.exact import lapack
from attngeom.exact.domains import RR, Array
from attngeom.files import to_json
from attngeom.inspection.fibers import VirtualFiber, virtual_fiber
from attngeom.limits.rounding import CANONICAL_FIXED, NORM_LEAST
from attngeom.network import Weights, random_symmetry
from attngeom.results import Result

Objective = Literal["random", "norm", "gradient"]
OBJECTIVES: tuple[Objective, ...] = ("random", "norm", "gradient")


@dataclass(frozen=True, kw_only=True, eq=False)
class Canonicalization(Result):
    """The canonical weights, their form, and whether all weights of the orbit would give the same ones.

    Exact forms always are canonical. Float forms are not where a rank, a pivot, the order of heads or a basis of equal
    singular values hangs on rounding.
    """

    weights: Weights
    form: CanonicalForm
    gauge: Gauge
    is_canonical: bool
    difference: float

    @property
    def num_free(self) -> int:
        """How many entries of the form are free: the dimension of the function space, at generic weights."""
        return len(coordinates(self.form))

    @cached_property
    def unseen(self) -> VirtualFiber | None:
        """The fiber in (M, L) of a network whose function does not determine it, up to scales; None if it does.

        Then weights of different orbits have the same function, and canonical forms tell more than the function.
        """
        fiber = virtual_fiber(self.weights)
        return fiber if fiber is not None and (fiber.free or fiber.finite) else None

    def to_json(self) -> dict[str, Any]:
        record = {
            "num_parameters": self.form.architecture.num_parameters,
            **self.select("num_free", "gauge", "is_canonical", "standing", "reason"),
        }
        return record if self.unseen is None else {**record, "virtual_fiber": self.unseen.to_json()}

    def rows(self) -> Mapping[str, Any]:
        lines = {
            "canonical form": "",
            "parameters": f"{self.form.architecture.num_parameters:,}, of which {self.num_free:,} are free",
            "canonical": f"{'yes' if self.is_canonical else 'no'}: {self.reason}",
        }
        return lines if self.unseen is None else {**lines, "fiber in (M, L)": self.unseen.words}


def canonicalize(weights: Weights, gauge: Gauge | None = None) -> Canonicalization | CanonicalWeights:
    """The canonical representative: canonicalize(g · w) = canonicalize(w), exactly over Q, to rounding over floats.

    ``gauge`` defaults to echelon over exact domains and to balanced over floats. The function before and after is
    compared; weights that floats cannot hold are refused.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((3, 2, 3), 2), QQ, seed=0)
    >>> canonicalize(w).weights.equals(canonicalize(random_symmetry(w.architecture, QQ, seed=1).apply(w)).weights)
    True
    """
    if not weights.architecture.is_plain:
        return canonicalize_kind(weights, gauge)
    return from_form(canonical_form(weights), gauge, weights)


def from_form(form: CanonicalForm, gauge: Gauge | None = None, start: Weights | None = None) -> Canonicalization:
    """The weights of a form; compared with the weights that it was made from, where these are given."""
    gauge = gauge or ("balanced" if form.domain.rounds else "echelon")
    if gauge not in GAUGES:
        raise InputError(f"gauge {str(gauge)[:40]!r} given; one of {', '.join(GAUGES)} is required")
    weights, is_clear = restore(form, gauge)
    difference = 0.0 if start is None else check_same_function(start, weights)
    is_canonical = form.is_canonical and is_clear and (form.domain.is_exact or _is_fixed(weights, gauge))
    reason = "one representative for each orbit of the symmetry group"
    if not is_canonical:
        reason = "a rank, a pivot, the order of heads or equal singular values hang on rounding errors"
    elif not form.domain.is_exact:
        reason += ", to rounding"
    return Canonicalization(
        standing="proven" if form.domain.is_exact else "estimate",
        reason=reason,
        weights=weights,
        form=form,
        gauge=gauge,
        is_canonical=is_canonical,
        difference=difference,
    )


def _is_fixed(weights: Weights, gauge: Gauge) -> bool:
    """Whether floats are their own canonical form to rounding: extreme scales can leave too few digits for that."""
    try:
        again, is_clear = restore(canonical_form(weights), gauge)
    except InputError:
        return False
    pairs = zip((array for _, array in weights.tensors()), (array for _, array in again.tensors()), strict=True)
    return is_clear and all(
        float(np.abs(one - other).max()) <= CANONICAL_FIXED * float(np.abs(one).max(initial=0.0))
        for one, other in pairs
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Teleportation(Result):
    """Weights elsewhere on the fiber, and the objective before and after, where there is one."""

    weights: Weights
    objective: Objective
    measured: Mapping[str, float]
    difference: float

    def to_json(self) -> dict[str, Any]:
        return self.select("objective", "seed") | dict(self.measured) | self.select("standing", "reason")

    def rows(self) -> Mapping[str, Any]:
        return {"teleported": "", **{key.replace("_", " "): value for key, value in self.to_json().items()}}


def teleport(
    weights: Weights,
    objective: Objective = "random",
    seed: int = 0,
    inputs: Array | None = None,
    targets: Array | None = None,
    budget: float = 1.0,
) -> Teleportation:
    """Other weights with the same function: by a random symmetry, of least norm, or with a larger gradient.

    ``norm`` and ``gradient`` work over floats. ``gradient`` is that of the mean squared error at ``inputs`` (N, d, t)
    and ``targets`` (N, d', t), among weights of norm at most ``budget`` times the present one.

    >>> from attngeom.network import Architecture
    >>> w = Weights.from_vector(Architecture((1, 1), 1), np.array([4.0, 1.0, 2.0]), RR)
    >>> teleport(w, "norm").weights.vector().round(6).tolist()
    [2.0, 2.0, 2.0]
    """
    if objective not in OBJECTIVES:
        raise InputError(f"objective {str(objective)[:40]!r} given; one of {', '.join(OBJECTIVES)} is required")
    if objective != "random" and not weights.architecture.is_plain:
        what = f"objective {objective} given for {weights.architecture.kind} attention or options"
        raise InputError(f"{what}; it is known for the kinds of the papers: random")
    measured: dict[str, float] = {}
    standing: Literal["proven", "estimate"] = "estimate"
    if objective == "random":
        moved = random_symmetry(weights.architecture, weights.domain, seed).apply(weights)
        reason = "a random element of the symmetry group was applied"
        standing = "proven" if weights.domain.is_exact else "estimate"
    elif objective == "norm":
        weights = weights.to(RR)
        least = least_norm(weights)
        moved = least.weights
        reason = "the least norm on the orbit of the symmetry group"
        if least.imbalance > NORM_LEAST:
            reason = f"small, but not least on the orbit: moments of {least.imbalance:.0e} are left"
        elif least.symmetry is None:
            reason = "the least norm in the closure of the orbit, which no point of the orbit attains"
        measured = {"norm_before": lapack.norm(weights.vector()), "norm_after": lapack.norm(moved.vector())}
    else:
        weights = weights.to(RR)
        X, Y = _check_data(inputs, targets, weights)
        gradient = loss_gradient(weights, X, Y)
        moved, larger = maximise_gradient(weights, gradient, budget)
        reason = "a local maximum of the gradient on the orbit, within the budget of the norm"
        measured = {"gradient_before": lapack.norm(gradient), "gradient_after": lapack.norm(larger)}
        measured |= {"loss_before": loss(weights, X, Y), "loss_after": loss(moved, X, Y)}
    return Teleportation(
        standing=standing,
        reason=reason,
        seed=seed,
        weights=moved,
        objective=objective,
        measured=measured,
        difference=check_same_function(weights, moved),
    )


def _check_data(inputs: Array | None, targets: Array | None, weights: Weights) -> tuple[Array, Array]:
    if inputs is None or targets is None:
        raise InputError("objective gradient given without data; give inputs and targets")
    widths = weights.architecture.widths
    X, Y = RR.convert(inputs), RR.convert(targets)
    if X.ndim != 3 or X.shape[1] != widths[0] or Y.shape != (X.shape[0], widths[-1], X.shape[2]):
        raise InputError(
            f"inputs of shape {X.shape} and targets of shape {Y.shape} given;"
            f" (N, {widths[0]}, t) and (N, {widths[-1]}, t) are required"
        )
    return np.ascontiguousarray(X), np.ascontiguousarray(Y)


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightsFingerprint(Result):
    """The first half of the SHA-256 of the canonical weights and their architecture."""

    fingerprint: str

    def to_json(self) -> dict[str, Any]:
        return self.select("fingerprint", "standing", "reason")

    def rows(self) -> Mapping[str, Any]:
        return {"fingerprint": self.fingerprint, "standing": self.standing, "reason": self.reason}


def fingerprint(weights: Weights) -> WeightsFingerprint:
    """The fingerprint of exact weights, the same on the whole orbit of the symmetry group and on no other orbit.

    Orbits that differ in weights alone that no input reaches have one fingerprint: their function is the same.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_symmetry, random_weights
    >>> w = random_weights(Architecture((3, 2, 3), 2), QQ, seed=0)
    >>> moved = random_symmetry(w.architecture, QQ, seed=1).apply(w)
    >>> fingerprint(w).fingerprint == fingerprint(moved).fingerprint
    True
    """
    if not weights.domain.is_exact:
        raise InputError("float weights given, whose canonical form is rounded; give exact ones (.json)")
    if weights.architecture.is_plain:
        described = dict(canonicalize(weights).weights.tensors())
    else:
        described = canonical_description(weights)
    tensors = {name: [[str(x) for x in row] for row in array] for name, array in described.items()}
    text = to_json({"architecture": weights.architecture.to_json(), "tensors": tensors})
    digest = sha256(text.encode()).hexdigest()[:32]
    reason = "one representative for each orbit of the symmetry group"
    return WeightsFingerprint(standing="proven", reason=reason, fingerprint=digest)
