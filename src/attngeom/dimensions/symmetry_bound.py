"""Upper bounds from the infinitesimal symmetries: they lie in the kernel of the differential at every point.

At given rational weights more directions may not change a layer, to first order: upper bounds for ranks there.
A layer is seen on the tokens U that reach it, up to what no later layer reads, E: with W_h = E O V U and
A_h = Uᵀ Kᵀ Q U it does not change along (Ȧ, Ẇ) if sums of tensors vanish. Lightning: Σ_h sym(Ẇ_h ⊗ A_h + W_h ⊗ Ȧ_h),
symmetric in the two places of the token that is read. Softmax: Σ Ẇ_h and Σ sym(W_h ⊗ Ȧ_h) over the heads of each A.
Where the sign of (A, V) is not seen beside Σ V (sigmoid, softmax of two tokens): Σ Ẇ_h over all heads, and Σ ±Ẇ_h
and Σ sym(W_h ⊗ Ȧ_h) over the heads of each ±A. That these suffice is seen by differentiating; that there are no other
directions is not claimed: the lower bound shows it where it meets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from attngeom.errors import SizeError
from attngeom.exact.domains import GF, QQ, Array
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.numbers import WORD_PRIME, modulo_some_prime
from attngeom.exact.points import name_point
from attngeom.limits.memory import DENSE_BYTES, LAYER_KERNEL
from attngeom.network.architecture import Architecture
from attngeom.network.symmetry import count_generators, infinitesimal_action
from attngeom.network.weights import Head, Weights, named_weights


def layer_kernels(weights: Weights) -> Array:
    """Directions in weight space along which some layer, and so the function, does not change: one in each row.

    >>> from attngeom.network.weights import random_weights
    >>> w = random_weights(Architecture((2, 2), 1, tokens=2), QQ, seed=0)
    >>> layer_kernels(w).shape
    (2, 8)
    """
    architecture = weights.architecture
    reached = _reached(weights)
    read = _read(weights, reached)
    slots, kernels = iter(architecture.slots().values()), []
    for index, heads in enumerate(weights.layers):
        places = [next(slots) for head in heads for _ in head.tensors]
        start, stop = places[0].start, places[-1].stop
        layer = _Layer(architecture, [_Seen.of(head, reached[index], read[index]) for head in heads])
        if layer.num_entries(stop - start) > LAYER_KERNEL:
            continue
        kernel = QQ.nullspace(layer.matrix()) if layer.num_entries(1) else QQ.eye(stop - start)
        rows = QQ.zeros((len(kernel), architecture.num_parameters))
        rows[:, start:stop] = kernel
        kernels.append(rows)
    return np.concatenate(kernels) if kernels else QQ.zeros((0, architecture.num_parameters))


def _span(columns: Array) -> Array:
    """A basis of the column space, as columns."""
    return QQ.rref(columns.T).matrix.T if columns.size else columns


def _reached(weights: Weights) -> list[Array]:
    """For each layer a basis of a space in which its input tokens lie."""
    architecture = weights.architecture
    bases = [QQ.eye(architecture.widths[0])]
    for index, heads in enumerate(weights.layers[:-1]):
        U = bases[-1]
        parts = [QQ.matmul(head.value_matrix(QQ), U) for head in heads if _has_scores(architecture, head, U)]
        parts += [U] if architecture.residual else []
        bases.append(_span(np.concatenate([QQ.zeros((architecture.widths[index + 1], 0)), *parts], axis=1)))
    return bases


def _has_scores(architecture: Architecture, head: Head, U: Array) -> bool:
    """Whether a head hands on its values: always, but for lightning with scores that vanish."""
    A = QQ.matmul(U.T, QQ.matmul(head.attention_matrix(QQ), U))
    return "Q" not in architecture.rule.factors or not QQ.is_zero(A)


def _read(weights: Weights, reached: list[Array]) -> list[Array]:
    """For each layer rows E such that later layers see E ẏ alone of a change ẏ of its output."""
    architecture = weights.architecture
    rows = [QQ.eye(architecture.widths[-1])]
    for heads, U in zip(reversed(weights.layers[1:]), reversed(reached[1:])):
        width = heads[0].Q.shape[1]
        if architecture.residual:
            rows.append(QQ.eye(width))
            continue
        parts = [x for head in heads for x in _readers(architecture, head, U, rows[-1])]
        rows.append(_span(np.concatenate([QQ.zeros((0, width)), *parts]).T).T)
    return rows[::-1]


def _readers(architecture: Architecture, head: Head, U: Array, E: Array) -> Iterator[Array]:
    """What a head at tokens in U reads of a change: its values, unless scores vanish, and scores, unless values do."""
    A, W = head.attention_matrix(QQ), QQ.matmul(E, head.value_matrix(QQ))
    if _has_scores(architecture, head, U):
        yield W
    if not QQ.is_zero(QQ.matmul(W, U)) and architecture.view != "nothing":
        yield QQ.matmul(U.T, A)
        yield QQ.matmul(A, U).T


@dataclass(frozen=True, eq=False)
class _Seen:
    """A head on the tokens that reach it, up to what is not read: A, W, and (Ȧ, Ẇ) for a step in every weight."""

    A: Array
    W: Array
    steps: list[tuple[Array | None, Array | None]]

    @classmethod
    def of(cls, head: Head, U: Array, E: Array) -> _Seen:
        Q, K, V = (QQ.matmul(matrix, U) for matrix in (head.Q, head.K, head.V))
        out = E if head.O is None else QQ.matmul(E, head.O)
        steps: list[tuple[Array | None, Array | None]] = []
        for letter, tensor in head.tensors.items():
            for row, column in np.ndindex(*tensor.shape):
                if letter == "Q":
                    steps.append((np.multiply.outer(K[row], U[column]), None))
                elif letter == "K":
                    steps.append((np.multiply.outer(U[column], Q[row]), None))
                elif letter == "V":
                    steps.append((None, np.multiply.outer(out[:, row], U[column])))
                else:
                    steps.append((None, np.multiply.outer(E[:, row], V[column])))
        return cls(QQ.matmul(K.T, Q), QQ.matmul(out, V), steps)


@dataclass(frozen=True, eq=False)
class _Layer:
    architecture: Architecture
    heads: list[_Seen]

    def num_entries(self, columns: int) -> int:
        e, d = map(int, self.heads[0].W.shape)
        return columns * e * d * ((1 if self._is_scaled else len(self.heads)) * (d * (d + 1) // 2 + 1) + 1)

    @property
    def _is_scaled(self) -> bool:
        return self.architecture.view == "scaled"

    @property
    def _is_lone(self) -> bool:
        return self.architecture.tokens == 1

    @property
    def _is_signed(self) -> bool:
        return self.architecture.view == "signed"

    def matrix(self) -> Array:
        """The conditions on a direction, one in each row."""
        columns = [
            np.concatenate([part.ravel() for part in self._conditions(place, *step)])
            for place, head in enumerate(self.heads)
            for step in head.steps
        ]
        return np.stack(columns, axis=1)

    def _conditions(self, place: int, dA: Array | None, dW: Array | None) -> Iterator[Array]:
        """What must vanish, for a step in one head."""
        head = self.heads[place]
        zero = QQ.zeros(head.W.shape)
        if self._is_scaled:
            yield self._tensor(head.W, dA) if dW is None and dA is not None else self._tensor(dW, head.A)
            return
        yield zero if dW is None else dW
        if self.architecture.view == "nothing":
            return
        for _, signs in self._groups:
            sign = signs.get(place)
            yield zero if dW is None or not sign else sign * dW
            changes = head.W if sign is not None and dA is not None else zero
            yield self._tensor(changes, head.A if dA is None else dA)

    @property
    def _groups(self) -> list[tuple[Array, dict[int, int]]]:
        """The different A, up to sign where that is not seen, and the heads that have them; the sign of 0 is 0."""
        groups: list[tuple[Array, dict[int, int]]] = []
        for place, head in enumerate(self.heads):
            A = head.A + head.A.T if self._is_lone else head.A
            for other, signs in groups:
                sign = 1 if QQ.equal(A, other) else -1 if self._is_signed and QQ.equal(-A, other) else 0
                if sign:
                    signs[place] = 0 if self._is_signed and QQ.is_zero(A) else sign
                    break
            else:
                groups.append((A, {place: 0 if self._is_signed and QQ.is_zero(A) else 1}))
        return groups

    def _tensor(self, W: Array | None, A: Array | None) -> Array:
        """W ⊗ A with the places of one token made symmetric: (o, k, l, m), all three of k, l, m for one token."""
        if W is None or A is None:
            raise ValueError("a step changes A or W")
        product = W[:, :, None, None] * A[None, None, :, :]
        orders = list(permutations((1, 2, 3))) if self._is_lone else [(1, 2, 3), (2, 1, 3)]
        total = sum((product.transpose(0, *order) for order in orders), QQ.zeros(product.shape))
        d = W.shape[1]
        if self._is_lone:
            kept = [(k, l, m) for k in range(d) for l in range(k, d) for m in range(l, d)]
        else:
            kept = [(k, l, m) for k in range(d) for l in range(k, d) for m in range(d)]
        return np.asarray(total[:, *np.array(kept, dtype=int).reshape(-1, 3).T])


def check_size(architecture: Architecture) -> None:
    """SizeError if the matrix of all symmetry vectors is too large."""
    count = sum(count_generators(architecture).values())
    if 8 * count * architecture.num_parameters > DENSE_BYTES:
        raise SizeError(
            f"{count:,} symmetry vectors of length {architecture.num_parameters:,}; use the parameter count"
        )


def symmetry_upper_bound(architecture: Architecture, seed: int = 0) -> int:
    """Parameters minus the rank mod p of the infinitesimal symmetries at one named point: a proven upper bound.

    Their generic rank over Q is at least the rank mod p at a point. Weaker than
    :func:`attngeom.dimensions.counts.upper_bound`, but with other means.

    >>> symmetry_upper_bound(Architecture((3, 3, 3), 2))
    23
    """
    check_size(architecture)
    weights = named_weights(architecture, GF(WORD_PRIME), name_point(seed))
    return architecture.num_parameters - rank_mod_p(infinitesimal_action(weights), WORD_PRIME)


def symmetry_upper_bound_at(weights: Weights) -> int:
    """Parameters minus the rank mod p of symmetry vectors and kernels of layers at rational weights: a proven bound.

    The rank mod p, for a prime that divides no denominator, is at most the rank over Q.
    """
    check_size(weights.architecture)
    kernels = layer_kernels(weights)

    def vectors(p: int) -> Array:
        return np.concatenate([infinitesimal_action(weights.to(GF(p))), GF(p).convert(kernels)])

    p, rows = modulo_some_prime(vectors, WORD_PRIME)
    return weights.architecture.num_parameters - rank_mod_p(rows, p)
