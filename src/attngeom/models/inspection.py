"""Describe a model: its kind, its redundancy, its heads, what is invisible, what was not read, what is free to fuse.

What is free to fuse are exact changes of coordinates that a quantiser, a converter or a merger may multiply in. Each
is a factor of the symmetry group of a layer (docs/theorems/models.md): every element of it leaves the function
unchanged, for all weights and inputs. What is not listed is not free: by Theorem 1' the factors are all there is for
generic weights of the layers that it covers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from attngeom import digits
from attngeom.errors import AttnGeomError
from attngeom.limits.shown import LISTED_NAMES
from attngeom.models.counts.redundancy import Redundancy, redundancy
from attngeom.models.counts.residual import rotation_term
from attngeom.models.crews import Crew, Progress, each_layer
from attngeom.models.findings import HeadRow, Remark, inspect_layer
from attngeom.models.fingerprints import layers_done, parts
from attngeom.models.model import Model
from attngeom.models.specification import Norms, TransformerSpec
from attngeom.models.sublayers import SCORE_OPTIONS
from attngeom.models.symmetry.block import factors
from attngeom.models.symmetry.factor import Freedom
from attngeom.models.unread import Unread
from attngeom.results import Result


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelInspection(Result):
    """What can be said of a configuration, and of weights where they are given.

    Its standing is that of the redundancy of the whole model; that of the layers is told beside it.
    """

    spec: TransformerSpec
    redundancy: Redundancy | None
    heads: tuple[HeadRow, ...] = ()
    findings: tuple[Remark, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "family": self.spec.family,
            "parameters": self.spec.parameters,
            "layers": self.spec.layers,
            "kind": kind_of(self.spec),
            "redundancy": None if self.redundancy is None else self.redundancy.to_json(),
            "group": [] if self.redundancy is None else self.redundancy.group,
            "layer_standing": None if self.redundancy is None else self.redundancy.layers.standing,
            "layer_reason": None if self.redundancy is None else self.redundancy.layers.reason,
            "free_to_fuse": [free.to_json() for free in free_to_fuse(self.spec)],
            "standing": self.standing,
            "reason": self.reason,
            "heads": [row.to_json() for row in self.heads],
            "findings": [finding.to_json() for finding in self.findings],
            "unread": dict(self.unread),
        }

    def _kind(self) -> dict[str, Any]:
        """The settings that are there, in words."""
        there = {label: value for label, value in kind_of(self.spec).items() if value not in (None, False, [])}
        shown = {label.replace("_", " "): _words(value) for label, value in there.items()}
        return {"parameters": f"{self.spec.parameters:,}", **shown}

    def rows(self) -> Mapping[str, Any]:
        counted = {}
        if self.redundancy is not None:
            layers = f"{self.redundancy.layer_scope:,} ({self.redundancy.layers.standing})"
            counted = {"redundant": f"at least {self.redundancy.total:,}", "in the layers": layers}
        remarks = {f"finding {n + 1}": str(finding.text) for n, finding in enumerate(self.findings[:LISTED_NAMES])}
        return {"family": self.spec.family, "layers": self.spec.layers, **self._kind(), **counted, **remarks}

    @property
    def recheck(self) -> str:
        return "attngeom model inspect FOLDER --prove"

    def __str__(self) -> str:
        kind = self._kind()
        width = max(map(len, kind))
        lines = [f"{self.spec.family}, {self.spec.layers} layers"]
        lines += [f"{label:{width}}  {value}" for label, value in kind.items()]
        if self.redundancy is None:
            lines.append(self.reason)
        else:
            lines += ["redundancy:", str(self.redundancy)]
            lines += [f"  {line}" for line in self.redundancy.group]
        lines.append("free to fuse here:")
        lines += [f"  {free}" for free in free_to_fuse(self.spec)]
        lines += _told_once(self.findings)
        if self.heads:
            worst = max(self.heads, key=lambda row: row.condition)
            place = f"layer {worst.layer} head {worst.head}"
            lines.append(f"{len(self.heads)} heads; worst condition {worst.condition:.3g}: {place}")
        return "\n".join([*lines, *(f"  not read: {name} ({reason})" for name, reason in self.unread.items())])


def inspect_spec(spec: TransformerSpec) -> ModelInspection:
    """From the configuration alone."""
    try:
        counts = redundancy(spec)
        return ModelInspection(spec=spec, redundancy=counts, standing=counts.standing, reason=counts.reason)
    except AttnGeomError as error:
        return ModelInspection(spec=spec, redundancy=None, standing="undecided", reason=f"undecided: {error}")


def inspect_part(model: Model, layer: int | None) -> tuple[list[HeadRow], list[Remark]]:
    """One layer; or what lies outside the layers, of which there is nothing to say but that its entries are finite."""
    if layer is not None:
        return inspect_layer(model, layer)
    for name in model.outer_names():
        model.tensors.raw(model.stored(name))
    return [], []


def inspect_model(model: Model, progress: Progress | None = None, crew: Crew = 1) -> ModelInspection:
    """From configuration and weights, layer by layer, in several processes if a ``crew`` is given."""
    base = inspect_spec(model.spec)
    rows: list[HeadRow] = []
    findings: list[Remark] = []
    items = [(model, part) for part in parts(model)]
    for heads, remarks in each_layer(inspect_part, items, crew, layers_done(model, progress)):
        rows += heads
        findings += remarks
    unread = model.unread()
    for name, why in unread.items():
        if why is Unread.UNKNOWN:
            text = f"tensor {name} is not part of this family and is not read"
            findings.append(Remark(layer=None, part="unread", text=text, value=None))
    return replace(
        base, heads=tuple(rows), findings=tuple(findings), unread={n: why.value for n, why in unread.items()}
    )


def kind_of(spec: TransformerSpec) -> dict[str, Any]:
    """The kind of the last stack's first block with attention, and of its mixers, in the words of the interface."""
    block = next((block for block in spec.stack.kinds if block.attention is not None), spec.stack.kinds[0])
    own, mixer = block.attention, next((own.mixer for own in spec.stack.kinds if own.mixer is not None), None)
    rotary = None if own is None else own.rotary
    biases = ("query", "key", "value", "output")
    options = dict.fromkeys(SCORE_OPTIONS) if own is None else own.options
    return {
        "heads": None if own is None else own.heads,
        "kv_heads": None if own is None else own.groups,
        "head_dim": None if own is None else own.head_dim,
        "rotary": None if rotary is None else {"layout": rotary.layout, "dims": rotary.dims},
        "norm": _norm_words(block.mixer_norms if own is None else block.attention_norms),
        **options,
        "bias": [name for name in biases if own is not None and getattr(own, f"{name}_bias")],
        "latent": None if own is None or own.latent is None else own.latent.key_rank,
        "parallel": block.parallel,
        **({} if mixer is None else {"mixer": mixer.options}),
    }


def _told_once(findings: Sequence[Remark]) -> list[str]:
    """One line for each thing that was found, with the layers that it holds for.

    >>> _told_once([Remark(layer=i, part="keys", text="biases are invisible", value=1.0) for i in (0, 1, 2)])
    ['  layers 0 to 2, keys: biases are invisible']
    """
    places: dict[tuple[str, str], list[int]] = {}
    for finding in findings:
        own = places.setdefault((finding.part, finding.text), [])
        own += [] if finding.layer is None else [finding.layer]
    return [f"  {_layers(layers)}, {part}: {text}" for (part, text), layers in places.items()]


def _layers(numbers: list[int]) -> str:
    if len(numbers) < 2:
        return f"layer {numbers[0]}" if numbers else "model"
    if numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"layers {numbers[0]} to {numbers[-1]}"
    return f"{len(numbers)} layers from {numbers[0]} to {numbers[-1]}"


def _words(value: Any) -> str:
    """A setting as text.

    >>> _words({"layout": "half", "dims": 8}), _words(["query", "key"]), _words(True)
    ('layout half, dims 8', 'query, key', 'yes')
    """
    if isinstance(value, dict):
        return ", ".join(f"{name} {entry}" for name, entry in value.items())
    return ", ".join(value) if isinstance(value, list) else "yes" if value is True else str(value)


def _norm_words(norms: Norms) -> list[str]:
    places = {"before": norms.input, "behind": norms.output, "post": norms.stream}
    return [f"{norm.kind} {place}" for place, norm in places.items() if norm is not None]


@dataclass(frozen=True)
class FreeHere:
    """A freedom and the layers of a stack that have it; no layers: the stream of the whole model."""

    freedom: Freedom
    stack: str = ""
    layers: tuple[int, ...] = ()
    everywhere: bool = True

    def to_json(self) -> dict[str, Any]:
        return {"stack": self.stack, "layers": list(self.layers), **self.freedom.to_json()}

    def __str__(self) -> str:
        """One line; layers are named where not all of the stack have the freedom."""
        where = "" if self.everywhere else f", {_ranges(self.layers)}"
        stack = f" of {self.stack}" if self.stack else ""
        free = self.freedom
        told = "" if free.rotations is None else f"; rotations: {free.rotations}"
        return f"{free.tensors}{stack}{where}: {free.matrices}{told}"


def free_to_fuse(spec: TransformerSpec) -> tuple[FreeHere, ...]:
    """The freedoms of every layer, from the configuration alone, and that of the residual stream.

    >>> from attngeom.models.presets import published
    >>> for free in free_to_fuse(published("qwen3-8b")):
    ...     print(free.freedom.tensors, "|", free.freedom.rotations)
    norm attention.input | None
    norm mlp.input | None
    q, k of attention | none
    v, o of attention | all
    heads of attention | None
    hidden units of the MLP | none
    residual stream | all
    """
    return (*_of_layers(spec), FreeHere(_of_stream(spec)))


def _of_layers(spec: TransformerSpec) -> Iterator[FreeHere]:
    for stack in spec.stacks:
        layers: dict[Freedom, dict[int, None]] = {}
        for number, block in enumerate(stack.blocks):
            for factor in factors(block, bool(stack.relative_buckets)):
                for freedom in factor.freedoms():
                    # Experts have the same one each.
                    layers.setdefault(freedom, {})[number] = None
        name = stack.name if len(spec.stacks) > 1 else ""
        for freedom, numbers in layers.items():
            yield FreeHere(freedom, name, tuple(numbers), len(numbers) == len(stack))


def _of_stream(spec: TransformerSpec) -> Freedom:
    term = rotation_term(spec)
    if term.count:
        return Freedom("residual stream", f"{term.group}, once the gains of the norms are in what reads them", "all")
    tied = " (head and token table are one: a rotation needs an untied head)" if spec.head and spec.head.tied else ""
    return Freedom("residual stream", f"signed permutations at most{tied}", "none")


def _ranges(numbers: tuple[int, ...]) -> str:
    """Numbers in order, runs joined, at most six of them.

    >>> _ranges((0, 1, 2, 4, 6))
    'layers 0–2, 4, 6'
    """
    shown = digits.runs(numbers, "–")
    return f"layer{'s' if len(numbers) > 1 else ''} " + ", ".join(
        shown if len(shown) <= 6 else [*shown[:3], "…", shown[-1]]
    )
