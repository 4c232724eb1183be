"""The change R of the stream that brings a child next to a parent: Procrustes of what has the same name in both.

Every group of changes of a stream that a family allows lies in O(d), so the orthogonal R is right for all of them.
Rows of token and position tables and of the head have names; each table counts alike. Where the named rows are too few,
second moments of contents decide, which have no names. In wide streams these would take minutes: there contents are
compared in the span of the named rows, which no disguise takes them out of.

Moments S of one model are R S' Rᵀ of the other, for all heads and units together. R ↦ Σ ⟨S, R S' Rᵀ⟩ is brought to a
maximum by polar factors, from the eigenvectors of the sums; their signs are those on which the moments agree. R and −R
have the same second moments: the mean row that switches units tells them apart.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.limits.rounding import CONTENT_ZERO, STREAM_RANK, STREAM_RANK_SINGLE
from attngeom.limits.trials import MOMENT_STEPS
from attngeom.limits.work import SINGLE_PRECISION_WIDTH, STREAM_ROWS, TABLE_ROWS
from attngeom.models.ancestry.content import Change, Content, content_of
from attngeom.models.views import ModelView


@dataclass(frozen=True, eq=False)
class StreamChange:
    """R of every stack, and what it rests on."""

    change: Change
    source: str
    """"tokens", "moments", "moments of one layer", or "tokens, which span n of d directions"."""
    near: Change | None = None
    """Where tokens span a part of the stream alone: what brings the parent into it; ``change`` does so for the child.
    """
    rank: int | None = None
    """The least number of directions that are compared, where these are not all."""


def named_rows(view: ModelView, keep: Collection[int] | None = None) -> dict[str, dict[str, Array]]:
    """By stack the tables whose rows have names, and the head; without the tokens ``keep``, which are left alone."""
    model = view.model
    tables = {part: table for part, (_, table) in view.tables().items()}
    reader = view.reader()
    if reader is not None and len(reader.weight) == model.spec.vocabulary:
        tables["head"] = reader.weight
    rows: dict[str, dict[str, Array]] = {}
    for stack in model.spec.stacks:
        own = {part: table for part, table in tables.items() if part.startswith(stack.name)}
        if stack.embeds_tokens:
            own |= {part: _others(tables[part], keep) for part in ("embedding", "head") if part in tables}
        elif stack is model.spec.stacks[0]:
            width = model.spec.width
            axes = model.places.written
            own |= {n: np.moveaxis(w, axes[n], -1).reshape(-1, width) for n, w in view.written().items()}
        rows[stack.name] = own
    return rows


def _others(table: Array, keep: Collection[int] | None) -> Array:
    if not keep:
        return table
    return np.asarray(table[np.setdiff1d(np.arange(len(table)), np.fromiter(keep, int))])


def find_change(
    parent: ModelView, child: ModelView, keep: Collection[int] | None = None, tokens: Array | None = None
) -> StreamChange:
    """R with R x of the child nearest to x of the parent, without the tokens ``keep`` of the parent.

    ``tokens`` (n, 2) are ids of the same token, the parent's first; by default an id is the same token in both.
    """
    if tokens is not None and keep:
        tokens, keep = tokens[~np.isin(tokens[:, 0], np.fromiter(keep, int))], None
    near, far = named_rows(parent, keep), named_rows(child, keep)
    width = child.model.spec.width
    kind = np.float32 if width >= SINGLE_PRECISION_WIDTH else np.float64
    result: dict[str, tuple[Array, Array]] = {}
    for stack in child.model.spec.stacks:
        one, other = near.get(stack.name, near[parent.model.spec.stack.name]), far[stack.name]
        result[stack.name] = _common_span(_paired(one, other, tokens, kind), width)
    rank = min(len(own) for own, _ in result.values())
    # The mean of a LayerNorm's stream is read by nobody: one direction may stay open.
    if rank >= width - 1:
        return StreamChange({name: own.T @ moved for name, (own, moved) in result.items()}, "tokens")
    if width < SINGLE_PRECISION_WIDTH:
        return changes_by_moments(parent, child)[0]
    sides = [{name: pair[i] for name, pair in result.items()} for i in (1, 0)]
    return StreamChange(sides[0], f"tokens, which span {rank} of {width} directions", near=sides[1], rank=rank)


def _common_span(tables: Sequence[tuple[Array, Array]], width: int) -> tuple[Array, Array]:
    """(B, C), r × width, with orthonormal rows, Bᵀ C the polar factor of Σ XᵀX' / ‖X‖‖X'‖; all of it if r ≥ width − 1.

    >>> one, other = _common_span([(np.array([[0.0, 2.0, 0.0]]), np.array([[3.0, 0.0, 0.0]]))], 3)
    >>> (one.T @ other).round(12).tolist()
    [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    tables = [(left, right) for left, right in tables if np.any(left) and np.any(right)]
    count = sum(len(left) for left, _ in tables)
    if not count:
        return np.zeros((0, width)), np.zeros((0, width))
    sizes = [float(np.linalg.norm(left) * np.linalg.norm(right)) for left, right in tables]
    limit = STREAM_RANK if tables[0][0].dtype == np.float64 else STREAM_RANK_SINGLE
    if count >= width - 1:
        total = sum((left.T @ right / size for (left, right), size in zip(tables, sizes)), np.zeros(()))
        one, values, two = lapack.svd(total.astype(tables[0][0].dtype, copy=False))
        one = one.T
    else:
        chosen = np.linspace(0, count - 1, min(count, STREAM_ROWS)).astype(int)
        sides = [np.concatenate([pair[i] / size**0.5 for pair, size in zip(tables, sizes)])[chosen] for i in (0, 1)]
        (basis, triangle), (other, twin) = (lapack.qr(side.T) for side in sides)
        one, values, two = lapack.svd(triangle @ twin.T)
        one, two = (basis @ one).T, (other @ two.T).T
    rank = int((values >= limit * values[0]).sum())
    return (one, two) if rank >= width - 1 else (one[:rank], two[:rank])


def changes_by_moments(parent: ModelView, child: ModelView) -> list[StreamChange]:
    """R from second moments of contents: of all layers, and of the two layers whose moments are most alike.

    For vocabularies that have nothing in common, and for layers that come from a model with another stream.
    """
    near, far = ([layer_moments(content_of(v, i)) for i in range(v.model.layers)] for v in (parent, child))
    ways = {
        "moments": (thirds(near), thirds(far)),
        "moments of one layer": tuple([[side[i]] for side, i in zip((near, far), most_alike(near, far))]),
    }
    stacks = [stack.name for stack in child.model.spec.stacks]
    return [StreamChange(dict.fromkeys(stacks, match_moments(*sides)), way) for way, sides in ways.items()]


def _paired(
    one: Mapping[str, Array], other: Mapping[str, Array], tokens: Array | None, kind: type
) -> list[tuple[Array, Array]]:
    """Rows of the same name of both, table by table."""
    pairs = []
    for part in sorted(one.keys() & other.keys()):
        left, right = one[part], other[part]
        is_tokens = part in ("embedding", "head")
        if len(left) != len(right) and not is_tokens:
            continue
        places = np.arange(min(len(left), len(right)))
        near, far = tokens.T if tokens is not None and is_tokens else (places, places)
        rows = np.linspace(0, len(near) - 1, min(len(near), TABLE_ROWS)).astype(int)
        pairs.append((left[near[rows]].astype(kind, copy=False), right[far[rows]].astype(kind, copy=False)))
    return pairs


def match_tokens(parent: Mapping[str, int], child: Mapping[str, int], rows: int, child_rows: int) -> Array | None:
    """Ids of equal tokens of two vocabularies, in the order of the parent's; None where ids are the same anyway."""
    if parent == child:
        return None
    pairs = ((i, child[token]) for token, i in parent.items() if token in child)
    kept = sorted((i, j) for i, j in pairs if i < rows and j < child_rows)
    return np.array(kept, dtype=int) if kept else None


@dataclass(frozen=True, eq=False)
class Moments:
    """Second moments by name, each of norm 1, and the mean of the rows that switch units."""

    named: Mapping[str, Array]
    mean: Array


def layer_moments(content: Content) -> Moments:
    """AᵀA, A Aᵀ, WᵀW and W Wᵀ summed over heads of norm 1, and the same of units; no gauge moves them."""
    sums: dict[str, Array] = {}

    def add(name: str, rows: Array, weights: Array | None = None) -> None:
        flat = rows.reshape(-1, rows.shape[-1])
        moment = (flat.conj() if weights is None else flat.conj() * weights[:, None]).T @ flat
        sums[name] = sums.get(name, 0.0) + moment.real.astype(np.float64)

    named = [(n, getattr(heads, n)) for heads in content.heads[:1] for n in ("plain", "values", "rotary")]
    for name, forms in named:
        if forms is not None:
            left, right = forms.halves()
            add(f"{name} left", left)
            add(f"{name} right", right)
    mean = np.zeros(content.width)
    for units in content.mlps:
        up, down, switch = units.incoming.take(), units.down.take(), units.switch.take()
        sizes, downs = np.linalg.norm(up, axis=1), np.linalg.norm(down, axis=1)
        add("up", up, downs**2)
        add("down", down, sizes**2)
        if units.up is not None:
            add("switch", switch)
        if not units.is_odd:
            mean += (sizes * downs / np.maximum(np.linalg.norm(switch, axis=1), CONTENT_ZERO)) @ switch
    return Moments({name: moment / (np.linalg.norm(moment) or 1.0) for name, moment in sums.items()}, mean)


def thirds(layers: Sequence[Moments]) -> list[Moments]:
    """The moments of the first, middle and last layers, summed."""
    computed = []
    for part in range(3):
        own = [moments for i, moments in enumerate(layers) if 3 * i // len(layers) == part]
        if own:
            known = [set(moments.named) for moments in own]
            # Layers of one kind of sublayer each have no names in common.
            names = sorted(set.intersection(*known) or set.union(*known))
            sums = {n: np.sum([moments.named[n] for moments in own if n in moments.named], axis=0) for n in names}
            computed.append(Moments(sums, np.sum([moments.mean for moments in own], axis=0)))
    return computed


def most_alike(near: Sequence[Moments], far: Sequence[Moments]) -> tuple[int, int]:
    """The two layers whose moments have the most alike eigenvalues, which no R changes."""
    spectra = [[{n: lapack.eigvalsh(s) for n, s in m.named.items()} for m in side] for side in (near, far)]

    def gap(i: int, j: int) -> float:
        one, other = spectra[0][i], spectra[1][j]
        names = sorted(one.keys() & other.keys())
        return float(np.mean([np.abs(one[name] - other[name]).sum() for name in names] or [np.inf]))

    return min(((i, j) for i in range(len(near)) for j in range(len(far))), key=lambda place: gap(*place))


def match_moments(near: Sequence[Moments], far: Sequence[Moments]) -> Array:
    """R with R S' Rᵀ nearest to S, for lists of moments that belong together."""
    pairs = [
        (one.named[name], other.named[name])
        for one, other in zip(near, far)
        for name in sorted(one.named.keys() & other.named.keys())
    ]
    bases = [lapack.eigh(np.sum(side, axis=0))[1] for side in zip(*pairs)]
    agreement = np.sum([(bases[0].T @ s @ bases[0]) * (bases[1].T @ t @ bases[1]) for s, t in pairs], axis=0)
    np.fill_diagonal(agreement, 0.0)
    signs = np.where(lapack.eigh(agreement)[1][:, -1] < 0, -1.0, 1.0)
    change = (bases[0] * signs) @ bases[1].T
    reached = -np.inf
    for _ in range(MOMENT_STEPS):
        gradient = np.sum([s @ change @ t for s, t in pairs], axis=0)
        value = float((gradient * change).sum())
        if value <= reached * (1 + 1e-12):
            break
        reached = value
        left, _, right = lapack.svd(gradient)
        change = left @ right
    agree = sum(float(one.mean @ change @ other.mean) for one, other in zip(near, far))
    return np.asarray(change if agree >= 0 else -change)
