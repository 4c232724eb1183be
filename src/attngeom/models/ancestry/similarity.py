"""How alike two layers are: contents matched on one half by optimal assignment, the other half is the similarity.

Heads are matched by their scores and reported by the cosines of their value maps; units are matched by the rows that
switch them and reported by the cosines of what is left of them. What was matched on is biased, the rest is not.

Heads of one recipe may all be alike, those of one model too: weights of positive mean, values that begin as the
identity. What a pair has in common with pairs that were not matched speaks for no ancestry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.limits.rounding import ALL_IN_COMMON, CONTENT_ZERO
from attngeom.limits.trials import SKETCH_DIRECTIONS
from attngeom.models.ancestry.content import Content, Forms, HeadContent, Rows, UnitContent, content_of
from attngeom.models.matching import assign
from attngeom.models.views import ModelView

SEED = 20261118


@dataclass(frozen=True, eq=False)
class LayerLikeness:
    """Cosines of the value maps of matched heads and of the rest of matched units."""

    heads: Array
    units: Array
    common: tuple[float, float] = (0.0, 0.0)
    """The same of heads, and of units, that were not matched: their medians, 0 where there is one alone."""

    @property
    def similarity(self) -> float:
        """The mean of the two medians."""
        return float(np.mean([np.median(part) for part in (self.heads, self.units) if len(part)] or [0.0]))

    @property
    def beyond(self) -> tuple[float | None, float | None]:
        """Of heads and of units the share of the likeness that pairs lack which were not matched; None where all agree.

        Heads that are all the same map tell no model from another.
        """
        heads, units = (
            (float(np.median(part)) - common) / (1 - common) if len(part) and common < ALL_IN_COMMON else None
            for part, common in zip((self.heads, self.units), self.common)
        )
        return heads, units


def compare_contents(child: Content, parent: Content) -> LayerLikeness:
    """The likeness of two layers in one stream."""
    heads = [_compare_heads(one, other) for one, other in zip(child.heads, parent.heads)]
    twins = _match_mlps(child.mlps, parent.mlps)
    units = [_compare_units(mlp, parent.mlps[twin]) for mlp, twin in zip(child.mlps, twins)]
    (matched, others), (twin_units, other_units) = (
        [_joined([pair[i] for pair in part]) for i in range(2)] for part in (heads, units)
    )
    return LayerLikeness(matched, twin_units, (_common(others), _common(other_units)))


def _joined(parts: Sequence[Array]) -> Array:
    return np.concatenate(parts or [np.zeros(0)])


def _common(values: Array) -> float:
    """The median of pairs that were not matched; what is below zero is nothing in common."""
    return max(float(np.median(values)), 0.0) if len(values) else 0.0


def _compare_heads(child: HeadContent, parent: HeadContent) -> tuple[Array, Array]:
    """For every head of the child that finds one, the cosine of the value maps; those of all other pairs."""
    if _pairs(child) != _pairs(parent):
        child, parent = child.summed(), parent.summed()
    top, near, far = np.zeros((child.count, parent.count)), np.zeros(child.count), np.zeros(parent.count)
    for one, other in ((child.rotary, parent.rotary), (child.plain, parent.plain)):
        top = top if one is None or other is None else top + one.inner(other)
        near = near if one is None else near + one.sizes**2
        far = far if other is None else far + other.sizes**2
    scores = top / np.maximum(np.sqrt(np.outer(near, far)), CONTENT_ZERO)
    rows, columns = assign(-scores)
    values, others = _cosines(child.values, parent.values), np.ones(scores.shape, dtype=bool)
    others[rows, columns] = False
    return values[rows, columns], values[others]


def _pairs(heads: HeadContent) -> int:
    return 0 if heads.rotary is None else heads.rotary.right.shape[1]


def _cosines(one: Forms, other: Forms) -> Array:
    return np.asarray(one.inner(other) / np.maximum(np.outer(one.sizes, other.sizes), CONTENT_ZERO))


def _compare_units(child: UnitContent, parent: UnitContent) -> tuple[Array, Array]:
    """For every unit of the child that finds one the cosine of what it was not matched on; those of other pairs."""
    switches = _unit_rows(child.switch.take()) @ _unit_rows(parent.switch.take()).T
    rows, columns = assign(-(np.abs(switches) if child.is_odd else switches))

    def cosines(one: Rows, other: Rows) -> Array:
        return np.asarray(_unit_rows(one.take(rows)) @ _unit_rows(other.take(columns)).T)

    result = cosines(child.down, parent.down)
    if child.up is not None and parent.up is not None:
        result = result * cosines(child.up, parent.up)
    elif child.is_odd:
        result = result * np.sign(switches[np.ix_(rows, columns)])
    return np.diag(result), result[~np.eye(len(rows), dtype=bool)]


def _unit_rows(rows: Array) -> Array:
    sizes = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return np.asarray(rows / np.maximum(sizes, CONTENT_ZERO if rows.dtype == np.float64 else 1e-30)[:, None])


def _match_mlps(child: Sequence[UnitContent], parent: Sequence[UnitContent]) -> list[int]:
    """For every MLP of the child one of the parent: an assignment of experts, the nearest where it has fewer."""
    if len(parent) < 2 or not child:
        return [0] * len(child) if parent else []
    left, right = directions(child[0].switch.width)
    one, other = (_unit_rows(np.array([mlp.seen(left, right) for mlp in side])) for side in (child, parent))
    table = one @ other.T
    if len(child) > len(parent):
        return [int(i) for i in table.argmax(axis=1)]
    return [int(i) for i in assign(-table)[1]]


def directions(width: int) -> tuple[Array, Array]:
    """Two sets of orthonormal directions of a stream, the same in every run."""
    rng = np.random.default_rng([SEED, width])
    count = min(width, SKETCH_DIRECTIONS)
    first, second = (lapack.qr(rng.normal(size=(width, count)))[0] for _ in range(2))
    return first, second


def phases(count: int) -> Array:
    """Fixed phases, one for every rotary frequency."""
    return np.asarray(np.exp(2j * np.pi * np.random.default_rng(SEED).random(max(count, 1))))


@dataclass(frozen=True, eq=False)
class Sketch:
    """A layer seen along a few directions: scores and values of its heads, the sum of the units of its MLPs."""

    scores: Array
    values: Array
    units: Array

    @classmethod
    def of(cls, content: Content, change: Array | None = None) -> Sketch:
        """Functions of the content alone, so no disguise moves them; the stream is seen as R x."""
        left, right = directions(content.width if change is None else len(change))
        if change is not None:
            left, right = change.T @ left, change.T @ right
        scores = values = np.zeros((0, left.shape[1] * right.shape[1]))
        for heads in content.heads[:1]:
            turns = phases(_pairs(heads))
            parts = [f.seen(left, right, turns) for f in (heads.rotary, heads.plain) if f is not None]
            scores, values = np.sum(parts, axis=0), heads.values.seen(left, right)
        units = np.sum([mlp.seen(left, right) for mlp in content.mlps] or [np.zeros(left.shape[1] ** 2)], axis=0)
        return cls(_unit_rows(scores), _unit_rows(values), _unit_rows(units[None]))

    def likeness(self, other: Sketch) -> float:
        """About the similarity of the two layers."""
        rows, columns = assign(-self.scores @ other.scores.T)
        values = (self.values[rows] * other.values[columns]).sum(axis=1)
        return float(((np.mean(values) if len(values) else 0.0) + (self.units @ other.units.T)[0, 0]) / 2)


def compare_spectra(child: ModelView, parent: ModelView) -> float:
    """Mean over layers of the child of the likeness of singular values with the most alike layer of the parent.

    That is what streams of different widths leave to compare. It needs no R, and says little: independent models have
    much the same values. It is told and decides nothing.
    """
    near, far = (
        [_spectra(heads) for i in range(view.model.layers) for heads in content_of(view, i).heads[:1]]
        for view in (parent, child)
    )
    return float(np.mean([max((_likeness(own, other) for other in near), default=0.0) for own in far] or [0.0]))


def _spectra(heads: HeadContent) -> tuple[Array, Array]:
    """Spectra of the scores and of the value maps of all heads, of norm 1 each."""
    scores = [forms.spectrum for forms in (heads.rotary, heads.plain) if forms is not None]
    return _unit_rows(np.concatenate(scores, axis=1)), _unit_rows(heads.values.spectrum)


def _likeness(child: tuple[Array, Array], parent: tuple[Array, Array]) -> float:
    """Median cosine of spectra of value maps, heads matched by those of their scores."""
    (scores, values), (other_scores, other_values) = child, parent
    rows, columns = assign(-_padded(scores, other_scores))
    return float(np.median(_padded(values, other_values)[rows, columns]))


def _padded(one: Array, other: Array) -> Array:
    """Cosines of spectra; shorter ones end in zeros."""
    count = min(one.shape[1], other.shape[1])
    return np.asarray(one[:, :count] @ other[:, :count].T)
