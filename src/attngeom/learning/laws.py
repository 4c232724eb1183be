"""Conservation laws of gradient flow: the moments of the symmetries, and the proof that there are no others.

For a loss of the function, gradient flow ẇ = −∇ℓ(w) conserves h if and only if dh annihilates ∇⟨C, φ(X)⟩ for all X, C,
and then all brackets of these fields. Statements and proofs: docs/theorems/training.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom.dimensions.programs import program_bounds
from attngeom.errors import InputError, SizeError
from attngeom.exact.domains import GF, Array
from attngeom.exact.numbers import BLAS_PRIME, WORD_PRIME, primes_from
from attngeom.learning.brackets import BracketRank, bracket_rank, program_bracket_rank
from attngeom.limits.memory import LAW_DIFFERENTIALS
from attngeom.limits.recheck import LAW_PARAMETERS
from attngeom.limits.shown import LAW_MATRICES
from attngeom.limits.work import LAWS_PROVEN_ANYWAY, LISTED_LAWS
from attngeom.network.architecture import Architecture
from attngeom.network.symmetry import linear_factors, tensors_of
from attngeom.network.symmetry.factor import LinearFactor, Place, Slot
from attngeom.network.weights import Weights, random_weights
from attngeom.results import Result, Standing
from attngeom.verification.reading import describe_claimed
from attngeom.verification.records import Certificate


@dataclass(frozen=True)
class Law:
    """A symmetric matrix that gradient flow conserves: the moment Σ T Tᵀ − Σ S Sᵀ of one factor of the symmetries.

    >>> [law.formula for law in conserved_quantities(Architecture((3, 3), 2)).quantities]
    ['K Kᵀ − Q Qᵀ', '‖Q‖² − ‖V‖²']
    """

    factor: LinearFactor
    formula: str

    @property
    def name(self) -> str:
        """The name of the symmetry, with its layer and head counted from 0."""
        return ", ".join([self.factor.name, *(f"{part} {number}" for part, number in self.place.items())])

    @property
    def place(self) -> dict[str, int]:
        """The layer and, if it belongs to one, the head, counted from 0."""
        parts = {"layer": getattr(self.factor, "layer", None), "head": getattr(self.factor, "head", None)}
        return {part: number for part, number in parts.items() if number is not None}

    @property
    def count(self) -> int:
        """The entries of a symmetric matrix, or of the part of it that a smaller group conserves."""
        return self.factor.num_symmetric


@dataclass(frozen=True, kw_only=True, eq=False)
class Laws(Result):
    """The conserved quantities of gradient flow on any loss of the functions of an architecture.

    ``count`` of the listed numbers are independent at generic weights (None: too large to compute, and no theorem
    applies). ``is_complete``: it is proven that every other conserved quantity is a function of these, near generic
    weights. ``most`` bounds the number of independent laws, where it was computed. The laws hold for the Euclidean
    metric and the weights as they are stored: momentum, weight decay, Adam and large steps break them.
    """

    seed: int
    architecture: Architecture
    quantities: tuple[Law, ...]
    count: int | None
    most: int | None = None
    certificate: Certificate | None = None

    @property
    def listed(self) -> int:
        """The number of entries of all symmetric matrices."""
        return sum(law.count for law in self.quantities)

    @property
    def is_complete(self) -> bool:
        """Whether the list is proven complete; False says only that it is not proven."""
        return self.is_proven

    def evaluate(self, weights: Weights) -> dict[Law, Array]:
        """The conserved symmetric matrices at given weights, over their domain.

        >>> from attngeom.exact import QQ
        >>> a = Architecture((1, 1), 1)
        >>> laws = conserved_quantities(a)
        >>> [x.item() for x in laws.evaluate(Weights.from_vector(a, QQ.convert([4, 1, 2]), QQ)).values()]
        [-15, 12]
        """
        if weights.architecture != self.architecture:
            raise InputError("weights of another architecture given; the laws are those of one architecture")
        tensors = tensors_of(weights)
        with weights.domain.working():
            return {law: law.factor.moment(tensors, weights.domain) for law in self.quantities}

    def vector(self, weights: Weights) -> Array:
        """All listed numbers in one vector: the upper triangles of the matrices, row by row."""
        values = [value[np.triu_indices(len(value))] for value in self.evaluate(weights).values()]
        return np.concatenate(values)

    def to_json(self) -> dict[str, Any]:
        return {
            "architecture": self.architecture.to_json(),
            "num_parameters": self.architecture.num_parameters,
            "laws": [{"name": law.name, "count": law.count, "formula": law.formula} for law in self.quantities],
            "listed": self.listed,
            "count": self.count,
            "at_most": self.most,
            "is_complete": self.is_complete,
            **self.select("standing", "reason"),
            "status": self.reason,
            "seed": self.seed,
        }

    def rows(self) -> Mapping[str, Any]:
        rows: dict[str, Any] = {"parameters": f"{self.architecture.num_parameters:,}"}
        if len(self.quantities) <= LAW_MATRICES:
            rows |= {law.name: f"{law.count:,}  {law.formula}" for law in self.quantities}
        else:
            sorts = dict.fromkeys(law.factor.name for law in self.quantities)
            totals = {name: sum(law.count for law in self.quantities if law.factor.name == name) for name in sorts}
            rows |= {name: f"{total:,}" for name, total in totals.items()}
        rows["listed laws"] = f"{self.listed:,}"
        rows["independent laws"] = "not computed" if self.count is None else f"{self.count:,}"
        rows["complete"] = "proven" if self.is_complete else "not proven"
        rows["reason"] = self.reason
        return rows


def conserved_quantities(architecture: Architecture, *, prove: bool | None = None, seed: int = 0) -> Laws:
    """All moments that gradient flow conserves, how many are independent, and whether there are any others.

    If ξ is a symmetric generator of a linear symmetry, d/dt ½⟨w, ξw⟩ = −⟨∇ℓ, ξw⟩ = 0: the function does not change
    along ξw. Independent laws are at most P minus the rank of the gradient fields and their brackets at any point
    (Theorem L); where the moments reach that number, the list is complete. ``prove`` is True, False or, by default,
    True for networks of at most 600 parameters.

    >>> laws = conserved_quantities(Architecture((3, 3), 3))
    >>> laws.count, laws.is_complete
    (7, True)
    """
    size = architecture.num_layers * architecture.heads * 3
    if size > LISTED_LAWS:
        raise SizeError(f"{size:,} matrices of laws given; at most {LISTED_LAWS:,} are listed")
    parameters = architecture.num_parameters
    wanted = parameters <= LAWS_PROVEN_ANYWAY if prove is None else prove
    if wanted and parameters > LAW_PARAMETERS:
        raise SizeError(
            f"a network of {parameters:,} parameters given; completeness is proven up to {LAW_PARAMETERS:,}"
        )
    laws = tuple(list_laws(architecture))
    count, counted = count_independent(architecture, laws, seed)
    standing: Standing = "undecided"
    reason = f"{counted}; completeness was not asked for"
    if not wanted or count is None:
        return Laws(
            standing=standing, reason=reason, seed=seed, architecture=architecture, quantities=laws, count=count
        )
    if not architecture.is_plain:
        return _laws_of_program(architecture, laws, count, counted, seed)
    rank = bracket_rank(architecture, parameters - count, seed, _prime(architecture))
    most = parameters - rank.value
    if most < count:
        raise ArithmeticError(f"{count} laws are independent, but at most {most} exist for {architecture}")
    if most == count:
        standing = "proven"
        reason = (
            f"gradients and brackets span {rank.value} of {parameters} dimensions mod {rank.prime}, so that at most"
            f" {most} laws are independent; the listed ones are that many"
        )
    else:
        reason = f"{counted}; at most {most} exist, as far as first brackets show"
    return Laws(
        standing=standing,
        reason=reason,
        seed=seed,
        architecture=architecture,
        quantities=laws,
        count=count,
        most=most,
        certificate=_certify(architecture, count, rank) if most == count else None,
    )


def _laws_of_program(architecture: Architecture, laws: tuple[Law, ...], count: int, counted: str, seed: int) -> Laws:
    """Laws of a kind beyond the papers: gradients bound their number by P − D, and brackets where it is polynomial.

    >>> [conserved_quantities(Architecture((3, 2), 2, kind=kind)).is_complete for kind in ("gla", "retnet")]
    [True, True]
    """
    parameters = architecture.num_parameters
    prime = _prime(architecture)
    rank = program_bracket_rank(architecture, parameters - count, seed, prime)
    if rank is not None:
        fields, is_proven, where = "gradients and brackets", True, f" mod {prime}"
    else:
        bounds = program_bounds(architecture, seed)
        fields, rank, is_proven = "gradients", bounds.lower.value, bounds.lower.is_proven
        where = "" if bounds.lower.prime is None else f" mod {bounds.lower.prime}"
    most = parameters - rank
    if most < count:
        raise ArithmeticError(f"{count} laws are independent, but at most {most} exist for {architecture}")
    standing: Standing = "undecided"
    reason = f"{counted}; at most {most} exist, as far as {fields} show"
    if fields == "gradients":
        reason += "; brackets are taken of polynomial kinds"
    if most == count and is_proven:
        standing = "proven"
        reason = (
            f"{fields} span {rank} of {parameters} dimensions{where},"
            f" so that at most {most} laws are independent; the listed ones are that many"
        )
    sizes: dict[str, Any] = {"quantities": laws, "count": count, "most": most}
    return Laws(standing=standing, reason=reason, seed=seed, architecture=architecture, **sizes)


def list_laws(architecture: Architecture) -> Iterator[Law]:
    """One law for each linear factor of the symmetry group."""
    places: dict[Place, Any] = {
        (layer, head, letter): None
        for layer, shape in enumerate(architecture.layers)
        for head in range(shape.heads)
        for letter in shape.tensor_shapes
    }
    for layer, shape in enumerate(architecture.layers):
        places |= {(layer, None, letter): None for letter, _ in shape.shared}
    for factor in linear_factors(architecture):
        if not factor.num_symmetric:
            continue
        carried, dual = factor.carried(places), factor.dual(places)
        first = min(slot.place[0] for slot in carried)
        positive, negative = (_sum_of_squares(slots, first) for slots in (carried, dual))
        needs_brackets = "+" in negative and not negative.startswith("Σ")
        negative = f"({negative})" if needs_brackets else negative
        yield Law(factor, factor.law.format(positive, negative) if dual else positive)


SQUARES = {"rows": "{0} {0}ᵀ", "columns": "{0}ᵀ {0}", "entries": "‖{0}‖²"}


def _sum_of_squares(slots: Sequence[Slot], first: int) -> str:
    """Σ T Tᵀ over tensors seen as matrices, in letters: heads are summed, a later layer is marked by a prime."""
    terms = dict.fromkeys((slot.place[2] + "′" * (slot.place[0] - first), slot.view) for slot in slots)
    shown = " + ".join(SQUARES[view].format(letter) for letter, view in terms)
    if len({slot.place[1] for slot in slots}) == 1:
        return shown
    return f"Σ ({shown})" if len(terms) > 1 else f"Σ {shown}"


def differentials(weights: Weights, laws: tuple[Law, ...]) -> Array:
    """Half the differentials of all listed numbers at the weights, one row each: the images ξw of symmetric ξ."""
    domain, tensors = weights.domain, tensors_of(weights)
    slots = dict(zip(tensors, weights.architecture.slots().values()))
    rows = domain.zeros((sum(law.count for law in laws), weights.architecture.num_parameters))
    number = 0
    for law in laws:
        for matrix in law.factor.symmetric_generators():
            for place, change in law.factor.tangent(domain.convert(matrix), tensors, domain).items():
                rows[number, slots[place]] = change.ravel()
            number += 1
    return rows


def count_independent(architecture: Architecture, laws: tuple[Law, ...], seed: int) -> tuple[int | None, str]:
    """How many of the listed numbers are independent at generic weights, and why.

    All of them by Lemma I of docs/theorems/training.md if a_i ≤ 2 d_{i−1}, v ≤ d_{i−1}, and without skips the
    outputs of every layer but the last can span its width; else the rank of their differentials mod p at one point.

    >>> a = Architecture((2, 2), 5)
    >>> count_independent(a, tuple(list_laws(a)), 0)[0]
    15
    """
    listed = sum(law.count for law in laws)
    if _are_independent(architecture):
        return listed, f"all {listed} listed laws are independent (Lemma I)"
    if listed * architecture.num_parameters > LAW_DIFFERENTIALS:
        return None, f"{listed:,} laws are listed; too many to count the independent ones"
    field = GF(WORD_PRIME)
    rank = field.rank(differentials(random_weights(architecture, field, seed), laws))
    return rank, f"{rank} of {listed} listed laws are independent at a point mod {field.p}"


def _are_independent(architecture: Architecture) -> bool:
    """The hypotheses of Lemma I."""
    if not architecture.is_plain:
        return False
    for index, layer in enumerate(architecture.layers):
        if layer.attention > 2 * layer.d_in or (layer.value_width or 0) > layer.d_in:
            return False
        hidden = not architecture.residual and index < architecture.num_layers - 1
        if hidden and layer.d_out > layer.num_features:
            return False
    return True


def _prime(architecture: Architecture) -> int:
    """A prime by which the temperature can be divided."""
    parts = architecture.temperature.as_integer_ratio()
    return next(p for p in primes_from(BLAS_PRIME) if all(part % p for part in parts))


def _certify(architecture: Architecture, count: int, rank: BracketRank) -> Certificate:
    """What :mod:`attngeom.verification.laws` rechecks: a point mod p and independent fields there."""
    claim = {"kind": "laws", "architecture": describe_claimed(architecture), "count": count}
    witness = {
        "prime": rank.prime,
        "point": rank.point,
        "tokens": rank.tokens,
        "samples": rank.samples,
        "gradients": list(rank.gradients),
        "brackets": [list(pair) for pair in rank.brackets],
    }
    return Certificate(claim, witness, {"seed": rank.seed, "primes": [rank.prime]})
