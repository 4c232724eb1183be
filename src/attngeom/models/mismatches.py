"""How far two aligned layers differ, per head and per unit, and how far rounding of their files would let them differ.

Global norms hide one bad head; every head and every hidden unit is measured on its own. The expected mismatch of a head
is rounding noise pushed through the alignment: random relative errors of the files' unit roundoff in keys and values,
their effect on the matrices that least squares finds, and so on queries and outputs. `folding_noise` adds the loss of
digits by folding (cancellation of mean directions and of constants).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.limits.rounding import (
    FOLDING_ROUNDING,
    HEADS_AGREE,
    MEAN_ROUNDING,
    PLAIN_RESIDUAL,
    RESIDUAL_MARGIN,
    TENSORS_AGREE,
)
from attngeom.models.affine import Affine, row_blocks
from attngeom.models.layer import HEAD_PARTS, AttentionWeights, ExpertsWeights, LayerWeights, MLPWeights, NormWeights
from attngeom.models.orbits import Recovered
from attngeom.models.readers import map_readers
from attngeom.models.specification import Norm, TransformerBlock
from attngeom.models.symmetry import Move, Units

PREFIXES = {"attention": "", "cross": "cross."}
"""What the names of parts of an attention begin with."""
HEADS = frozenset(f"{prefix}{part}" for prefix in PREFIXES.values() for part in ("query", "key", "value", "output"))

UNIT_PARTS = ("gate", "up", "down", "gate_bias", "up_bias")


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """Relative difference of one tensor in one head or unit, and what rounding explains."""

    part: str
    index: int | None
    value: float
    expected: float
    factor: float = TENSORS_AGREE

    @property
    def place(self) -> str:
        """Where in the tensor: a head, a hidden unit, or a row; empty for all of it.

        >>> Mismatch(part="experts.0.up", index=3, value=0.5, expected=0.1).place
        'unit 3'
        """
        if self.index is None:
            return ""
        own = self.part.rpartition(".")[2]
        return f"{'unit' if own in UNIT_PARTS else 'head' if own in HEAD_PARTS else 'row'} {self.index}"

    @property
    def ratio(self) -> float:
        return self.value / self.expected

    @property
    def allowed(self) -> float:
        """The bound that decides: up to it the tensors agree."""
        return self.factor * self.expected


@dataclass(frozen=True, kw_only=True)
class Mismatches:
    """The mismatches of one tensor in all its heads or units, as arrays."""

    part: str
    values: Array
    expected: Array
    is_bound: bool = False
    """Whether what is expected is the bound itself, given by the user."""

    @property
    def factor(self) -> float:
        return 1.0 if self.is_bound else HEADS_AGREE if self.part in HEADS else TENSORS_AGREE

    @property
    def ratios(self) -> Array:
        return self.values / self.expected

    def __getitem__(self, index: int) -> Mismatch:
        place = index if len(self.values) > 1 else None
        value, expected = float(self.values[index]), float(self.expected[index])
        return Mismatch(part=self.part, index=place, value=value, expected=expected, factor=self.factor)

    @property
    def worst(self) -> Mismatch:
        return self[int(self.ratios.argmax())]


class Add(Protocol):
    """Takes the mismatches of one part, and by how much roundoff may have grown there."""

    def __call__(self, part: str, values: Array, growth: Array | float = PLAIN_RESIDUAL) -> None: ...


def layer_mismatches(
    block: TransformerBlock, target: LayerWeights, symmetry: Recovered, unit: float, noise: dict[str, float]
) -> list[Mismatches]:
    """All mismatches of a layer; ``unit`` is the roundoff of the files, ``noise`` the loss by folding per part."""
    result: list[Mismatches] = []

    def add(part: str, values: Array, growth: Array | float = PLAIN_RESIDUAL) -> None:
        # A head of zeros has no rounding to push through: half a unit stands in.
        limits = np.maximum(np.broadcast_to(growth, values.shape), 0.5) * max(1.0, noise.get(part, 1.0))
        if len(values):
            result.append(Mismatches(part=part, values=values, expected=limits * max(unit, FOLDING_ROUNDING)))

    other = symmetry.aligned
    for place, weights in target.attentions.items():
        growth = _growth(place, weights, symmetry, noise)
        _add_attention(add, PREFIXES[place], weights, other.attentions[place], growth)
    _add_experts(add, target.mlp, other.mlp)
    for place, mlp in target.hidden.items():
        _add_units(add, "" if place == "mlp" else f"{place}.", mlp, other.hidden[place], symmetry.units[place])
    for name, norm in target.norms.items():
        _add_norm(add, name, norm, other.norms[name])
    return result


def _add_norm(add: Add, name: str, norm: NormWeights, other: NormWeights) -> None:
    add(f"norm {name}", _whole(norm.gain, other.gain))
    if np.any(norm.bias) or np.any(other.bias):
        add(f"norm bias {name}", _whole(norm.bias, other.bias))


def _growth(place: str, target: AttentionWeights, symmetry: Recovered, noise: dict[str, float]) -> dict[str, Array]:
    """Expected mismatch of every head of query, key, value, output, in units of the roundoff."""
    prefix, groups = PREFIXES[place], target.groups
    linear = [part for part in symmetry.symmetry if isinstance(part, Move) and part.factor.place == place]
    moves = {part.factor.carried.name: part for part in linear}

    def elements(carried: str) -> tuple[Array, Array]:
        """The matrices by which the factor that carries these rows aligned them, and their inverses."""
        if carried in moves:
            return moves[carried].element, moves[carried].back
        like: Affine = getattr(target, carried)
        still = np.tile(np.eye(like.weight.shape[1]), (groups, 1, 1))
        return still, still

    plain, matrices = elements("key"), elements("value")
    keys = max(1.0, noise.get(f"{prefix}key", 1.0))
    values = max(1.0, noise.get(f"{prefix}value", 1.0))
    grams = target.grams
    inner_key, outer_query = _pushed(target.key.weight, grams["key"], grams["query"], *plain, keys)
    inner_value, outer_output = _pushed(target.value.weight, grams["value"], grams["output"], *matrices, values)

    def whole(plain_errors: Array, plain_rows: Array, rotated: Array) -> Array:
        """Errors of plain and rotated rows together, relative to both."""
        sizes = np.hypot(_norms(plain_rows), _norms(rotated))
        own = np.sqrt(2.0) * MEAN_ROUNDING * _norms(rotated)
        return np.asarray(np.hypot(plain_errors * _norms(plain_rows), own) / np.where(sizes > 0, sizes, 1.0))

    rotated_key = target.rotated_key.weight if target.rotated_groups == groups else np.zeros((groups, 1))
    latent = 2.0 if target.key_latent is not None else 1.0
    return {
        "query": RESIDUAL_MARGIN * latent * whole(outer_query, target.query.weight, target.rotated_query.weight),
        "key": RESIDUAL_MARGIN * latent * whole(inner_key, target.key.weight, rotated_key),
        "value": RESIDUAL_MARGIN * latent * inner_value,
        "output": RESIDUAL_MARGIN * latent * outer_output,
    }


def _pushed(inner: Array, gram: Array, outer: Array, matrices: Array, back: Array, noise: float) -> tuple[Array, Array]:
    """Relative errors of inner (G, a, ·) and of outer after alignment by least squares on inner, for u = 1.

    Given are the Gram matrices of both, ``back`` inverts ``matrices``. With C from least squares, independent errors N
    of inner give C (1 + X), X = N inner⁺: the outer side moves by −X, the inner side keeps the part of N outside its
    row space. Expected squares are sums of squares, so nothing is drawn.
    """
    groups, a, width = inner.shape
    if not a:
        return np.zeros(groups), np.zeros(len(outer))
    mixed, share = matrices**2, len(outer) // groups
    pseudo = _inverse(gram) @ inner
    columns = np.stack([np.einsum("gad,gad->gd", pseudo, pseudo), np.ones((groups, width))], axis=-1)
    # Variances of N: own rounding of the target, and rounding of the source carried through the matrix that aligned it:
    # own + mixed source, of which only the sum and the product with the squares of inner⁺ are needed.
    own, source = (np.multiply(rows, rows, out=pseudo) @ columns for rows in (inner, back @ inner))
    shift, total = np.moveaxis(own + mixed @ source, -1, 0)
    squares = np.diagonal(outer, axis1=1, axis2=2)
    moved = (squares * np.repeat(shift, share, axis=0)).sum(axis=1) * noise**2
    spread = np.repeat(matrices, share, axis=0)
    carried = np.maximum(np.einsum("hac,hac->hc", spread, outer @ spread), 0)
    rounded = squares.sum(axis=1) + (carried * np.repeat((back**2).sum(axis=2), share, axis=0)).sum(axis=1)
    left = noise**2 * total.sum(axis=1) * max(1 - a / width, 1 / width)
    return MEAN_ROUNDING * _ratio(left, own[..., 1].sum(axis=1)), MEAN_ROUNDING * _ratio(
        moved + rounded, squares.sum(axis=1)
    )


def _inverse(grams: Array) -> Array:
    """Inverses of Gram matrices, pseudoinverses where one has none."""
    inverse, conditions = lapack.inverses(grams)
    if np.all(conditions < 1e12):
        return inverse
    return lapack.pinv(grams, rcond=1e-13, hermitian=True)


def _norms(array: Array) -> Array:
    """Root of the sum of squares of every entry of the first axis."""
    return np.sqrt(_squares(array))


def _squares(array: Array, other: Array | None = None) -> Array:
    """Sum of squares of every entry of the first axis, of the difference if another array is given, block by block."""
    squares = np.empty(len(array))
    for part in row_blocks(array):
        rows = array[part] if other is None else array[part] - other[part]
        rows = rows.reshape(len(rows), -1)
        if np.iscomplexobj(rows):
            rows = np.ascontiguousarray(rows).view(rows.real.dtype)
        squares[part] = np.einsum("ij,ij->i", rows, rows)
    return squares


def relative(a: Array, b: Array) -> Array:
    """‖a_i − b_i‖ / ‖a_i‖ per entry of the first axis; 0 where both vanish, 1 where only a vanishes."""
    return np.zeros(len(a)) if a is b else _ratio(_squares(a, b), _squares(a))


def _ratio(gaps: Array, sizes: Array) -> Array:
    """Roots of gaps over sizes; for size 0 it is 1, or 0 without a gap."""
    return np.where(sizes > 0, np.sqrt(gaps / np.where(sizes > 0, sizes, 1.0)), np.where(gaps > 0, 1.0, 0.0))


def _gathered(a: Affine, b: Affine, order: Array, factors: Array) -> Array:
    """The same for rows order[i] of b times factors[i], made piece by piece; by columns if b lies so in memory."""
    scales, plain, columns = factors.astype(b.dtype), bool(np.all(factors == 1)), b.by_columns
    sizes, gaps = np.zeros(len(order)), np.zeros(len(order))
    for part in a.parts(columns=columns):
        rows, other = a.piece(part, columns=columns), b.piece(part, order, columns=columns)
        place = slice(None) if columns else part
        gap = np.subtract(rows, other if plain else np.multiply(other, scales[place, None], out=other), out=other)
        sizes[place] += np.einsum("ij,ij->i", rows, rows)
        gaps[place] += np.einsum("ij,ij->i", gap, gap)
    return _ratio(gaps, sizes)


def _shared(a: Array, b: Array) -> Array:
    """‖a_i − b_i‖ over the root mean square of all ‖a_i‖: for biases, of which single ones may be tiny."""
    sizes, gaps = _norms(a), np.sqrt(_squares(a, b))
    size = np.sqrt((sizes**2).mean())
    return gaps / size if size else np.where(gaps > 0, 1.0, 0.0)


def _whole(a: Array, b: Array) -> Array:
    return relative(a[None], b[None])


def _stacked(rotated: Array, plain: Array) -> Array:
    return np.concatenate([rotated.real, rotated.imag, plain], axis=1) if rotated.shape[1] else plain


def _add_attention(add: Add, prefix: str, a: AttentionWeights, b: AttentionWeights, growth: dict[str, Array]) -> None:
    add(f"{prefix}query", _side(relative, a, b, "query"), growth["query"])
    if a.rotated_groups == a.groups:
        add(f"{prefix}key", _side(relative, a, b, "key"), growth["key"])
        add(f"{prefix}key_bias", _bias_side(a, b, "key"), np.maximum(PLAIN_RESIDUAL, growth["key"]))
    else:
        add(f"{prefix}rotated_key", relative(a.rotated_key.weight, b.rotated_key.weight))
        add(f"{prefix}rotated_key_bias", _shared(a.rotated_key.bias, b.rotated_key.bias))
        add(f"{prefix}key", relative(a.key.weight, b.key.weight), growth["key"])
    add(f"{prefix}query_bias", _bias_side(a, b, "query"), np.maximum(PLAIN_RESIDUAL, growth["query"]))
    add(f"{prefix}value", relative(a.value.weight, b.value.weight), growth["value"])
    add(f"{prefix}value_bias", _shared(a.value.bias, b.value.bias), np.maximum(PLAIN_RESIDUAL, growth["value"]))
    add(f"{prefix}output", relative(a.output, b.output), growth["output"])
    add(f"{prefix}output_bias", _whole(a.output_bias, b.output_bias))
    for name in ("query_gain", "key_gain", *a.head_numbers):
        if getattr(a, name) is not None:
            add(f"{prefix}{name}", relative(getattr(a, name), getattr(b, name)))
    for name in ("query_latent", "key_latent"):
        if getattr(a, name) is not None:
            one, other = getattr(a, name).down, getattr(b, name).down
            add(f"{prefix}{name}", _whole(one.weight, other.weight))
            add(f"{prefix}{name}_bias", _whole(one.bias, other.bias))


def _side(measure, a: AttentionWeights, b: AttentionWeights, side: str) -> Array:  # type: ignore[no-untyped-def]
    left, right = (_stacked(getattr(w, f"rotated_{side}").weight, getattr(w, side).weight) for w in (a, b))
    return np.asarray(measure(left, right))


def _bias_side(a: AttentionWeights, b: AttentionWeights, side: str) -> Array:
    left, right = (_stacked(getattr(w, f"rotated_{side}").bias, getattr(w, side).bias) for w in (a, b))
    return _shared(left, right)


def _add_experts(add: Add, a: MLPWeights | ExpertsWeights, b: MLPWeights | ExpertsWeights) -> None:
    """Mismatches of what chooses experts, if there are any."""
    if isinstance(a, MLPWeights) or isinstance(b, MLPWeights):
        return
    add("router", relative(a.router.weight, b.router.weight))
    add("router_bias", _shared(a.router.bias[:, None], b.router.bias[:, None]))
    if a.correction is not None and b.correction is not None:
        add("correction", _whole(a.correction, b.correction))


def _add_units(add: Add, prefix: str, a: MLPWeights, b: MLPWeights, units: Units) -> None:
    """Mismatches of one MLP, the units of b taken in order and scaled as they are read."""
    order, scales = units.order, units.scales
    if a.gate is not None and b.gate is not None:
        add(f"{prefix}gate", _gathered(a.gate, b.gate, order, np.ones(len(order))))
        add(f"{prefix}gate_bias", _shared(a.gate.bias[:, None], b.gate.bias[order, None]))
    add(f"{prefix}up", _gathered(a.up, b.up, order, scales))
    add(f"{prefix}up_bias", _shared(a.up.bias[:, None], (b.up.bias[order] * scales)[:, None]))
    add(f"{prefix}down", _gathered(Affine.linear(a.down.T), Affine.linear(b.down.T), order, 1 / scales))
    add(f"{prefix}down_bias", _whole(a.down_bias, b.down_bias))


def folding_noise(block: TransformerBlock, stored: LayerWeights, folded: LayerWeights) -> dict[str, float]:
    """Per part, the size of what was summed over the size of what is left: 1 means that folding lost no digits."""
    noise: dict[str, float] = {}

    def note(part: str, before: float, after: float) -> None:
        if after > 0:
            noise[part] = max(noise.get(part, 1.0), before / after)

    after: dict[str, Affine] = {}
    constants: dict[str, Array] = {}
    for name, norm in block.input_norms.items():
        prefix = PREFIXES.get(name.removesuffix(".input"), "")
        weights = stored.norms[name]

        def keep(reader: str, affine: Affine, prefix: str = prefix) -> Affine:
            after[prefix + reader] = affine
            return affine

        def measure(
            reader: str, affine: Affine, prefix: str = prefix, norm: Norm = norm, weights: NormWeights = weights
        ) -> Affine:
            part = prefix + reader.removeprefix("rotated_")
            left = after[prefix + reader]
            if norm.kind != "layer" and not np.any(weights.bias) and not np.any(affine.bias):
                return affine
            if norm.kind == "layer":
                note(part, float(np.sqrt(affine.column_squares @ weights.gain**2)), left.size)
            if np.any(weights.bias) or np.any(affine.bias):
                summed = _summed(affine, weights.bias)
                # Biases are measured in units of their mean size: the head or unit with the largest sum bounds all.
                largest = float(_norms(summed).max(initial=0.0))
                note(f"{part}_bias", largest * float(np.sqrt(len(summed))), _size(left.bias))
                if reader == "value":
                    constants[prefix] = summed
            return affine

        map_readers(block, folded, name, keep)
        map_readers(block, stored, name, measure)
    for place, before in stored.attentions.items():
        prefix, left = PREFIXES[place], folded.attentions[place]
        spread = constants.get(prefix, np.abs(before.value.bias))
        sizes = np.repeat(_norms(spread), before.heads // before.groups) * _norms(before.output)
        total = float(np.hypot(np.linalg.norm(sizes), np.linalg.norm(before.output_bias)))
        note(f"{prefix}output_bias", total, _size(left.output_bias))
        if left.output is not before.output:
            note(f"{prefix}output", _size(before.output), _size(left.output))
        if isinstance(stored.mlp, MLPWeights) and isinstance(folded.mlp, MLPWeights):
            whole = float(np.hypot(total, np.linalg.norm(stored.mlp.down_bias)))
            note("down_bias", whole, _size(folded.mlp.down_bias))
            if folded.mlp.down is not stored.mlp.down:
                note("down", _size(stored.mlp.down), _size(folded.mlp.down))
            if "attention.stream" in stored.norms:
                shift, up = stored.norms["attention.stream"].bias, stored.mlp.up
                note("up", _size(up.weight), _size(folded.mlp.up.weight))
                spread = up.weight**2 @ shift**2 + up.bias**2
                note("up_bias", float(np.sqrt(spread.sum())), _size(folded.mlp.up.bias))
                note(
                    "down_bias", float(np.hypot(_size(shift), _size(stored.mlp.down_bias))), _size(folded.mlp.down_bias)
                )
    return noise


def _summed(affine: Affine, shift: Array) -> Array:
    """Root of the sum of squares of what the constant of every row of a map is summed from, block by block."""
    sums = np.empty(affine.bias.shape)
    for part in row_blocks(affine.weight):
        rows = np.abs(affine.weight[part]) ** 2
        sums[part] = np.sqrt(rows @ shift**2 + np.abs(affine.bias[part]) ** 2)
    return sums


def _size(array: Array) -> float:
    return float(np.linalg.norm(array.ravel(order="K")))
