"""Changes x' = R x of the residual stream that keep the function: which R are free, recovered, canonical and random.

R goes into the embedding, the readers and the writers. It must commute with the norms: any
orthogonal R for RMSNorm, one that fixes the direction of 1 for LayerNorm. A head tied to the embedding reads through
the gain of the final norm, which commutes with orders and signs of coordinates only (signs one by one for RMSNorm, one
sign for all for LayerNorm); gains of norms on outputs, of the stream or of the embedding leave no more.
An encoder and a decoder that begin with the same table turn together; one that begins with a front end turns on its
own: patches are written by a linear map, which follows any R, audio through a GELU, which follows orders only.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np

from attngeom.errors import InputError
from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.groups.ones import complement_of_ones, fixing_ones
from attngeom.models.matching import assign
from attngeom.models.model import Model
from attngeom.models.specification import Stack
from attngeom.models.unread import Unread
from attngeom.models.views import ModelView, Turns, can_flatten, is_tied


class StreamGroup(Enum):
    """A group of changes of a stream."""

    ORTHOGONAL = "orthogonal"
    FIXING_ONES = "orthogonal fixing 1"
    SIGNED_ORDERS = "signed orders"
    ORDERS_AND_SIGN = "orders and a sign"
    ORDERS = "orders"

    @property
    def turns(self) -> bool:
        """Whether it is a group of rotations, not of orders."""
        return self in (StreamGroup.ORTHOGONAL, StreamGroup.FIXING_ONES)

    def basis(self, d: int) -> Array:
        """Columns: an orthonormal basis of what is turned, all of the stream or the vectors with sum zero."""
        if self is StreamGroup.ORTHOGONAL:
            return np.eye(d)
        return complement_of_ones(d)

    def widened(self, turn: Array) -> Array:
        """A rotation of what is turned as one of the stream."""
        d = len(turn) + (self is StreamGroup.FIXING_ONES)
        basis = self.basis(d)
        return turn if self is StreamGroup.ORTHOGONAL else np.full((d, d), 1.0 / d) + basis @ turn @ basis.T

    def polar(self, matrix: Array) -> Array:
        """The orthogonal factor; where 1 is fixed, that of the matrix on the complement of 1."""
        if self is StreamGroup.FIXING_ONES:
            return fixing_ones(matrix)
        u, _, w = lapack.svd(matrix)
        return np.asarray(u @ w)

    def free_signs(self, signs: Array) -> Array:
        """Signs one by one, the first of them for all, or none."""
        if self is StreamGroup.SIGNED_ORDERS:
            return signs
        return np.full(len(signs), signs[0] if self is StreamGroup.ORDERS_AND_SIGN else 1.0)

    def nearest_order(self, cosines: Array) -> Array:
        """The order and signs with the largest sum of cosines; the identity if the tables are no reordering at all."""
        signed = self is StreamGroup.SIGNED_ORDERS
        back = self is StreamGroup.ORDERS_AND_SIGN and (-cosines).max(axis=1).sum() > cosines.max(axis=1).sum()
        sizes = np.abs(cosines) if signed else -cosines if back else cosines
        order = sizes.argmax(axis=1)
        if len(set(order.tolist())) < len(order):
            order = assign(-sizes)[1]
        if signed:
            return _ordered(order, np.where(cosines[np.arange(len(order)), order] < 0, -1.0, 1.0))
        return _ordered(order, np.full(len(order), -1.0 if back else 1.0))


def free_streams(model: Model) -> dict[str, StreamGroup]:
    """By stack the group of free changes of its stream; InputError if the architecture fixes one of them."""
    spec = model.spec
    own = {stack.name: _free(model, (stack,)) for stack in spec.stacks if not stack.embeds_tokens}
    rest = tuple(stack for stack in spec.stacks if stack.embeds_tokens)
    return {stack.name: own[stack.name] if stack.name in own else _free(model, rest) for stack in spec.stacks}


def _free(model: Model, stacks: tuple[Stack, ...]) -> StreamGroup:
    """The group of stacks whose streams turn together."""
    spec, front = model.spec, not stacks[0].embeds_tokens
    places = [part for stack in stacks for block in stack.kinds for part in block.norms]
    norms = [part.input for part in places] + [stack.final_norm for stack in stacks]
    kept = [norm for part in places for norm in (part.output, part.stream)]
    kept += [stack.embedding_norm for stack in stacks]
    kinds = {norm.kind for norm in (*norms, *kept) if norm is not None}
    if any(stack.sines for stack in stacks):
        raise InputError(f"{spec.family} has fixed positions; the residual stream is fixed")
    if spec.head is None or len(kinds) != 1:
        raise InputError(f"{spec.family} has no head, no norms or norms of two kinds; the residual stream is fixed")
    lost = [name for name in model.places.written if front and model.stored(name) not in model.tensors]
    own = [name for name in model.places.copies if name in model.tensors and name not in dict(model.copied())]
    odd = [name for name, why in model.unread().items() if why is Unread.UNKNOWN or name in own]
    odd += [name for name in model.unread() if model.places.front == "patches" and ".pooler." in f".{name}"]
    odd += [model.places.tokens] if model.keeps_tokens and not is_tied(spec) else []
    if lost or odd:
        raise InputError(f"{(lost or odd)[0][:80]} is {'missing' if lost else 'there'}; its residual stream is fixed")
    if front and model.places.front == "audio":
        return StreamGroup.ORDERS  # a GELU lies between the last convolution and the stream
    if is_tied(spec) or any(norm is not None for norm in kept):
        return StreamGroup.SIGNED_ORDERS if kinds == {"rms"} else StreamGroup.ORDERS_AND_SIGN
    return StreamGroup.ORTHOGONAL if kinds == {"rms"} else StreamGroup.FIXING_ONES


def has_free_stream(model: Model) -> bool:
    try:
        free_streams(model)
    except InputError:
        return False
    return True


def _shared(model: Model, find: Callable[[Stack, StreamGroup], Array]) -> Turns:
    """One R for each stack, the same for all stacks that begin with the token table."""
    turns: dict[str, Array] = {}
    tokens: Array | None = None
    for stack in model.spec.stacks:
        if stack.embeds_tokens and tokens is not None:
            turns[stack.name] = tokens
            continue
        turns[stack.name] = find(stack, free_streams(model)[stack.name])
        tokens = turns[stack.name] if stack.embeds_tokens else tokens
    return turns


def _stream_tables(model: Model, stack: Stack, group: StreamGroup) -> Array:
    """Rows that turn with a stream: its tokens, or positions and front end; the head with the final norm folded in."""
    view = ModelView(model, flat=can_flatten(model.spec) and group in (StreamGroup.FIXING_ONES, StreamGroup.ORDERS))
    wide = view.widening(stack)
    if wide is not None:
        head = view.head()
        rows = [wide.weight.T, wide.bias[None], *([] if head is None else [head.weight])]
        return np.concatenate([row / (np.linalg.norm(row) or 1.0) for row in rows])
    tables = [view.embedding()] if stack.embeds_tokens else []
    if not stack.embeds_tokens:
        positions, width = view.positions(stack), model.spec.width
        tables += [] if positions is None else [positions]
        axes = model.places.written
        tables += [np.moveaxis(w, axes[name], -1).reshape(-1, width) for name, w in view.written().items()]
    head = view.head() if stack.embeds_tokens or stack is model.spec.stack else None
    tables += [] if head is None else [head.weight]
    return np.concatenate([np.asarray(table, dtype=np.float64) / (np.linalg.norm(table) or 1.0) for table in tables])


def residual_turns(one: Model, other: Model) -> Turns:
    """R with other's tables times Rᵀ nearest to one's: orthogonal Procrustes, or the order and signs of columns."""

    def find(stack: Stack, group: StreamGroup) -> Array:
        twin = next(item for item in other.spec.stacks if item.name == stack.name)
        left, right = _stream_tables(one, stack, group), _stream_tables(other, twin, group)
        if group.turns:
            return group.polar(left.T @ right)
        scale = np.maximum(np.linalg.norm(left, axis=0)[:, None] * np.linalg.norm(right, axis=0), 1e-300)
        return group.nearest_order(left.T @ right / scale)

    return _shared(one, find)


def canonical_turns(model: Model) -> Turns:
    """The turns that make the Gram matrix of the tables diagonal, or sort columns by norm; signs by largest entries.

    Under LayerNorm the Gram matrix is that of the centred tables in a fixed basis of the complement of 1.
    """

    def find(stack: Stack, group: StreamGroup) -> Array:
        table = _stream_tables(model, stack, group)
        if group.turns:
            basis = group.basis(table.shape[1])
            vectors = lapack.eigh((table @ basis).T @ (table @ basis))[1][:, ::-1]
            return group.widened((vectors * _column_signs(table @ (basis @ vectors))).T)
        order = np.argsort(-np.linalg.norm(table, axis=0), kind="stable")
        return _ordered(order, group.free_signs(_column_signs(table[:, order])))

    return _shared(model, find)


def random_turns(model: Model, rng: np.random.Generator) -> Turns:
    """Random free changes of the residual streams."""
    d = model.spec.width

    def find(stack: Stack, group: StreamGroup) -> Array:
        if group.turns:
            return group.polar(rng.normal(size=(d, d)))
        signs = rng.choice([-1.0, 1.0], size=d)
        return _ordered(rng.permutation(d), group.free_signs(signs))

    return _shared(model, find)


def _column_signs(table: Array) -> Array:
    """±1 per column so that its entry of largest modulus becomes positive."""
    places = np.abs(table).argmax(axis=0)
    return np.where(table[places, np.arange(table.shape[1])] < 0, -1.0, 1.0)


def _ordered(order: Array, signs: Array) -> Array:
    """R with (R x)_i = signs_i x_{order_i}."""
    matrix = np.zeros((len(order), len(order)))
    matrix[np.arange(len(order)), order] = signs
    return matrix
