"""Two towers in one file, of images and of texts (CLIP, SigLIP): read, compared and moved as one function.

The function is the score of an image and a text, e^s ⟨a/|a|, b/|b|⟩ + c with what the towers make of them, a and b.
Each tower is a model of its own, and its symmetries are those of the pair. Two further groups act: a positive number
for each matrix that writes a or b, as their lengths are divided out; where both are written by matrices (CLIP), O(p).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from attngeom.errors import InputError
from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.models.affine import Affine
from attngeom.models.families.towers import PAIRS
from attngeom.models.model import Model, assemble
from attngeom.models.reading import ROUNDOFF, Header, Tensors, open_folder, read_config
from attngeom.models.specification import LogitHead
from attngeom.models.views import ModelView

PREFIXES = {"image": ("vision_model.", "visual_projection."), "text": ("text_model.", "text_projection.")}
"""What the names of the tensors of a tower begin with."""
CONFIGS = {"image": "vision_config", "text": "text_config"}
NUMBERS = ("logit_scale", "logit_bias")
CLIP, LAYERS = {"num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}, "num_hidden_layers"
IMAGE = {**CLIP, "hidden_size": 768, "image_size": 224}
DEFAULTS: Mapping[str, Mapping[str, Mapping[str, int]]] = {
    "clip": {
        "image": {**IMAGE, "patch_size": 32},
        "text": {
            LAYERS: 12, "num_attention_heads": 8, "intermediate_size": 2048, "hidden_size": 512,
            "max_position_embeddings": 77, "vocab_size": 49408, "eos_token_id": 49407,
        },
    },
    "siglip": {
        "image": {**IMAGE, "patch_size": 16},
        "text": {**CLIP, "hidden_size": 768, "max_position_embeddings": 64, "vocab_size": 32000},
    },
}  # fmt: skip
"""Values of keys that the configuration of a tower lacks."""
OLDER = {
    "image": {"hidden_act": "quick_gelu", "layer_norm_eps": 1e-5, "num_channels": 3},
    "text": {"hidden_act": "quick_gelu", "layer_norm_eps": 1e-5, "eos_token_id": 49407},
}
"""Those of all keys that are read, where the configuration of a tower has its older name."""


@dataclass(frozen=True, eq=False)
class TwoTowers:
    """Both towers over one file, each headed by the matrix that writes what is compared, if there is one."""

    towers: Mapping[str, Model]
    tensors: Tensors
    config: Mapping[str, Any]
    path: Path | None = None

    @property
    def kind(self) -> str:
        return str(self.config["model_type"])

    @property
    def heads(self) -> dict[str, Affine]:
        """The maps from what the last norms make to what is compared, gains and biases of the norms in them."""
        heads = {name: ModelView(tower).head() for name, tower in self.towers.items()}
        return {name: head for name, head in heads.items() if head is not None}

    @property
    def turns(self) -> bool:
        """Whether both vectors that are compared are written by matrices, so that they may turn together."""
        return len(self.heads) == len(self.towers)

    @property
    def numbers(self) -> dict[str, float]:
        """Logarithm of what multiplies scores, and what is added to them."""
        return {name: float(self.tensors.raw(name).reshape(-1)[0]) for name in NUMBERS if name in self.tensors}

    @property
    def others(self) -> list[str]:
        """Tensors that belong to no tower."""
        known = {name for tower in self.towers.values() for name in tower.tensors}
        return [name for name in self.tensors if name not in known and name not in NUMBERS]

    @property
    def parameters(self) -> int:
        return sum(tower.spec.parameters for tower in self.towers.values()) + len(self.numbers)

    @property
    def redundancy(self) -> int:
        """What the pair has beyond its towers: a scale of each matrix, and turns of both."""
        sizes = [len(head.bias) for head in self.heads.values()]
        return len(sizes) + (sizes[0] * (sizes[0] - 1) // 2 if self.turns else 0)

    @property
    def dtype(self) -> str:
        """The coarsest type of the stored tensors."""
        return max((tower.dtype for tower in self.towers.values()), key=ROUNDOFF.__getitem__)

    def changed(self, tensors: Mapping[str, Array]) -> TwoTowers:
        """The pair with other values of some tensors."""
        return assemble_pair(_replaced(self.tensors, dict(tensors)), self.config, self.path)

    def state(self, changed: Mapping[str, Array]) -> dict[str, Array]:
        """All tensors, some of them with other values."""
        return {name: np.asarray(self.tensors.raw(name)) for name in self.tensors} | dict(changed)

    def acted(self, scales: Mapping[str, float], turn: Array | None = None) -> dict[str, Array]:
        """The tensors of the heads, multiplied by positive numbers and turned."""
        moved: dict[str, Array] = {}
        for name, scale in scales.items():
            tower = self.towers[name]
            weight, bias = tower.stored(tower.places.head), tower.stored(tower.places.head_bias)
            own = tower.tensors.raw(weight).astype(np.float64)
            moved[weight] = scale * (own if turn is None else turn @ own)
            if tower.spec.head is not None and tower.spec.head.bias:
                shift = tower.tensors.raw(bias).astype(np.float64)
                moved[bias] = scale * (shift if turn is None else turn @ shift)
        return moved

    def with_heads_of(self, target: TwoTowers) -> TwoTowers:
        """The pair with its heads turned and scaled next to those of another one."""
        mine, theirs = self.heads, target.heads
        rows = {name: (theirs[name].rows, mine[name].rows) for name in mine if name in theirs}
        if any(one.shape != other.shape for one, other in rows.values()):
            return self
        if all(np.array_equal(one, other) for one, other in rows.values()):
            return self
        sizes = {name: [float(np.linalg.norm(own)) or 1.0 for own in pair] for name, pair in rows.items()}
        turn = None
        if self.turns:
            both = [one @ other.T / np.prod(sizes[name]) for name, (one, other) in rows.items()]
            u, _, w = lapack.svd(np.asarray(sum(both)))
            turn = u @ w
        return self.changed(self.acted({name: one / other for name, (one, other) in sizes.items()}, turn))


def is_pair(config: Mapping[str, Any]) -> bool:
    """Whether a configuration is that of a model with two towers."""
    return isinstance(config.get("model_type"), str) and config["model_type"] in PAIRS


def open_pair(source: str | Path) -> TwoTowers:
    """Both towers of a folder; every tensor that they ask for is checked, values are loaded later."""
    path = Path(source)
    folder = path if path.is_dir() else path.parent
    return assemble_pair(open_folder(folder), read_config(folder), folder)


def assemble_pair(tensors: Tensors, config: Mapping[str, Any], path: Path | None = None) -> TwoTowers:
    """The pair of named tensors and a configuration."""
    if not is_pair(config):
        raise InputError(f"model_type {str(config.get('model_type'))[:40]!r} given; {' or '.join(PAIRS)} is required")
    kind, towers = str(config["model_type"]), {}
    for name, family in PAIRS[kind].items():
        own = _config_of(config, kind, name)
        own["model_type"] = family.model_type
        if kind == "clip":
            own["projection_dim"] = config.get("projection_dim") or 512
        names = [n for n in tensors if n.startswith(PREFIXES[name])]
        towers[name] = assemble(_part(tensors, tuple(names)), own, path, family).headed
    heads = [tower.spec.head.outputs for tower in towers.values() if isinstance(tower.spec.head, LogitHead)]
    if len(set(heads)) > 1:
        raise InputError(f"projections to {heads[0]} and {heads[1]} numbers given; one number is required")
    if NUMBERS[0] not in tensors:
        raise InputError(f"tensor {NUMBERS[0]} is missing; what multiplies the scores of pairs is required")
    return TwoTowers(towers, tensors, config, path)


def _config_of(config: Mapping[str, Any], kind: str, name: str) -> dict[str, Any]:
    """The configuration of a tower; one under an older name goes before it, with its own defaults (CLIP)."""
    given, older = config.get(CONFIGS[name]) or {}, config.get(f"{CONFIGS[name]}_dict")
    if not all(isinstance(own, dict | None) for own in (given, older)) or (older is not None and kind != "clip"):
        raise InputError(f"config {CONFIGS[name]} given twice, or not as an object; one is required")
    own: dict[str, Any] = {**DEFAULTS[kind][name], **{key: value for key, value in given.items() if value is not None}}
    if older is not None:
        own |= {
            **DEFAULTS[kind][name],
            **OLDER[name],
            **{key: value for key, value in older.items() if value is not None},
        }
    return own


def _part(tensors: Tensors, names: tuple[str, ...]) -> Tensors:
    """Some of the tensors."""
    headers = {name: tensors.headers[name] for name in names}
    return Tensors(headers, tensors.raw, tensors.name, (_part, (tensors, names)))


def _replaced(tensors: Tensors, new: dict[str, Array]) -> Tensors:
    """The tensors with other values of some, in double precision."""
    headers = dict(tensors.headers)
    headers |= {name: Header(own.shape, "F64", headers[name].home) for name, own in new.items()}

    def fetch(name: str) -> Array:
        return new[name] if name in new else tensors.raw(name)

    return Tensors(headers, fetch, tensors.name, (_replaced, (tensors, new)))


def without(tower: Model) -> Model:
    """A tower without the matrix that writes what is compared, and without the norm that it reads."""
    if tower.spec.head is None:
        return tower
    norm = tower.places.final_norm[tower.spec.stack.name]
    gone = {tower.stored(tower.places.head), tower.stored(tower.places.head_bias)}
    gone |= {tower.stored(f"{norm}.{part}") for part in ("weight", "bias")}
    stack = replace(tower.spec.stack, final_norm=None)
    places = replace(tower.places, readers=(), final_norm={})
    spec, kept = replace(tower.spec, head=None, stacks=(stack,)), _but(tower.tensors, gone)
    names = {name: stored for name, stored in tower.names.items() if stored not in gone}
    return replace(tower, spec=spec, places=places, tensors=kept, names=names)


def _but(tensors: Tensors, gone: Iterable[str]) -> Tensors:
    lost = set(gone)
    return _part(tensors, tuple(name for name in tensors if name not in lost))
