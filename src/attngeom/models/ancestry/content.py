"""The content of a layer: what no symmetry of its block can change, as factors that are never multiplied out.

A head is its score form and its value map W = O V. Without positions the score form is A = Kᵀ Q; with rotary positions
it is one form conj(k_f)ᵀ q_f of rank one for every frequency. A unit is the row that switches it (gate; the incoming
row where there is none) and the rest of it, up ⊗ down (or the outgoing column). Norms are folded into the rows first,
and what no LayerNorm reads is taken away; biases are left out. All of this is fixed by the function up to the order
of heads, units and experts and up to one change R of the stream: readers become W Rᵀ, writers R W.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.limits.rounding import CONTENT_ZERO, GRAM_RIDGE
from attngeom.limits.work import SINGLE_PRECISION_WIDTH
from attngeom.models.affine import Affine
from attngeom.models.layer import AttentionWeights, LatentWeights, MLPWeights, RecurrentWeights
from attngeom.models.model import Model
from attngeom.models.specification import MLP
from attngeom.models.views import ModelView, can_flatten

ODD = ("tanh", "sigmoid")
"""Activations φ(−x) = c − φ(x): without a gate the sign of a unit is free."""


@dataclass(frozen=True, eq=False)
class Forms:
    """The forms left_gᵀ right_h of heads h in groups g, (G, a, d) and (H, a, d), summed over a, or one for ``each`` a.

    >>> one = Forms(np.eye(2)[None], np.eye(2)[None])
    >>> one.inner(one).tolist(), one.sizes.tolist()
    ([[2.0]], [1.4142135623730951])
    """

    left: Array
    right: Array
    each: bool = False

    @property
    def groups(self) -> Array:
        """The group of every head."""
        return np.repeat(np.arange(len(self.left)), len(self.right) // len(self.left))

    def inner(self, other: Forms) -> Array:
        """⟨left_gᵀ right_h, left'_gᵀ right'_h'⟩ for all pairs of heads: traces of products of a × a matrices."""
        if self.each:
            groups = np.einsum("gfd,kfd->fgk", self.left, other.left.conj(), optimize=True)
            heads = np.einsum("hfd,jfd->fhj", self.right.conj(), other.right, optimize=True)
            return np.asarray((groups[:, self.groups][:, :, other.groups] * heads).sum(axis=0).real)
        groups, heads = _products(self.left, other.left), _products(self.right, other.right)
        return np.asarray(np.einsum("haji,haji->hj", groups[self.groups][:, :, other.groups], heads))

    @cached_property
    def sizes(self) -> Array:
        """The norm of the form of every head."""
        if self.each:
            left, right = ((np.abs(side) ** 2).sum(axis=-1) for side in (self.left, self.right))
            return np.asarray(np.sqrt((left[self.groups] * right).sum(axis=1)))
        left, right = (side @ side.transpose(0, 2, 1) for side in (self.left, self.right))
        return np.asarray(np.sqrt(np.maximum(np.einsum("hab,hab->h", left[self.groups], right), 0.0)))

    @cached_property
    def triangles(self) -> list[Array]:
        """L of every head with L Lᵀ the Gram matrix of its left rows, and the same of its right ones."""
        roots = []
        for side in (self.left[self.groups], self.right):
            gram = (side @ side.transpose(0, 2, 1)).astype(np.float64)
            ridge = GRAM_RIDGE * np.trace(gram, axis1=1, axis2=2)[:, None, None] + CONTENT_ZERO
            roots.append(lapack.cholesky(gram + ridge * np.eye(gram.shape[-1])))
        return roots

    def seen(self, left: Array, right: Array, phases: Array | None = None) -> Array:
        """leftᵀ (form) right for a few directions, flattened per head; rotary forms are summed with given phases."""
        one, other = read(self.left, left)[self.groups], read(self.right, right)
        if self.each:
            assert phases is not None
            one = one.conj() * phases[: one.shape[1], None]
        return np.asarray((one.transpose(0, 2, 1) @ other).real.reshape(len(one), -1))

    @property
    def spectrum(self) -> Array:
        """The singular values of the form of every head, decreasing; of rotary forms the sizes of all frequencies."""
        if self.each:
            sizes = np.linalg.norm(self.left, axis=-1)[self.groups] * np.linalg.norm(self.right, axis=-1)
            return np.asarray(-np.sort(-sizes, axis=1))
        left, right = self.triangles
        return lapack.svdvals(left.transpose(0, 2, 1) @ right)

    def halves(self) -> tuple[Array, Array]:
        """Rows whose Gram matrices are A Aᵀ and AᵀA of every head, of norm 1 each."""
        left, right = self.left[self.groups], self.right
        sizes = np.maximum(self.sizes, CONTENT_ZERO)[:, None, None]
        if self.each:
            lengths = [np.linalg.norm(side, axis=-1, keepdims=True) for side in (left, right)]
            return left * lengths[1] / sizes, right * lengths[0] / sizes
        one, other = (root.transpose(0, 2, 1) for root in self.triangles)
        return other @ left / sizes, one @ right / sizes

    def summed(self) -> Forms:
        """Rotary forms at distance 0: one real form."""
        if not self.each:
            return self
        left, right = (np.concatenate([side.real, side.imag], axis=1) for side in (self.left, self.right))
        return Forms(left, right)


def _products(one: Array, other: Array) -> Array:
    """(n, a, n', a') of all products of rows."""
    flat = one.reshape(-1, one.shape[-1]) @ other.reshape(-1, other.shape[-1]).T
    return flat.reshape(*one.shape[:2], *other.shape[:2])


@dataclass(frozen=True, eq=False)
class HeadContent:
    """The heads of one attention: rotary score forms (None without positions), plain ones, value maps."""

    rotary: Forms | None
    plain: Forms | None
    values: Forms
    """Vᵀ Oᵀ: left (G, v, d), right (H, v, d)."""

    @property
    def count(self) -> int:
        return len(self.values.right)

    def summed(self) -> HeadContent:
        """Scores at distance 0 as one plain form, for comparison with a head that rotates otherwise."""
        parts = [forms.summed() for forms in (self.rotary, self.plain) if forms is not None]
        heads = self.count
        left = np.concatenate([_every(part.left, heads) for part in parts], axis=1)
        right = np.concatenate([part.right for part in parts], axis=1)
        return replace(self, rotary=None, plain=Forms(left, right))


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows W of units in the stream R x, W Rᵀ, of which only those are made that are asked for.

    >>> Rows(Affine.linear(np.eye(3)), np.array([[0.0, 1.0, 0.0]])).take(np.array([1, 2])).tolist()
    [[1.0], [0.0]]
    """

    source: Affine
    change: Array | None = None
    kind: type = np.float64
    order: Array | None = None
    """The rows that count, all of them by default."""

    def __len__(self) -> int:
        return len(self.source.bias) if self.order is None else len(self.order)

    @property
    def width(self) -> int:
        return self.source.shape[1] if self.change is None else len(self.change)

    def take(self, order: Array | None = None) -> Array:
        """The rows as an array, or some of them."""
        if self.order is not None:
            order = self.order if order is None else self.order[order]
        rows = self.source.weight if order is None else self.source.piece(slice(None), order)
        rows = rows.astype(self.kind, copy=False)
        return rows if self.change is None else rows @ self.change.T

    def project(self, directions: Array) -> Array:
        """The rows along a few directions."""
        back = directions if self.change is None else self.change.T @ directions
        if self.order is not None:
            return self.take() @ directions.astype(self.kind)
        return np.asarray(self.source.project(back.astype(self.kind)))

    @cached_property
    def sizes(self) -> Array:
        """The norms of the rows before the change, without a copy of them."""
        columns = self.source.by_columns
        total = np.zeros(len(self.source.bias))
        for part in self.source.parts(columns=columns):
            piece = self.source.piece(part, columns=columns)
            total[slice(None) if columns else part] += np.einsum("ij,ij->i", piece, piece)
        sizes = np.sqrt(total)
        return np.asarray(sizes if self.order is None else sizes[self.order])


@dataclass(frozen=True, eq=False)
class UnitContent:
    """The units of one MLP or expert, one row each: ``switch`` (gate or incoming), ``up`` beside a gate, ``down``."""

    switch: Rows
    up: Rows | None
    down: Rows
    is_odd: bool = False

    @property
    def count(self) -> int:
        return len(self.switch)

    @property
    def incoming(self) -> Rows:
        """What is read beside the switch, or the switch itself."""
        return self.switch if self.up is None else self.up

    def largest(self, count: int) -> UnitContent:
        """The units of largest weight ‖up‖ ‖down‖, which no scale moves."""
        if count >= self.count:
            return self
        sizes = self.incoming.sizes * self.down.sizes
        order = np.sort(np.argsort(-sizes, kind="stable")[:count])
        up = None if self.up is None else replace(self.up, order=order)
        return UnitContent(replace(self.switch, order=order), up, replace(self.down, order=order), self.is_odd)

    def seen(self, left: Array, right: Array) -> Array:
        """leftᵀ (Σ up ⊗ down) right, flattened: it knows no order and no scale."""
        return np.asarray((self.incoming.project(left).T @ self.down.project(right)).ravel())


@dataclass(frozen=True, eq=False)
class Content:
    """Heads (of cross-attention too) and MLPs of one layer, which may have one kind of them alone."""

    heads: tuple[HeadContent, ...]
    mlps: tuple[UnitContent, ...]

    @property
    def width(self) -> int:
        """Of the stream."""
        return int(self.heads[0].values.left.shape[-1]) if self.heads else self.mlps[0].switch.width


Change = Mapping[str, Array]
"""Name of a stack → R of its stream, x' = R x; with fewer rows than columns: a part of the stream."""


def content_of(view: ModelView, layer: int, change: Change | None = None, limit: int | None = None) -> Content:
    """The content of a layer in the stream R x; of every MLP the ``limit`` largest units."""
    model = view.model
    folded, block = view.layer(layer), model.block(layer)
    kind = np.float32 if model.spec.width >= SINGLE_PRECISION_WIDTH else np.float64
    own = _matrix(change, model.place(layer)[0].name, kind)
    memory = _matrix(change, model.spec.stacks[0].name, kind)
    sources = {"attention": own, "cross": memory}
    heads = [] if folded.mixer is None else [_mixer_heads(folded.mixer, own, kind)]
    heads += [_heads(weights, own, sources[place], kind) for place, weights in folded.attentions.items()]
    parts = [(spec, folded.hidden[name]) for name, spec in block.hidden.items()]
    mlps = (_units(mlp, weights, kind, own) for mlp, weights in parts)
    return Content(tuple(heads), tuple(units if limit is None else units.largest(limit) for units in mlps))


def view_of(model: Model) -> ModelView:
    """The folded layers of a model, without what no LayerNorm reads."""
    headed = model.headed
    return ModelView(headed, flat=can_flatten(headed.spec))


def _matrix(change: Change | None, stack: str, kind: type) -> Array | None:
    return None if change is None else change[stack].astype(kind, copy=False)


def read(rows: Array, columns: Array) -> Array:
    """Rows, complex ones as their two parts, times real columns, in the precision of the rows."""
    columns = columns.astype(rows.real.dtype, copy=False)
    if not np.iscomplexobj(rows):
        return np.asarray(rows @ columns)
    product = np.empty((*rows.shape[:-1], columns.shape[1]), dtype=rows.dtype)
    product.real, product.imag = rows.real @ columns, rows.imag @ columns
    return product


def _heads(weights: AttentionWeights, own: Array | None, source: Array | None, kind: type) -> HeadContent:
    """Heads as readers of the stream; keys and values read the stream ``source``."""
    queries, keys = weights.query_latent, weights.key_latent

    def changed(rows: Affine, latent: LatentWeights | None, change: Array | None) -> Array:
        weight = rows.weight if latent is None else rows.weight @ latent.down.weight
        weight = weight.astype(np.result_type(kind, np.complex64) if np.iscomplexobj(weight) else kind, copy=False)
        return np.asarray(weight if change is None else read(weight, change.T))

    rotated_query = changed(weights.rotated_query, queries, own)
    rotated_key = changed(weights.rotated_key, None, source)
    query, key = changed(weights.query, queries, own), changed(weights.key, keys, source)
    pairs = rotated_query.shape[1]
    if weights.query_gain is not None and weights.key_gain is not None:
        rotated_query, rotated_key = (
            _with_gain(rows, gain[:, :pairs], gain[:, pairs : 2 * pairs])
            for rows, gain in ((rotated_query, weights.query_gain), (rotated_key, weights.key_gain))
        )
        query, key = query * weights.query_gain[:, 2 * pairs :, None], key * weights.key_gain[:, 2 * pairs :, None]
    output: Array = weights.output.astype(kind, copy=False)
    output = output if own is None else own @ output
    return HeadContent(
        Forms(rotated_key, rotated_query, each=True) if pairs else None,
        Forms(key, query) if query.shape[1] else None,
        Forms(changed(weights.value, keys, source), np.ascontiguousarray(output.transpose(0, 2, 1))),
    )


def _mixer_heads(mixer: RecurrentWeights, own: Array | None, kind: type) -> HeadContent:
    """Heads of a mixer by what they read, each row times the sum of its taps, so that no scale of a channel moves it.

    Heads of a group have the same queries and keys: what their time steps read tells them apart. Where there are no
    keys, the gates of what is written stand for them.
    """

    def changed(weight: Array) -> Array:
        weight = weight.astype(kind, copy=False)
        return np.asarray(weight if own is None else read(weight, own.T))

    def rows(name: str) -> Array:
        weight, taps = getattr(mixer, name).weight, getattr(mixer, f"{name}_taps")
        return changed(weight if taps is None else weight * taps.sum(axis=-1)[..., None])

    if mixer.key is None:
        left = right = changed(mixer.output_gate.weight)
    else:
        left, right = (_every(rows(name), mixer.heads) for name in ("key", "query"))
    if mixer.step is not None:
        steps = changed(mixer.step.weight)[:, None]
        left, right = (np.concatenate([own, steps], axis=1) for own in (left, right))
    output: Array = mixer.output.astype(kind, copy=False)
    written = np.ascontiguousarray((output if own is None else own @ output).transpose(0, 2, 1))
    return HeadContent(None, Forms(left, right), Forms(rows("value"), written))


def _with_gain(rows: Array, real: Array, imaginary: Array) -> Array:
    return np.asarray(rows.real * real[..., None] + 1j * (rows.imag * imaginary[..., None]))


def _every(rows: Array, heads: int) -> Array:
    """Rows of groups repeated for every head."""
    return np.repeat(rows, heads // len(rows), axis=0)


def _units(spec: MLP, weights: MLPWeights, kind: type, change: Array | None) -> UnitContent:
    def rows(source: Affine) -> Rows:
        return Rows(source, change, kind)

    switch = weights.up if weights.gate is None else weights.gate
    # Positive scales of homogeneous units: what is written is told where the switch has length one.
    power = spec.degree - (weights.gate is None) if spec.degree else 0
    column = weights.down.T if not power else weights.down.T * (switch.weight**2).sum(axis=1)[:, None] ** (power / 2)
    down = rows(Affine.linear(column))
    if weights.gate is None:
        return UnitContent(rows(weights.up), None, down, spec.activation in ODD)
    return UnitContent(rows(weights.gate), rows(weights.up), down)
