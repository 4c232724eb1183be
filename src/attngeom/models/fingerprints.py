"""An exact fingerprint: values of gauge-invariant polynomials of the weights at random residues mod 2^61 − 1.

Equal functions related by the symmetries of the layers have equal fingerprints, exactly: orders, signs, powers of two,
moved gains, half or interleaved pairs, fused or split tensors, shared or repeated keys and values. Different invariants
collide with probability at most 3/p each. Cost: a few exact products with every weight matrix.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.files import to_json
from attngeom.limits.shown import LISTED_NAMES
from attngeom.limits.trials import INVARIANT_DEGREE
from attngeom.models.crews import Crew, Progress, each_layer
from attngeom.models.invariants import LayerEvaluator
from attngeom.models.layer import NormWeights
from attngeom.models.model import Model
from attngeom.models.probes import Vectors
from attngeom.models.residues import P, apply, dot, integers, random_residues, residue
from attngeom.models.settings import block_settings, flatten
from attngeom.models.specification import Stack
from attngeom.models.unread import Unread
from attngeom.models.views import ModelView, can_flatten, forgets_means, hands_over
from attngeom.results import Result


@dataclass(frozen=True, kw_only=True)
class LayerPrint:
    """SHA-256 of the sorted invariants of a layer; ``is_generic``: no invariant of a head or unit is zero or twice."""

    digest: str
    heads: tuple[str, ...]
    units: tuple[str, ...]
    is_generic: bool
    count: int


@dataclass(frozen=True, kw_only=True)
class OutsidePrint:
    """SHA-256 of what lies outside the layers, and of the token table alone."""

    digest: str
    tokens: str
    count: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Fingerprint(Result):
    """Digests of all layers, of what lies outside them, and of the whole model."""

    layers: tuple[LayerPrint, ...]
    outside: str
    tokens: str
    """Digest of the token table alone: models that agree in it have their residual streams in the same coordinates."""
    digest: str
    error_probability: float
    left_out: tuple[str, ...] = ()
    """Tensors of the file that the digests do not cover: buffers, which are no weights."""

    @property
    def is_generic(self) -> bool:
        return all(layer.is_generic for layer in self.layers)

    def to_json(self) -> dict[str, Any]:
        return {
            "fingerprint": self.digest,
            "layers": [layer.digest for layer in self.layers],
            "outside": self.outside,
            "is_generic": self.is_generic,
            "left_out": list(self.left_out),
            "seed": self.seed,
            "prime": P,
            "error_probability": self.error_probability,
            **self.select("standing", "reason"),
        }

    def rows(self) -> Mapping[str, Any]:
        digests = {f"layer {i}": layer.digest[:32] for i, layer in enumerate(self.layers)}
        left_out = {"left out": ", ".join(self.left_out)} if self.left_out else {}
        said = self.select("standing", "reason", "seed")
        return {**digests, "outside": self.outside[:32], "model": self.digest[:32], **left_out, **said}

    def __str__(self) -> str:
        lines = [f"layer {i:3d}  {layer.digest[:32]}" for i, layer in enumerate(self.layers)]
        lines += [f"outside    {self.outside[:32]}", f"model      {self.digest[:32]}"]
        lines += [f"standing   {self.standing}", f"reason     {self.reason}"]
        more = len(self.left_out) - LISTED_NAMES
        named = ", ".join(self.left_out[:LISTED_NAMES]) + (f" and {more} more" if more > 0 else "")
        return "\n".join([*lines, *([f"left out   {named} (buffers, no weights)"] if named else [])])


def digest_of(values: Any) -> str:
    """SHA-256 of a JSON value; integers of any size as they are."""
    return hashlib.sha256(to_json(values).encode()).hexdigest()


def fingerprint(model: Model, seed: int = 0, *, crew: Crew = 1, progress: Progress | None = None) -> Fingerprint:
    """The fingerprint of a whole model, layer by layer, in several processes if a ``crew`` is given."""
    model = model.headed
    items = [(model, part, seed) for part in parts(model)]
    return gather(model, each_layer(part_fingerprint, items, crew, layers_done(model, progress)), seed)


def parts(model: Model) -> list[int | None]:
    """The layers, and None for what lies outside them: that is much, and comes early where several are at work."""
    return [0, None, *range(1, model.layers)]


def layers_done(model: Model, progress: Progress | None) -> Progress | None:
    """Progress over the `parts` of a model, told as that over its layers."""
    if progress is None:
        return None

    def step(done: int, _: int) -> None:
        if done <= model.layers:
            progress(done, model.layers)

    return step


def part_fingerprint(model: Model, layer: int | None, seed: int = 0) -> LayerPrint | OutsidePrint:
    """The fingerprint of one layer, or of what lies outside the layers."""
    return _outside(model, seed) if layer is None else layer_fingerprint(model, layer, seed)


def gather(model: Model, prints: Sequence[LayerPrint | OutsidePrint], seed: int) -> Fingerprint:
    """The fingerprint of a model whose `parts` are done."""
    layers = [part for part in prints if isinstance(part, LayerPrint)]
    (rest,) = (part for part in prints if isinstance(part, OutsidePrint))
    outside, tokens, count = rest.digest, rest.tokens, rest.count
    total = digest_of([[layer.digest for layer in layers], outside])
    number = count + sum(layer.count for layer in layers)
    probability = min(1.0, INVARIANT_DEGREE * number / P)
    return Fingerprint(
        standing="probabilistic",
        reason=f"different functions collide with probability {probability:.1e}",
        layers=tuple(layers),
        outside=outside,
        tokens=tokens,
        seed=seed,
        digest=total,
        error_probability=probability,
        left_out=tuple(sorted(name for name, why in model.unread().items() if why is Unread.BUFFER)),
    )


def layer_fingerprint(model: Model, layer: int, seed: int = 0) -> LayerPrint:
    """The fingerprint of one layer."""
    stack, _ = model.place(layer)
    memory = ModelView(model).memory() if len(model.block(layer).attentions) > 1 else None
    evaluator = LayerEvaluator(
        model.block(layer), model.layer(layer), Vectors(seed), memory=memory, order=_places_of_heads(model, stack),
        flat=can_flatten(model.spec),
        closes=ModelView(model).is_taken_up(layer),
    )  # fmt: skip
    residues = evaluator.run()
    settings = digest_of(block_settings(model.block(layer)))
    head_digests = tuple(digest_of(head) for head in residues.heads)
    unit_digests = tuple(digest_of(unit) for unit in residues.units)
    seen = sorted(head_digests)
    summary = [settings, seen, evaluator.sort_units(unit_digests), residues.constants]
    distinct = len(set(seen)) == len(seen) and len(set(unit_digests)) == len(unit_digests)
    return LayerPrint(
        digest=digest_of(summary),
        heads=head_digests,
        units=unit_digests,
        is_generic=distinct and residues.is_generic,
        count=_size(residues.heads) + _size(residues.units) + _size(residues.constants),
    )


def _size(value: Any) -> int:
    return sum(map(_size, value)) if isinstance(value, list | tuple) else 1


def _rows(matrix: Array, vector: Array) -> list[int]:
    return [int(x) for x in apply(matrix, [vector])[:, 0]]


def _embedded(model: Model, vector: Array) -> list[int]:
    """The token table times a vector; tokens that are projected in two steps."""
    if model.spec.embedding_rank:
        table, into, _ = model.factors()
        return _rows(table, apply(into, [vector])[:, 0])
    return _rows(model.embedding(), vector)


def _outside(model: Model, seed: int) -> OutsidePrint:
    """Invariants of embeddings, final norms, head and everything that no symmetry of a layer moves."""
    spec, width = model.spec, model.spec.width
    values: list[Any] = []
    tables: dict[str, list[int]] = {}
    if spec.vocabulary:
        flat = _is_flat(model, spec.stack) and not model.keeps_tokens
        factor = residue(spec.embedding_scale)
        probe = _probe(width, seed, flat) if not spec.stack.embedding_width else _narrow_probe(model, spec.stack, seed)
        tables["tokens"] = [value * factor % P for value in _embedded(model, probe)]
    for stack in spec.stacks:
        narrow = stack.embedding_width > 0
        x = _narrow_probe(model, stack, seed) if narrow else _probe(width, seed, _is_flat(model, stack))
        for part, table in (("positions", model.positions(stack)), ("types", model.token_types(stack))):
            if table is None:
                continue
            rows = _rows(table, x)
            if hands_over(spec) and not model.keeps_tokens:
                # The token table takes up a vector of all rows of the other one.
                tables["tokens"] = [(value + rows[0]) % P for value in tables["tokens"]]
                rows = [(value - rows[0]) % P for value in rows]
            tables[f"{stack.name} {part}"] = rows
    values += [list(item) for item in tables.items()]
    for stack in spec.stacks:
        values.append(_stack_values(model, stack, seed, is_last=stack is spec.stacks[-1]))
    for name, why in sorted(model.unread().items(), key=lambda item: item[0]):
        if why.is_compared:
            values.append(
                [name, hashlib.sha256((model.tensors.raw(name).astype(np.float64) + 0.0).tobytes()).hexdigest()]
            )
    constants = flatten({"head": None if spec.head is None else dict(zip(("scale", "cap"), spec.head.constants))})
    values.append([constants, [stack.name for stack in spec.stacks]])
    return OutsidePrint(digest=digest_of(values), tokens=digest_of(tables.get("tokens")), count=_size(values))


def _probe(width: int, seed: int, flat: bool) -> Array:
    return random_residues(width, f"{seed}/embedding/{flat}", total_zero=flat)


def _widened(model: Model, stack: Stack, seed: int, name: str = "gram") -> tuple[Array, int]:
    """Wᵀz of the map of narrow tables behind the gain of their norm, on 1^⊥, and zᵀ of its constant."""
    wide, norm = model.widening(stack), model.embedding_norm(stack)
    assert wide is not None and norm is not None
    z = random_residues(model.spec.width, f"{seed}/widening {name}", total_zero=False)
    column = apply(wide.weight.T, [z])[:, 0]
    seen = (integers(norm.stored) + residue(norm.offset)) * column % P
    share = pow(stack.embedding_width, -1, P)
    constant = int((dot(column, integers(norm.bias)) + dot(integers(wide.bias), z)) % P)
    return (seen - sum(seen) * share) % P, constant


def _narrow_probe(model: Model, stack: Stack, seed: int) -> Array:
    """What narrow tables are multiplied by: what a probe of the stream is to them, which no turn of both changes."""
    return _widened(model, stack, seed, "tables")[0]


def _is_flat(model: Model, stack: Stack) -> bool:
    """Whether rows of the tables of a stack are not seen along 1."""
    return ModelView(model, flat=can_flatten(model.spec)).is_flat(stack)


def _stack_values(model: Model, stack: Stack, seed: int, *, is_last: bool) -> list[Any]:
    x = _probe(model.spec.width, seed, flat=False)
    values: list[Any] = [stack.embedding_norm.eps if stack.embedding_norm else None]
    values.append(stack.final_norm.eps if stack.final_norm else None)
    norm = model.embedding_norm(stack)
    wide = model.widening(stack)
    if wide is not None and norm is not None:
        gram, constants = _widened(model, stack, seed)
        values += [dot(gram, _narrow_probe(model, stack, seed)), constants, list(stack.path)]
        if ModelView(model).keeps_tokens:
            # Behind the hidden states the rows are read as they are, also along 1.
            table = _rows(model.embedding(), random_residues(stack.embedding_width, f"{seed}/tokens"))
            values.append(table)
    elif norm is not None:
        seen = _probe(model.spec.width, seed, flat=forgets_means(model.spec, stack))
        values += [dot(integers(norm.gain), x), dot(integers(norm.bias), seen)]
    columns = _relative_columns(model, stack)
    if columns is not None:
        values.append(sorted(columns))
    states = model.distances(stack)
    if states is not None:
        flat = stack.distance_norm is not None and stack.distance_norm.kind == "layer"
        probe = random_residues(model.spec.width, f"{seed}/distances", total_zero=flat)
        values.append(_rows(states[0][stack.read_distances], probe))
        values += [] if states[1] is None else [dot(integers(states[1].gain), x), dot(integers(states[1].bias), x)]
    values += _final_values(model, stack, seed, is_last)
    return values


def _relative_columns(model: Model, stack: Stack) -> list[list[int]] | None:
    """Per head its relative positions, less those of the first bucket: softmax does not see a common shift."""
    table = model.relative(stack)
    if table is None:
        return None
    rows = np.delete(integers(table), stack.unused_relative, axis=0)
    return [[int(value) for value in (column[1:] - column[0]) % P] for column in rows.T]


def _places_of_heads(model: Model, stack: Stack) -> list[int] | None:
    """The place of every head among the sorted columns of the table: one order of heads for all layers of a stack."""
    columns = _relative_columns(model, stack)
    if columns is None:
        return None
    known = sorted(columns)
    return [known.index(column) for column in columns]


def _headed(model: Model, columns: list[Array]) -> Array:
    """The head times some vectors, in two steps if it is a product."""
    if model.has_product_head:
        table, _, out = model.factors()
        return apply(table, list(apply(out, columns).T))
    return apply(model.head(), columns)


def _final_values(model: Model, stack: Stack, seed: int, is_last: bool) -> list[Any]:
    """The final norm with its reader: the head, the cross-attention (whose layers have it), or nobody."""
    final, head, norm = model.final_norm(stack), model.spec.head, stack.final_norm
    closing = ModelView(model).closing_norm()
    if is_last and closing is not None:
        norm, final = closing
    if not is_last or (head is None and final is None):
        return []
    final = NormWeights.plain(model.spec.width) if final is None else final
    gain = (integers(final.stored) + residue(final.offset)) % P
    if head is None:
        probe = random_residues(len(gain), f"{seed}/final")
        return [dot(gain, probe), dot(integers(final.bias), probe)]
    x = random_residues(len(gain), f"{seed}/head", total_zero=norm is not None and norm.kind == "layer")
    values = _headed(model, [gain * x % P, integers(final.bias)])
    constants = values[:, 1]
    if head.bias:
        constants = (constants + integers(model.head_bias())) % P
    return [[int(a) for a in values[:, 0]], [int(b) for b in constants]]
