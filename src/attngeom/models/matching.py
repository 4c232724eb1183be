"""Which head is which and which unit is which: matchings by features that no gauge changes."""

from __future__ import annotations

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.limits.trials import RANDOM_PROJECTIONS
from attngeom.models.affine import Affine
from attngeom.models.layer import AttentionWeights, MLPWeights
from attngeom.models.specification import MLP

SEED = 20240229


def head_features(weights: AttentionWeights) -> Array:
    """Per query head: |k_f||q_hf| of the pairs, singular values of K_gᵀ Q_h and of O_h V_g."""
    heads = weights.heads
    key_share, rotated_share = heads // weights.groups, heads // weights.rotated_groups
    queries, keys = np.abs(weights.rotated_query.weight), np.abs(weights.rotated_key.weight)
    columns = []
    if weights.query_gain is None:
        sizes = np.sqrt((keys**2).sum(axis=-1))
        columns.append(np.sqrt((queries**2).sum(axis=-1)) * np.repeat(sizes, rotated_share, axis=0))
        columns.append(_core_values(weights.grams["key"], weights.grams["query"], key_share))
    else:
        # Under a QK-norm the rows are fixed up to signs and quarter turns: their norms are features.
        columns.append(np.sqrt((queries**2).sum(axis=-1)))
        columns.append(np.repeat(np.sqrt((keys**2).sum(axis=-1)), rotated_share, axis=0))
    columns.append(_core_values(weights.grams["value"], weights.grams["output"], key_share))
    return np.concatenate(columns, axis=1)


def _core_values(inner: Array, outer: Array, share: int) -> Array:
    """Singular values of N_h M_g, by M_g M_gᵀ (G, a, a) and N_hᵀ N_h (H, a, a)."""
    if not inner.shape[1]:
        return np.zeros((len(outer), 0))
    # Singular values are those of the product of Cholesky factors of the two Gram matrices. That costs half the digits,
    # which a feature does not need.
    factors = []
    for gram in (inner, outer):
        ridge = 1e-14 * np.trace(gram, axis1=1, axis2=2)[:, None, None] + 1e-300
        factors.append(lapack.cholesky(gram + ridge * np.eye(gram.shape[-1])))
    cores = factors[1].transpose(0, 2, 1) @ np.repeat(factors[0], share, axis=0)
    return lapack.svdvals(cores)


def match_heads(one: AttentionWeights, other: AttentionWeights) -> tuple[Array, Array]:
    """Orders (heads, groups) of ``other`` that bring it next to ``one``: Hungarian on groups, Hungarian inside."""
    from scipy.optimize import linear_sum_assignment  # slow to load, and few commands need it

    left, right = head_features(one), head_features(other)
    groups, share = one.groups, one.heads // one.groups
    # Relative to the larger of both: a feature that is zero in one of the models does not outweigh all others.
    largest = np.maximum(np.abs(left).max(axis=0), np.abs(right).max(axis=0))
    scale = np.where(largest > 0, largest, 1.0)
    left, right = (left / scale).reshape(groups, share, -1), (right / scale).reshape(groups, share, -1)
    costs = np.empty((groups, groups))
    inside: dict[tuple[int, int], Array] = {}
    for g in range(groups):
        for h in range(groups):
            table = np.linalg.norm(left[g][:, None] - right[h][None], axis=-1)
            rows, columns = linear_sum_assignment(table)
            inside[g, h] = columns
            costs[g, h] = table[rows, columns].sum()
    order = linear_sum_assignment(costs)[1]
    heads = np.concatenate([h * share + inside[g, h] for g, h in enumerate(order)])
    return heads, order


def match_units(spec: MLP, one: MLPWeights, other: MLPWeights) -> Array:
    """Order of the units of ``other`` that brings them next to ``one``, by projections of rows that no scale moves."""
    rng = np.random.default_rng(SEED)
    left, right = (mlp.up if mlp.gate is None else mlp.gate for mlp in (one, other))
    directions = rng.normal(size=(left.shape[1], RANDOM_PROJECTIONS)).astype(left.dtype)
    offsets = rng.normal(size=RANDOM_PROJECTIONS).astype(left.dtype)

    def project(reader: Affine) -> Array:
        points = reader.project(directions) + reader.bias[:, None] * offsets
        if spec.degree:
            size = np.sqrt(np.einsum("ij,ij->i", reader.weight, reader.weight) + reader.bias**2)
            points = points / np.maximum(size, 1e-300)[:, None]
        return np.asarray(points, dtype=np.float64)

    return assign_points(project(left), project(right))


def assign_points(left: Array, right: Array) -> Array:
    """A permutation that pairs points: nearest neighbours; where these are not one, mutual ones, the rest optimally."""
    from scipy.optimize import linear_sum_assignment  # slow to load, and few commands need it
    from scipy.spatial import cKDTree

    # Distances of points near the end of the range of floats would be infinite.
    largest = np.frexp(max(float(np.abs(x).max(initial=0.0)) for x in (left, right)))[1]
    left, right = (np.ldexp(x, -int(largest)) for x in (left, right))
    nearest = cKDTree(right).query(left)[1]
    if len(np.unique(nearest)) == len(right):
        return np.asarray(nearest)
    back = cKDTree(left).query(right)[1]
    mutual = back[nearest] == np.arange(len(left))
    order = np.where(mutual, nearest, -1)
    rows = np.flatnonzero(~mutual)
    columns = np.setdiff1d(np.arange(len(right)), order[mutual])
    if len(rows) > 4096:
        # A table of that size is out of reach, and so many unmatched units say that the MLPs differ: keep the order.
        order[rows] = columns
    elif len(rows):
        table = np.linalg.norm(left[rows][:, None] - right[columns][None], axis=-1)
        order[rows] = columns[linear_sum_assignment(table)[1]]
    return np.asarray(order)
