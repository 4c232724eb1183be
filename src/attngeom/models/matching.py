"""Which head is which and which unit is which: matchings by features that no gauge changes."""

from __future__ import annotations

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.limits.trials import RANDOM_PROJECTIONS
from attngeom.models.affine import Affine
from attngeom.models.layer import AttentionWeights, MLPWeights, RecurrentWeights
from attngeom.models.specification import MLP

SEED = 20240229
GOLDEN = (np.sqrt(5) - 1) / 2
"""Multiples of it modulo 1 are spread evenly: numbers that tell rows of equal norms apart."""


def head_features(weights: AttentionWeights) -> Array:
    """Per query head: |k_f||q_hf| of the pairs, singular values of K_gᵀ Q_h and of O_h V_g."""
    share, (queries, keys) = weights.heads // weights.groups, weights.pair_norms
    # Under a QK-norm the rows are fixed up to signs and quarter turns: their norms are features.
    columns = [queries, keys]
    if weights.query_gain is None:
        columns = [queries * keys, _core_values(weights.grams["key"], weights.grams["query"], share)]
    return np.concatenate([*columns, _core_values(weights.grams["value"], weights.grams["output"], share)], axis=1)


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


def assign(costs: Array) -> tuple[Array, Array]:
    """Rows and columns of the matching with the least sum of costs."""
    from scipy.optimize import linear_sum_assignment  # slow to load, and few commands need it

    rows, columns = linear_sum_assignment(costs)
    return np.asarray(rows), np.asarray(columns)


def match_heads(one: AttentionWeights, other: AttentionWeights) -> tuple[Array, Array]:
    """Orders (heads, groups) of ``other`` that bring it next to ``one``."""
    return _match_groups(head_features(one), head_features(other), one.groups)


def _evened(left: Array, right: Array) -> tuple[Array, Array]:
    """Features relative to the larger of both: one that is zero in one of the models does not outweigh all others."""
    axes = tuple(range(left.ndim - 1))
    largest = np.maximum(np.abs(left).max(axis=axes, initial=0.0), np.abs(right).max(axis=axes, initial=0.0))
    scale = np.where(largest > 0, largest, 1.0)
    return left / scale, right / scale


def _match_groups(left: Array, right: Array, groups: int) -> tuple[Array, Array]:
    """Orders (heads, groups) by features of heads: Hungarian on groups, Hungarian inside."""
    share = len(left) // groups
    left, right = (own.reshape(groups, share, -1) for own in _evened(left, right))
    costs = np.empty((groups, groups))
    inside: dict[tuple[int, int], Array] = {}
    for g in range(groups):
        for h in range(groups):
            table = np.linalg.norm(left[g][:, None] - right[h][None], axis=-1)
            rows, columns = assign(table)
            inside[g, h] = columns
            costs[g, h] = table[rows, columns].sum()
    order = assign(costs)[1]
    heads = np.concatenate([h * share + inside[g, h] for g, h in enumerate(order)])
    return heads, order


def match_channels(one: RecurrentWeights, other: RecurrentWeights, fixed: bool) -> tuple[Array, Array, Array, Array]:
    """Orders of groups (G), heads (H), channels of keys (G, a) and values (H, v) that bring ``other`` next to ``one``.

    Heads are told by what their gates read, then their channels; ``fixed``: they have places. Where there are no keys,
    values stand for them.
    """
    read = ("value", "output_gate")
    keys, values = (
        _evened(*(_channel_features(mixer, names) for mixer in (one, other)))
        for names in (read if one.key is None else ("key", "query"), read)
    )
    share = one.heads // one.groups
    heads = [
        np.concatenate(
            [_moments(value), np.repeat(_moments(key), share, axis=0), _gate_features(mixer)], axis=1
        )
        for key, value, mixer in zip(keys, values, (one, other))
    ]  # fmt: skip
    by_head = by_group = np.arange(one.heads)
    if not fixed:
        by_head, by_group = _match_groups(heads[0], heads[1], one.groups)
    by_key = np.stack([assign_points(own, keys[1][g]) for own, g in zip(keys[0], by_group)])
    return by_group, by_head, by_key, np.stack([assign_points(own, values[1][h]) for own, h in zip(values[0], by_head)])


def match_values(one: AttentionWeights, other: AttentionWeights) -> Array:
    """Orders (groups, v) of the coordinates of gated values, by what their gates read and products that scales keep."""
    left, right = _evened(*(_value_features(weights) for weights in (one, other)))
    return np.stack([assign_points(*pair) for pair in zip(left, right)])


def _value_features(weights: AttentionWeights) -> Array:
    """(groups, v, ·): for every head of a group the gates, and what values read times what they write."""
    rng, share = np.random.default_rng(SEED), weights.heads // weights.groups
    assert weights.output_gate is not None
    read = np.repeat(_projected(weights.value, rng), share, axis=0)
    written = weights.output.transpose(0, 2, 1) @ rng.normal(size=(weights.output.shape[1], RANDOM_PROJECTIONS))
    columns = np.concatenate([_projected(weights.output_gate, rng), read * written], axis=-1)
    by_group = columns.reshape(weights.groups, share, *columns.shape[1:])
    return by_group.transpose(0, 2, 1, 3).reshape(weights.groups, columns.shape[1], -1)


def _channel_features(mixer: RecurrentWeights, names: tuple[str, ...]) -> Array:
    """Per channel projections of its maps, times those of their taps, which no scale changes; of what gates write."""
    rng = np.random.default_rng(SEED)
    if mixer.inner:
        return _filtered_features(mixer, rng)
    columns = []
    for name in names:
        points = _projected(getattr(mixer, name), rng)
        taps = getattr(mixer, f"{name}_taps", None)
        if taps is None:
            columns.append(points)
        if name == "output_gate":
            written = rng.normal(size=(mixer.output.shape[1], RANDOM_PROJECTIONS))
            columns.append((mixer.output * mixer.gain[:, None]).transpose(0, 2, 1) @ written)
        elif taps is not None:
            columns += [points * (taps @ rng.normal(size=(taps.shape[-1], RANDOM_PROJECTIONS)))]
            columns.append(getattr(mixer, f"{name}_shift")[..., None])
    return np.concatenate(columns, axis=-1)


def _filtered_features(mixer: RecurrentWeights, rng: np.random.Generator) -> Array:
    """The same for values whose convolutions have a scale against what is written, and what the gates of each add."""
    assert mixer.value_taps is not None and mixer.value_shift is not None
    taps = mixer.value_taps @ rng.normal(size=(mixer.value_taps.shape[-1], RANDOM_PROJECTIONS))
    written = mixer.output.transpose(0, 2, 1) @ rng.normal(size=(mixer.output.shape[1], RANDOM_PROJECTIONS))
    gates = [_projected(mixer.output_gate, rng), *(own.bias[..., None] for own in mixer.inner.values())]
    read = _projected(mixer.value, rng) * taps * written, mixer.value_shift[..., None] * written
    assert mixer.damping is not None
    return np.concatenate([*read, *gates, mixer.damping[..., None]], axis=-1)


def _projected(reader: Affine, rng: np.random.Generator) -> Array:
    directions = rng.normal(size=(reader.weight.shape[-1], RANDOM_PROJECTIONS))
    return np.asarray(reader.weight @ directions + reader.bias[..., None] * rng.normal(size=RANDOM_PROJECTIONS))


def _moments(points: Array) -> Array:
    """Means of features and of their squares over the channels of a head."""
    return np.concatenate([points.mean(axis=1), (points**2).mean(axis=1)], axis=1)


def _gate_features(mixer: RecurrentWeights) -> Array:
    """Per head what its gates read, and its numbers."""
    rng = np.random.default_rng(SEED)
    gates = [_projected(gate, rng) for gate in (mixer.step, mixer.strength) if gate is not None]
    numbers = [number[:, None] for number in mixer.head_numbers.values()]
    return np.concatenate([*gates, *numbers, np.zeros((mixer.heads, 0))], axis=1)


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
    from scipy.spatial import cKDTree  # slow to load, and few commands need it

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
        order[rows] = columns[assign(table)[1]]
    return np.asarray(order)
