"""The tensor of a checkpoint that holds a part of a layer, for messages that name what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from attngeom.models.layout import AttentionLayout, MLPLayout, norm_specs
from attngeom.models.model import Model
from attngeom.models.specification import Experts

SIDES = ("query", "key", "value")


@dataclass(frozen=True)
class TensorPlace:
    """A tensor below a layer, and the rows of it that are meant; biases know their map and the norm before it."""

    name: str
    rows: str = ""
    map: str = ""
    norm: str = ""


Row = tuple[str, TensorPlace]
"""The name of a part, and where it lies."""


@dataclass(frozen=True)
class TensorNames:
    """The names on disk of ``query``, ``cross.value_bias``, ``experts.3.down``, ``norm mlp.input`` and so on."""

    model: Model
    layer: int

    def __call__(self, part: str) -> str:
        """The tensor of a part.

        A bias that the file has no place for was folded out of the norm that the map reads, or is seen through the map.
        """
        model, layer = self.model.origin(self.layer)
        layout = model.places.blocks[model.place(layer)[0].name]
        prefix, place = layout.prefix.format(model.place(layer)[1]), self.table[part]
        stored = model.stored(prefix + place.name)
        if stored in model.tensors or not place.map:
            return stored + place.rows
        norm = model.stored(f"{prefix}{layout.norms.get(place.norm, '')}.bias")
        return norm if norm in model.tensors else self(place.map)

    @cached_property
    def table(self) -> dict[str, TensorPlace]:
        """Where each part of the layer lies."""
        model, layer = self.model.origin(self.layer)
        stack, index = model.place(layer)
        layout, mlp = model.places.blocks[stack.name], stack.block(index).mlp
        rows = [*_attention(layout.attention, "", "attention.input")]
        if layout.cross is not None:
            rows += _attention(layout.cross, "cross.", "cross.input")
        if isinstance(mlp, Experts):
            rows += _experts(layout.experts or layout.mlp, mlp)
        else:
            rows += _units(layout.mlp, "", "")
        for norm in norm_specs(stack.block(index)):
            name = layout.norms.get(norm, norm)
            rows.append((f"norm {norm}", TensorPlace(f"{name}.weight")))
            rows.append((f"norm bias {norm}", TensorPlace(f"{name}.bias")))
        return dict(rows)


def file_name(name: str) -> str:
    """The tensor of a name with the rows that are meant.

    >>> file_name("attn.c_attn.weight (query rows)")
    'attn.c_attn.weight'
    """
    return name.partition(" (")[0]


def _linear(part: str, name: str, norm: str, rows: str = "") -> Iterator[Row]:
    """A map and its bias."""
    yield part, TensorPlace(f"{name}.weight", rows)
    yield f"{part}_bias", TensorPlace(f"{name}.bias", rows, part, norm)


def _attention(layout: AttentionLayout, prefix: str, norm: str) -> Iterator[Row]:
    maps = {"output": layout.output}
    rows = dict.fromkeys(maps, "")
    if layout.packing == "latent":
        maps |= {"query": layout.fused or layout.query, "key": layout.value, "value": layout.value}
        maps |= {"rotated_key": layout.key_down, "query_latent": layout.query_down, "key_latent": layout.key_down}
    elif layout.packing == "split":
        maps |= {"query": layout.query, "key": layout.key, "value": layout.value, "rotated_key": layout.key}
    else:
        maps |= dict.fromkeys((*SIDES, "rotated_key"), layout.fused)
        rows |= {side: f" ({side} rows)" for side in (*SIDES, "rotated_key")}
    for part, name in maps.items():
        yield from _linear(prefix + part, name, norm, rows.get(part, ""))
    yield f"{prefix}query_gain", TensorPlace(f"{layout.query_norm}.weight")
    yield f"{prefix}key_gain", TensorPlace(f"{layout.key_norm}.weight")
    yield from ((prefix + part, TensorPlace(name)) for part, name in layout.extras.items())


def _units(layout: MLPLayout, prefix: str, below: str) -> Iterator[Row]:
    for part in ("gate", "up", "down"):
        is_fused = layout.packing == "fused" and part != "down"
        name = layout.up if is_fused else {"gate": layout.gate, "up": layout.up, "down": layout.down}[part]
        yield from _linear(prefix + part, below + name, "mlp.input", f" ({part} rows)" if is_fused else "")


def _experts(layout: MLPLayout, experts: Experts) -> Iterator[Row]:
    """Router, correction, the shared expert, and experts one by one or all in one tensor."""
    yield from _linear("router", layout.router, "mlp.input")
    yield "correction", TensorPlace(layout.correction)
    yield from _units(layout, "shared.", layout.shared)
    endings = {"packed_experts": ("", "_bias"), "stacked_experts": (".weight", ".bias")}.get(layout.packing)
    for number in range(experts.count):
        if endings is None:
            yield from _units(layout, f"experts.{number}.", layout.expert.format(number))
            continue
        for part in ("gate", "up", "down"):
            name, rows = layout.down if part == "down" else layout.up, f" (expert {number}, {part})"
            own = f"experts.{number}.{part}"
            yield own, TensorPlace(name + endings[0], rows)
            yield f"{own}_bias", TensorPlace(name + endings[1], rows, own, "mlp.input")
