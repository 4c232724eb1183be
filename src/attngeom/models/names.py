"""The tensor of a checkpoint that holds a part of a layer, for messages that name what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from attngeom.models.layout import AttentionLayout, MixerLayout, MLPLayout, norm_specs
from attngeom.models.mixers import INNER
from attngeom.models.model import Model
from attngeom.models.specification import Experts
from attngeom.models.tensor_errors import TensorPart, norm_bias_part, norm_part

SIDES = ("query", "key", "value")


@dataclass(frozen=True)
class TensorPlace:
    """A tensor below a layer, and the rows of it that are meant; biases know their map and the norm before it."""

    name: str
    rows: str = ""
    map: TensorPart | None = None
    norm: str = ""


Row = tuple[TensorPart, TensorPlace]
"""A part, and where it lies."""


@dataclass(frozen=True)
class TensorNames:
    """The names on disk of the tensors of a layer."""

    model: Model
    layer: int

    def __call__(self, part: TensorPart) -> str:
        """The tensor of a part.

        A bias that the file has no place for was folded out of the norm that the map reads, or is seen through the map.
        """
        model, layer = self.model.origin(self.layer)
        layout = model.places.blocks[model.place(layer)[0].name]
        prefix, place = layout.prefix.format(model.place(layer)[1]), self.table[part]
        stored = model.stored(prefix + place.name)
        if stored in model.tensors or place.map is None:
            return stored + place.rows
        norm = model.stored(f"{prefix}{layout.norms.get(place.norm, '')}.bias")
        return norm if norm in model.tensors else self(place.map)

    @cached_property
    def table(self) -> dict[TensorPart, TensorPlace]:
        """Where each part of the layer lies."""
        model, layer = self.model.origin(self.layer)
        stack, index = model.place(layer)
        layout, mlp = model.places.blocks[stack.name], stack.block(index).mlp
        rows = [] if layout.mixer is None else [*_mixer(layout.mixer)]
        for place, own in (("attention", layout.attention), ("cross", layout.cross)):
            rows += [] if own is None else _attention(own, place, f"{place}.input")
        units = layout.experts or layout.mlp
        if isinstance(mlp, Experts) and units is not None:
            rows += _experts(units, mlp)
        elif layout.mlp is not None:
            rows += _units(layout.mlp, "mlp", "")
        for norm in norm_specs(stack.block(index)):
            name = layout.norms.get(norm, norm)
            rows.append((norm_part(norm), TensorPlace(f"{name}.weight")))
            rows.append((norm_bias_part(norm), TensorPlace(f"{name}.bias")))
        return dict(rows)


def file_name(name: str) -> str:
    """The tensor of a name with the rows that are meant.

    >>> file_name("attn.c_attn.weight (query rows)")
    'attn.c_attn.weight'
    """
    return name.partition(" (")[0]


def _linear(part: TensorPart, name: str, norm: str, rows: str = "") -> Iterator[Row]:
    """A map and its bias."""
    yield part, TensorPlace(f"{name}.weight", rows)
    yield part.bias, TensorPlace(f"{name}.bias", rows, part, norm)


def _attention(layout: AttentionLayout, place: str, norm: str) -> Iterator[Row]:
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
    maps["output_gate"], rows["output_gate"] = layout.query, " (gate rows)"
    for part, name in maps.items():
        yield from _linear(TensorPart(place, part), name, norm, rows.get(part, ""))
    norms = {"query": layout.query_norm, "key": layout.key_norm}
    others = {f"{side}_gain": f"{name}.weight" for side, name in norms.items()}
    others |= {f"{side}_shift": f"{name}.bias" for side, name in norms.items()}
    others.update(layout.extras)
    yield from ((TensorPart(place, part), TensorPlace(name)) for part, name in others.items())


def _mixer(layout: MixerLayout) -> Iterator[Row]:
    """Maps, convolutions, numbers, gains and the output of a mixer."""
    for packed in layout.maps:
        for part in packed.parts:
            rows = f" ({part.replace('_', ' ')} rows)" if len(packed.parts) > 1 else ""
            yield from _linear(TensorPart("mixer", part), packed.name, "mixer.input", rows)
    for packed in layout.convolutions:
        for part in packed.parts:
            rows = f" ({part} channels)" if len(packed.parts) > 1 else ""
            taps = TensorPart("mixer", f"{part}_taps")
            yield taps, TensorPlace(f"{packed.name}.weight", rows)
            yield TensorPart("mixer", f"{part}_shift"), TensorPlace(f"{packed.name}.bias", rows, taps)
    for part, name in layout.inner.items():
        if part in INNER:
            own = TensorPart("mixer", part)
            yield own, TensorPlace(f"{name}_weight")
            yield own.bias, TensorPlace(f"{name}_bias", "", own)
        else:
            yield TensorPart("mixer", part), TensorPlace(name)
    numbers = {**layout.numbers, "gain": f"{layout.gain}.weight" if layout.gain else f"{layout.output}.weight"}
    yield from ((TensorPart("mixer", part), TensorPlace(name)) for part, name in numbers.items())
    yield from _linear(TensorPart("mixer", "output"), layout.output, "mixer.input")


def _units(layout: MLPLayout, place: str, below: str) -> Iterator[Row]:
    for part in ("gate", "up", "down"):
        is_fused = layout.packing == "fused" and part != "down"
        name = layout.up if is_fused else {"gate": layout.gate, "up": layout.up, "down": layout.down}[part]
        rows = f" ({part} rows)" if is_fused else ""
        yield from _linear(TensorPart(place, part), below + name, "mlp.input", rows)


def _experts(layout: MLPLayout, experts: Experts) -> Iterator[Row]:
    """Router, correction, the shared expert, and experts one by one or all in one tensor."""
    yield from _linear(TensorPart("mlp", "router"), layout.router, "mlp.input")
    yield TensorPart("mlp", "correction"), TensorPlace(layout.correction)
    yield from _units(layout.of_shared, "shared", layout.shared)
    if experts.shared_gate:
        yield from _linear(TensorPart("mlp", "shared_gate"), layout.shared_gate, "mlp.input")
    joined = {"packed_experts": ("", "_bias"), "beside_experts": ("", "")}
    endings = {**joined, "stacked_experts": (".weight", ".bias")}.get(layout.packing)
    for number in range(experts.count):
        if endings is None:
            yield from _units(layout, f"experts.{number}", layout.expert.format(number))
            continue
        for part in ("gate", "up", "down"):
            name, rows = layout.down if part == "down" else layout.up, f" (expert {number}, {part})"
            own = TensorPart(f"experts.{number}", part)
            yield own, TensorPlace(name + endings[0], rows)
            yield own.bias, TensorPlace(name + endings[1], rows, own, "mlp.input")
