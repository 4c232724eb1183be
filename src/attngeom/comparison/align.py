"""Do two points of weight space give the same function? With the group element, or an input that separates them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom.comparison.equality import layerwise_equality, virtual_scales
from attngeom.comparison.evaluation import (
    Separation,
    evaluate_mod_p,
    present_separation,
    separate_balls,
    separate_exact,
)
from attngeom.comparison.float_align import compare_floats
from attngeom.comparison.matching import NoMatch, match_rational
from attngeom.errors import DomainError, InputError, SizeError
from attngeom.exact.domains import GF, QQ, RR, Array, Rationals
from attngeom.exact.primes import WORD_PRIME
from attngeom.inspection.hypotheses import check_hypotheses, failed
from attngeom.network import Symmetry, Weights
from attngeom.network.symmetry_json import matrix_to_json, symmetry_to_json

MAX_INPUT = 10**7
SCREEN_TOKENS = 8


@dataclass(frozen=True, eq=False)
class Alignment:
    """The answer to "same function?": True, False or None (cannot be told), and what it rests on.

    ``is_proven``: the verdict is a theorem about the given exact weights (never for floats). ``symmetry`` carries the
    first weights to the second. ``separation`` is an input with different outputs. ``error_probability`` bounds the
    chance of a wrong True that rests on evaluation mod p. ``failed_hypotheses`` says which hypotheses of the theorems
    on fibers do not hold, when no symmetry was found. ``mixings`` holds, for each layer, the matrix that mixes heads.
    ``residual`` is the misfit of floats after alignment, ``noise`` what weights known to ``tolerance`` would explain.
    """

    same_function: bool | None
    reason: str
    is_proven: bool
    seed: int
    symmetry: Symmetry | None = None
    separation: Separation | None = None
    error_probability: float | None = None
    failed_hypotheses: tuple[str, ...] = ()
    mixings: tuple[Array | None, ...] = ()
    residual: float | None = None
    difference: float | None = None
    noise: float | None = None
    tolerance: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The JSON object that ``attngeom compare`` prints."""
        record: dict[str, Any] = {
            "same_function": self.same_function,
            "reason": self.reason,
            "proven": self.is_proven,
            "symmetry": None if self.symmetry is None else symmetry_to_json(self.symmetry),
            "separating_input": None,
            "error_probability": self.error_probability,
            "failed_hypotheses": list(self.failed_hypotheses),
            "seed": self.seed,
        }
        if self.separation is not None:
            record |= self.separation.to_json()
        if self.mixings:
            record["head_mixings"] = [None if G is None else matrix_to_json(G, QQ) for G in self.mixings]
        for name in ("residual", "difference", "noise", "tolerance"):
            value = getattr(self, name)
            if value is not None:
                record[name] = value if np.isfinite(value) else None
        return record


def align(first: Weights, second: Weights, tolerance: float = 1e-9, seed: int = 0) -> Alignment:
    """Whether two weights of one architecture compute the same function, with a witness.

    Rational weights: a separating input is a proof, and so is a symmetry; see :class:`Alignment` for the rest. Floats:
    True if the difference is no larger than weights known to relative accuracy ``tolerance`` explain, False if it is
    30 times larger, else None. Weights over different domains are compared as floats.

    >>> from attngeom.network import Architecture, random_symmetry, random_weights
    >>> w = random_weights(Architecture((3, 2, 3), 2), QQ, seed=0)
    >>> found = align(w, w.act(random_symmetry(w.architecture, QQ, seed=1)))
    >>> found.same_function, found.is_proven
    (True, True)
    """
    if first.architecture != second.architecture:
        raise InputError("weights of different architectures given; only weights of one architecture can be aligned")
    if max(first.architecture.widths) * first.architecture.tokens > MAX_INPUT:
        raise SizeError(
            f"{first.architecture.tokens:,} tokens given; inputs of at most {MAX_INPUT:,} entries are compared"
        )
    if not 0 < tolerance < 1:
        raise InputError(f"tolerance {tolerance} given; a relative accuracy between 0 and 1 is required")
    if first.domain != second.domain:
        first, second = first.to(RR), second.to(RR)
    if first.domain == RR:
        return _align_floats(first, second, tolerance, seed)
    if not isinstance(first.domain, Rationals):
        raise DomainError(f"weights over {first.domain.name} given; rational or float weights are required")
    return _align_softmax(first, second, seed) if first.architecture.kind == "softmax" else _align(first, second, seed)


def _align(first: Weights, second: Weights, seed: int) -> Alignment:
    """Rational lightning networks."""
    separation = _screen(first, second, seed)
    if separation is not None:
        return _differ(separation, seed)
    found = match_rational(first, second)
    if isinstance(found, Symmetry):
        return Alignment(True, "a symmetry carries the first weights to the second", True, seed, symmetry=found)
    hypotheses = failed(check_hypotheses(first))
    why = f"no symmetry carries one to the other (layer {found.layer}: {found.reason})"
    equality = layerwise_equality(first, second)
    if equality is not None:
        reason = f"the layers have equal coefficients up to a change of basis; {why}"
        return Alignment(True, reason, True, seed, failed_hypotheses=hypotheses, mixings=_nontrivial(equality.mixings))
    if virtual_scales(first, second) is not None:
        reason = f"the virtual weights (M, L) are equal up to scales that satisfy [G] Eq 13; {why}"
        return Alignment(True, reason, True, seed, failed_hypotheses=hypotheses)
    result = separate_exact(first, second, seed)
    if isinstance(result, Separation):
        return _differ(result, seed)
    reason = f"equal outputs at {result.evaluations} random inputs mod {len(result.primes)} random primes; {why}"
    return Alignment(
        True, reason, False, seed, error_probability=result.error_probability, failed_hypotheses=hypotheses
    )


def _nontrivial(mixings: tuple[Array | None, ...]) -> tuple[Array | None, ...]:
    return mixings if any(G is not None and len(G) > 1 for G in mixings) else ()


def _differ(separation: Separation, seed: int) -> Alignment:
    where = "" if separation.domain == QQ else f" (their residues mod {getattr(separation.domain, 'p', '?')} differ)"
    return Alignment(False, f"the outputs at the separating input differ{where}", True, seed, separation=separation)


def _screen(first: Weights, second: Weights, seed: int) -> Separation | None:
    """One evaluation modulo a word prime separates almost all different networks; tokens beyond a few are zero."""
    width, tokens = first.architecture.widths[0], first.architecture.tokens
    X = np.zeros((width, tokens), dtype=np.int64)
    visible = min(tokens, SCREEN_TOKENS)
    X[:, :visible] = np.random.default_rng(seed).integers(-9, 10, size=(width, visible))
    field = GF(WORD_PRIME)
    point = field.to_flint(field.array(X[:, :visible]))
    try:
        outputs = evaluate_mod_p(first, point), evaluate_mod_p(second, point)
    except InputError:
        return None
    if outputs[0] == outputs[1]:
        return None
    residues = tuple(field.zeros((first.architecture.widths[-1], tokens)) for _ in outputs)
    for padded, output in zip(residues, outputs):
        padded[:, :visible] = [[int(x) for x in row] for row in output.table()]
    return present_separation(first, second, QQ.array(X), (residues[0], residues[1]), field)


def _align_softmax(first: Weights, second: Weights, seed: int) -> Alignment:
    """Rational softmax networks: equality by symmetry or virtual weights, difference by balls."""
    found = match_rational(first, second)
    if isinstance(found, Symmetry):
        return Alignment(True, "a symmetry carries the first weights to the second", True, seed, symmetry=found)
    hypotheses = failed(check_hypotheses(first))
    if virtual_scales(first, second) is not None:
        reason = "the virtual weights (M, L) are equal"
        return Alignment(True, reason, True, seed, failed_hypotheses=hypotheses)
    separation = separate_balls(first, second, seed)
    if separation is not None:
        reason = "the outputs at the separating input differ, enclosed by disjoint balls"
        return Alignment(False, reason, True, seed, separation=separation)
    reason = f"no symmetry was found ({found.reason}) and the outputs agree to 256 bits at random inputs"
    return Alignment(None, reason, False, seed, failed_hypotheses=hypotheses)


def _align_floats(first: Weights, second: Weights, tolerance: float, seed: int) -> Alignment:
    if not np.all(np.isfinite(first.vector())) or not np.all(np.isfinite(second.vector())):
        raise InputError("weights with NaN or infinite entries given; finite numbers are required")
    comparison = compare_floats(first, second, tolerance, seed)
    match = comparison.match
    return Alignment(
        comparison.verdict,
        comparison.reason,
        False,
        seed,
        symmetry=None if isinstance(match, NoMatch) or comparison.verdict is False else match.symmetry,
        separation=comparison.separation if comparison.verdict is False else None,
        failed_hypotheses=failed(check_hypotheses(second, tolerance)) if isinstance(match, NoMatch) else (),
        residual=None if isinstance(match, NoMatch) else match.residual,
        difference=comparison.difference,
        noise=comparison.noise,
        tolerance=tolerance,
    )
