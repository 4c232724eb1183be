"""The change R of the stream that brings a child next to a parent: Procrustes of what has the same name in both.

Every group of changes of a stream that a family allows lies in O(d), so the orthogonal R is right for all of them.
Rows of token and position tables and of the head have names; each table counts alike. Where the named rows are too few,
second moments of contents decide (`moments`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.limits.rounding import STREAM_RANK
from attngeom.limits.work import TABLE_ROWS
from attngeom.models.ancestry.content import Change, content_of
from attngeom.models.ancestry.moments import layer_moments, match_moments, most_alike, thirds
from attngeom.models.views import ModelView


@dataclass(frozen=True, eq=False)
class StreamChange:
    """R of every stack, and what it rests on."""

    change: Change
    source: str
    """"tokens", "moments" or "moments of one layer"."""


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
    result: dict[str, Array] = {}
    is_open = False
    for stack in child.model.spec.stacks:
        one, other = near.get(stack.name, near[parent.model.spec.stack.name]), far[stack.name]
        product = _product(one, other, tokens)
        if product is None:
            is_open = True
            continue
        left, values, right = lapack.svd(product)
        # The mean of a LayerNorm's stream is read by nobody: one direction may stay open.
        is_open |= bool((values < STREAM_RANK * values[0]).sum() > 1)
        result[stack.name] = np.asarray(left @ right)
    return changes_by_moments(parent, child)[0] if is_open else StreamChange(result, "tokens")


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


def _product(one: Mapping[str, Array], other: Mapping[str, Array], tokens: Array | None) -> Array | None:
    """Σ over tables of XᵀX' of rows of the same name, each table normalised; None if there are none."""
    total: Array | None = None
    for part in one.keys() & other.keys():
        left, right = one[part], other[part]
        if tokens is not None and part in ("embedding", "head"):
            left, right = left[tokens[:, 0]], right[tokens[:, 1]]
        count = min(len(left), len(right))
        if len(left) != len(right) and part not in ("embedding", "head"):
            continue
        rows = np.linspace(0, count - 1, min(count, TABLE_ROWS)).astype(int)
        left, right = (np.asarray(table[rows], dtype=np.float64) for table in (left, right))
        size = np.linalg.norm(left) * np.linalg.norm(right)
        if size:
            product = left.T @ right / size
            total = product if total is None else total + product
    return total


def match_tokens(parent: Mapping[str, int], child: Mapping[str, int], rows: int, child_rows: int) -> Array | None:
    """Ids of equal tokens of two vocabularies, in the order of the parent's; None where ids are the same anyway."""
    if parent == child:
        return None
    pairs = ((i, child[token]) for token, i in parent.items() if token in child)
    kept = sorted((i, j) for i, j in pairs if i < rows and j < child_rows)
    return np.array(kept, dtype=int) if kept else None
