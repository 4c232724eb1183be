"""Are the heads of a generic layer unique? Theorem H for direct sums, beyond them the contact locus mod p (Theorem H2).

H heads are drawn mod p. The tangent spaces of the variety of single heads at these points span T; if T has dimension
H·n, n the dimension of the variety as a cone, and the second derivatives of the equations T^⊥ at one head have rank
n − 1 along the variety, then the variety is not tangentially weakly defective, and a generic sum of H heads is a sum
of H heads in one way (Chiantini and Ottaviani). Ranks mod p bound generic ranks from below, so one success is a proof.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from attngeom.errors import InputError, SizeError
from attngeom.exact.domains import GF, Array, PrimeField
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.multisets import pair_index
from attngeom.exact.numbers import WORD_PRIME
from attngeom.layer.coefficients import quadric_table
from attngeom.limits.memory import TANGENT_SPAN
from attngeom.limits.trials import NORMAL_EQUATIONS
from attngeom.network import Architecture
from attngeom.results import Result

Contact = Literal["unique", "defective", "positive contact locus", "fills the space"]


@dataclass(frozen=True, kw_only=True, eq=False)
class GenericHeads(Result):
    """Whether a generic layer of an architecture has unique heads.

    ``unique`` is True if proven, None if not: a failure proves nothing. ``contact`` is the finding mod ``prime`` with
    the tangent rank (of ``expected`` = H·n) and the rank of the second derivatives (n − 1 is needed).
    """

    unique: bool | None
    theorem: str | None
    contact: Contact | None = None
    tangent_rank: int | None = None
    expected: int | None = None
    contact_rank: int | None = None
    prime: int | None = None

    @property
    def is_positive(self) -> bool | None:
        return self.unique

    def to_json(self) -> dict[str, Any]:
        claim = self.select("unique", "reason", "standing", "theorem", "contact")
        return claim | self.select("tangent_rank", "expected", "contact_rank", "prime", "seed")

    def rows(self) -> Mapping[str, Any]:
        lines: dict[str, Any] = {"generic heads": "unique" if self.unique else "not proven"}
        lines |= self.select("standing", "reason")
        if self.theorem is not None:
            lines["by"] = self.theorem
        if self.contact is not None:
            lines["tangent rank"] = f"{self.tangent_rank} of {self.expected}, mod {self.prime}"
        if self.contact_rank is not None:
            lines["contact rank"] = self.contact_rank
        return lines


def generic_heads(architecture: Architecture, seed: int = 0) -> GenericHeads:
    """Whether generic lightning layers of an architecture have unique heads, for t ≥ 2.

    >>> generic_heads(Architecture((3, 3), 1, heads=4, value_width=1)).unique
    True
    """
    if not architecture.is_cubic or architecture.tokens < 2:
        raise InputError("another architecture given; one lightning layer with at least two tokens is required")
    layer = architecture.layers[0]
    d, d_out, heads = layer.d_in, layer.d_out, layer.heads
    a, v = min(layer.attention, d), layer.value_rank
    if heads == 1:
        return GenericHeads(standing="theorem", reason="one head is the layer itself", unique=True, theorem="one head")
    if heads * v <= d_out and heads * a <= d and not (a == d and v == d):
        reason = "generic heads form a direct sum, and there is no homomorphism between two of them"
        return GenericHeads(standing="theorem", reason=reason, unique=True, theorem="Theorem H")
    return contact_locus(d, d_out, a, v, heads, seed)


def contact_locus(d: int, d_out: int, a: int, v: int, heads: int, seed: int = 0) -> GenericHeads:
    """The criterion of the contact locus for ``heads`` heads of widths a ≤ d, v ≤ min(d, d_out), modulo a prime."""
    n = a * (2 * d - a) + v * (d + d_out - v) - 1
    size = d_out * d * d * (d + 1) // 2
    entries = heads * (2 * a * d + v * (d + d_out)) * size
    if entries > TANGENT_SPAN:
        raise SizeError(f"the tangent space of {heads} heads needs {entries:,} numbers; at most {TANGENT_SPAN:,}")
    field, rng = GF(WORD_PRIME), np.random.default_rng(seed)
    points = [_draw(d, d_out, a, v, field, rng) for _ in range(heads)]
    tangents = np.concatenate([_tangent_rows(*point, field) for point in points])
    rank = rank_mod_p(tangents, field.p)
    known = {"tangent_rank": rank, "expected": heads * n, "prime": field.p, "seed": seed}
    if rank == size:
        return _failed("fills the space", "the sums of heads fill the space of functions: T^⊥ = 0", known)
    if rank < heads * n:
        reason = f"the tangent spaces span {rank} of {heads * n} dimensions: the sums are defective mod p"
        return _failed("defective", reason, known)
    normals = field.nullspace(tangents)
    chosen = field.matmul(field.random((min(NORMAL_EQUATIONS, len(normals)), len(normals)), rng), normals)
    second = np.concatenate([_second_derivatives(omega.reshape(d_out, d, -1), *points[0], field) for omega in chosen])
    contact = rank_mod_p(second, field.p)
    known["contact_rank"] = contact
    if contact < n - 1:
        reason = f"the second derivatives have rank {contact}, below n − 1 = {n - 1}: the criterion does not apply"
        return _failed("positive contact locus", reason, known)
    reason = f"tangent rank {rank} = H·n and contact rank {contact} = n − 1, mod {field.p}"
    return GenericHeads(standing="proven", reason=reason, unique=True, theorem="Theorem H2", contact="unique", **known)


def _failed(contact: Contact, reason: str, known: Mapping[str, int]) -> GenericHeads:
    return GenericHeads(standing="undecided", reason=reason, unique=None, theorem=None, contact=contact, **known)


_Point = tuple[Array, Array, Array, Array]


def _draw(d: int, d_out: int, a: int, v: int, field: PrimeField, rng: np.random.Generator) -> _Point:
    """Random O, W, K, Q."""
    shapes = ((d_out, v), (v, d), (a, d), (a, d))
    O, W, K, Q = (field.random(shape, rng) for shape in shapes)
    return O, W, K, Q


def _product_rows(left: Array, right: Array) -> Array:
    """The derivatives of left·right along the entries of left, then of right, as rows."""
    p, q = left.shape[0], right.shape[1]
    return np.concatenate([np.kron(np.eye(p, dtype=np.int64), right), np.kron(left.T, np.eye(q, dtype=np.int64))])


def _tangent_rows(O: Array, W: Array, K: Array, Q: Array, field: PrimeField) -> Array:
    """The derivatives of the table of quadrics along all entries of O, W, Kᵀ, Q, as rows."""
    V, A = field.matmul(O, W), field.matmul(K.T, Q)
    d_out, d = V.shape
    along_V = _product_rows(O, W).reshape(-1, d_out, d)
    along_A = _product_rows(K.T, Q).reshape(-1, d, d)
    parts = [quadric_table(A, change, field).ravel() for change in along_V]
    parts += [quadric_table(change, V, field).ravel() for change in along_A]
    return np.stack(parts)


def _second_derivatives(omega: Array, O: Array, W: Array, K: Array, Q: Array, field: PrimeField) -> Array:
    """The Hessian of Σ ω[n, m, kl] (V_nk A_lm + V_nl A_km) in the entries of O, W, Kᵀ, Q."""
    V, A = field.matmul(O, W), field.matmul(K.T, Q)
    d_out, d = V.shape
    # Ω[n, k; l, m], symmetric in k and l: the form is Σ Ω V_nk A_lm.
    form = np.transpose(omega[:, :, pair_index(d)], (0, 2, 3, 1)).reshape(d_out * d, d * d)
    along_V, along_A = _product_rows(O, W), _product_rows(K.T, Q)
    cross = field.matmul(field.matmul(along_V, form), along_A.T)
    on_V = field.matmul(form, A.reshape(-1, 1)).reshape(d_out, d)
    on_A = field.matmul(V.reshape(1, -1), form).reshape(d, d)
    left, right = _mixed_block(on_V, O.shape[1]), _mixed_block(on_A, K.shape[0])
    return np.concatenate([np.concatenate([left, cross], axis=1), np.concatenate([cross.T, right], axis=1)])


def _mixed_block(gradient: Array, r: int) -> Array:
    """The Hessian of ⟨gradient, L R⟩ in the entries of L (p×r) and R (r×q)."""
    p, q = gradient.shape
    mixed = np.einsum("ij,kl->iklj", gradient, np.eye(r, dtype=np.int64)).reshape(p * r, r * q)
    hessian = np.zeros(((p + q) * r,) * 2, dtype=np.int64)
    hessian[: p * r, p * r :], hessian[p * r :, : p * r] = mixed, mixed.T
    return hessian
