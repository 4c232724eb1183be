"""Changes x' = R x of the residual stream that keep the function: which R are free, recovered, canonical and random.

R goes into the embedding, the readers and the writers. It must commute with the norms: any
orthogonal R for RMSNorm, one that fixes the direction of 1 for LayerNorm. A head tied to the embedding reads through
the gain of the final norm, which commutes with orders and signs of coordinates only (signs one by one for RMSNorm, one
sign for all for LayerNorm); gains of norms on outputs, of the stream or of the embedding leave no more.
An encoder and a decoder that begin with the same table turn together.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from attngeom.errors import InputError
from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.models.model import Model
from attngeom.models.specification import TransformerSpec
from attngeom.models.views import ModelView, is_tied

Stream = Literal["orthogonal", "orthogonal fixing 1", "signed orders", "orders and a sign"]


def free_stream(spec: TransformerSpec) -> Stream:
    """The group of free changes of the residual stream; InputError if the architecture fixes the stream."""
    places = [part for stack in spec.stacks for block in stack.kinds for part in block.norms]
    norms = [part.input for part in places] + [stack.final_norm for stack in spec.stacks]
    kept = [norm for part in places for norm in (part.output, part.stream)]
    kept += [stack.embedding_norm for stack in spec.stacks]
    kinds = {norm.kind for norm in (*norms, *kept) if norm is not None}
    if not all(stack.embeds_tokens for stack in spec.stacks):
        raise InputError(f"{spec.family} has a stream that does not begin with the token table; no change is known")
    if spec.head is None or len(kinds) != 1:
        raise InputError(f"{spec.family} has no head, no norms or norms of two kinds; the residual stream is fixed")
    if is_tied(spec) or any(norm is not None for norm in kept):
        return "signed orders" if kinds == {"rms"} else "orders and a sign"
    return "orthogonal" if kinds == {"rms"} else "orthogonal fixing 1"


def has_free_stream(spec: TransformerSpec) -> bool:
    try:
        free_stream(spec)
    except InputError:
        return False
    return True


def _stream_tables(view: ModelView) -> Array:
    """Rows that turn with the stream: the embedding, and the head with the final norm folded in, of equal weight."""
    head = view.head()
    tables = [view.embedding()] if head is None else [view.embedding(), head.weight]
    return np.concatenate([np.asarray(table, dtype=np.float64) / (np.linalg.norm(table) or 1.0) for table in tables])


def residual_rotation(one: Model, other: Model) -> Array:
    """R with other's tables times Rᵀ nearest to one's: orthogonal Procrustes, or the order and signs of columns."""
    group = free_stream(one.spec)
    left, right = (_stream_tables(ModelView(model, flat=group == "orthogonal fixing 1")) for model in (one, other))
    if group.startswith("orthogonal"):
        return _polar(left.T @ right, group)
    scale = np.maximum(np.linalg.norm(left, axis=0)[:, None] * np.linalg.norm(right, axis=0), 1e-300)
    return _nearest_order(left.T @ right / scale, group)


def canonical_rotation(model: Model) -> Array:
    """The turn that makes the Gram matrix of the tables diagonal, or sorts columns by norm; signs by largest entries.

    Under LayerNorm the Gram matrix is that of the centred tables in a fixed basis of the complement of 1.
    """
    group = free_stream(model.spec)
    table = _stream_tables(ModelView(model, flat=group == "orthogonal fixing 1"))
    if group.startswith("orthogonal"):
        basis = np.eye(table.shape[1]) if group == "orthogonal" else _complement_of_ones(table.shape[1])
        vectors = basis @ lapack.eigh((table @ basis).T @ (table @ basis))[1][:, ::-1]
        turned = (vectors * _column_signs(table @ vectors)).T
        return turned if group == "orthogonal" else _ones(table.shape[1]) + basis @ turned
    order = np.argsort(-np.linalg.norm(table, axis=0), kind="stable")
    signs = _column_signs(table[:, order])
    return _ordered(order, signs if group == "signed orders" else np.full(len(order), signs[0]))


def random_rotation(model: Model, rng: np.random.Generator) -> Array:
    """A random free change of the residual stream."""
    group, d = free_stream(model.spec), model.spec.width
    if group.startswith("orthogonal"):
        return _polar(rng.normal(size=(d, d)), group)
    signs = rng.choice([-1.0, 1.0], size=d)
    return _ordered(rng.permutation(d), signs if group == "signed orders" else np.full(d, signs[0]))


def _column_signs(table: Array) -> Array:
    """±1 per column so that its entry of largest modulus becomes positive."""
    places = np.abs(table).argmax(axis=0)
    return np.where(table[places, np.arange(table.shape[1])] < 0, -1.0, 1.0)


def _ordered(order: Array, signs: Array) -> Array:
    """R with (R x)_i = signs_i x_{order_i}."""
    matrix = np.zeros((len(order), len(order)))
    matrix[np.arange(len(order)), order] = signs
    return matrix


def _nearest_order(cosines: Array, group: Stream) -> Array:
    """The order and signs with the largest sum of cosines; the identity if the tables are no reordering at all."""
    from scipy.optimize import linear_sum_assignment  # slow to load, and few commands need it

    if group == "orders and a sign":
        sign = 1.0 if cosines.max(axis=1).sum() >= (-cosines).max(axis=1).sum() else -1.0
        cosines = cosines * sign
        order = cosines.argmax(axis=1)
        signs = np.full(len(order), sign)
    else:
        order = np.abs(cosines).argmax(axis=1)
        signs = np.where(cosines[np.arange(len(order)), order] < 0, -1.0, 1.0)
    if len(set(order.tolist())) < len(order):
        order = linear_sum_assignment(-(cosines if group == "orders and a sign" else np.abs(cosines)))[1]
        if group == "signed orders":
            signs = np.where(cosines[np.arange(len(order)), order] < 0, -1.0, 1.0)
    return _ordered(order, signs)


def _ones(d: int) -> Array:
    return np.full((d, d), 1.0 / d)


def _complement_of_ones(d: int) -> Array:
    """Columns: an orthonormal basis of the vectors with sum zero, the same for every model of width d."""
    return lapack.qr(np.concatenate([np.full((d, 1), d**-0.5), np.eye(d)[:, 1:]], axis=1))[0][:, 1:]


def _polar(matrix: Array, group: Stream) -> Array:
    """The orthogonal factor; where 1 is fixed, that of the matrix on the complement of 1."""
    if group == "orthogonal":
        u, _, w = lapack.svd(matrix)
        return np.asarray(u @ w)
    rest = _complement_of_ones(len(matrix))
    u, _, w = lapack.svd(rest.T @ matrix @ rest)
    return np.asarray(_ones(len(matrix)) + rest @ u @ w @ rest.T)
