"""Put models together: bring each into the gauge of the first, then average; or add what was learned to a base.

Averages of weights mean nothing unless the same rows stand in the same places. `align` moves every model along its own
orbit, which changes no function, and that is checked; what the average itself computes nobody can promise.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.limits.rounding import PARALLEL_SINE, SAME_STREAM
from attngeom.models.crews import Progress
from attngeom.models.folders import new_folder
from attngeom.models.layer import LayerWeights
from attngeom.models.model import Model, open_model
from attngeom.models.quantised import refuse_quantised
from attngeom.models.reading import DTYPES
from attngeom.models.residual import has_free_stream
from attngeom.models.rewriting import Rewrite, align
from attngeom.models.settings import settings_differences
from attngeom.models.views import is_tied
from attngeom.models.witness import check_outputs
from attngeom.models.writing import Precision, WriteError, write_folder, write_model

Method = Literal["linear", "spherical", "task"]
METHODS: tuple[Method, ...] = ("linear", "spherical", "task")


@dataclass(frozen=True, eq=False)
class Merged(Rewrite):
    """The average of models in one gauge, tensor by tensor; ``model`` is the first of them."""

    inputs: tuple[Model, ...] = ()
    weights: tuple[float, ...] = ()
    method: Method = "linear"
    base: Model | None = None

    def layer(self, layer: int) -> LayerWeights:
        return self.moved().layer(layer)

    def layer_tensors(self, layer: int) -> dict[str, Array]:
        names = (self.model.stored(name) for name in self.model.layer_names(layer))
        return {name: self._tensor(name) for name in names}

    def outside_tensors(self) -> dict[str, Array]:
        own = {self.model.stored(n) for i in range(self.model.layers) for n in self.model.layer_names(i)}
        headers = self.model.tensors.headers
        return {n: self._tensor(n) for n, header in headers.items() if n not in own and header.dtype in DTYPES}

    def _tensor(self, name: str) -> Array:
        parts = [_load(model, name) for model in self.inputs]
        return combine(parts, self.weights, self.method, None if self.base is None else _load(self.base, name))


def _load(model: Model, name: str) -> Array:
    if name not in model.tensors:
        raise InputError(f"{model.tensors.name}: tensor {name[:80]} is missing; the first model has it")
    return np.asarray(model.tensors.raw(name).astype(np.float64))


def combine(parts: Sequence[Array], weights: Sequence[float], method: Method, base: Array | None = None) -> Array:
    """Σ w W (linear); along the great circle (spherical, two tensors); base + Σ w (W − base) (task).

    >>> combine([np.array([2.0, 0.0]), np.array([0.0, 2.0])], [0.5, 0.5], "spherical").round(6).tolist()
    [1.414214, 1.414214]
    """
    if method == "task":
        assert base is not None
        return np.asarray(base + sum(w * (part - base) for w, part in zip(weights, parts)))
    if method == "spherical":
        return _arc(parts[0], parts[1], weights[1] / sum(weights))
    return np.asarray(sum(w * part for w, part in zip(weights, parts)))


def _arc(one: Array, other: Array, share: float) -> Array:
    """The point of the great circle through both directions, its size between both."""
    sizes = [float(np.linalg.norm(part)) for part in (one, other)]
    if not all(sizes):
        return np.asarray((1 - share) * one + share * other)
    angle = float(np.arccos(np.clip((one * other).sum() / (sizes[0] * sizes[1]), -1.0, 1.0)))
    if np.sin(angle) < PARALLEL_SINE:
        return np.asarray((1 - share) * one + share * other)
    direction = (np.sin((1 - share) * angle) * one / sizes[0] + np.sin(share * angle) * other / sizes[1]) / np.sin(
        angle
    )
    return np.asarray(direction * (sizes[0] ** (1 - share) * sizes[1] ** share))


def check_weights(weights: Sequence[float], count: int, what: str) -> None:
    """One finite number for each of ``count`` models or adapters."""
    if len(weights) != count:
        given = ",".join(f"{w:g}" for w in weights)[:60]
        raise InputError(f"weights {given} given for {count} {what}; one number for each is required")
    if wrong := [w for w in weights if not np.isfinite(w)]:
        raise InputError(f"weight {wrong[0]} given; finite numbers are required")


def check_plan(
    models: Sequence[Model], weights: Sequence[float] | None, method: str, base: Model | None
) -> tuple[float, ...]:
    """The weights, checked with everything else that must hold before work begins."""
    if len(models) < 2 and method != "task":
        raise InputError(f"{len(models)} model given; at least two are required to merge")
    if method not in METHODS:
        raise InputError(f"method {str(method)[:40]!r} given; {', '.join(METHODS)} are known")
    if (base is not None) != (method == "task"):
        raise InputError("method task and --base go together; give both or neither")
    if method == "spherical" and len(models) != 2:
        raise InputError(f"{len(models)} models given; spherical merges take two, use linear")
    even = 1.0 if method == "task" else 1 / len(models)
    chosen = tuple(weights) if weights is not None else (even,) * len(models)
    check_weights(chosen, len(models), "models")
    if method != "task" and not 0 < sum(chosen) < np.inf:
        raise InputError(f"weights with sum {sum(chosen)} given; a positive finite sum is required")
    every = [*([base] if base is not None else []), *models]
    for one, other in pairwise(every):
        differences = settings_differences(one.spec, other.spec)
        if differences or one.spec.family != other.spec.family:
            key = next(iter(differences), "family")
            raise InputError(f"models of different kinds given ({key[:60]} differs); merge needs models of one kind")
        if is_tied(one.spec) != is_tied(other.spec):
            tied = Path((one if is_tied(one.spec) else other).whereabouts).name[:60]
            raise InputError(f"{tied} has a head tied to its embedding, another model has its own; save both alike")
    return chosen if method == "task" else tuple(w / sum(chosen) for w in chosen)


def stream_scope(target: Model, model: Model) -> str:
    """ "model" where the stream is another one and free to be changed, else "layer"."""
    if not target.spec.vocabulary or not has_free_stream(target.headed) or not has_free_stream(model.headed):
        return "layer"
    one, other = (np.asarray(m.embedding(), dtype=np.float64).ravel() for m in (target, model))
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    return "layer" if size and one @ other / size >= SAME_STREAM else "model"


def merge(
    models: Sequence[Model], weights: Sequence[float] | None = None, *, method: Method = "linear",
    base: Model | None = None, aligned: bool = True, scope: str = "auto",
) -> Merged:  # fmt: skip
    """The models put together in memory: aligned to the first (to the base for task arithmetic), then averaged.

    >>> from attngeom.models import teleport
    >>> from attngeom.models.samples import LLAMA, random_model
    >>> one = random_model(LLAMA, seed=1)
    >>> both = merge([one, teleport(one, seed=2).moved()]).moved()
    >>> bool(np.allclose(both.head(), one.head()))
    True
    """
    chosen = check_plan(models, weights, method, base)
    target = models[0] if base is None else base
    near = [
        model if model is target or not aligned else align(target, model, _scope(scope, target, model)).moved()
        for model in models
    ]
    return Merged(target, inputs=tuple(near), weights=chosen, method=method, base=base)


def _scope(scope: str, target: Model, model: Model) -> str:
    if scope not in ("auto", "layer", "model"):
        raise InputError(f"scope {scope[:40]!r} given; auto, layer or model is required")
    return stream_scope(target, model) if scope == "auto" else scope


@dataclass(frozen=True, kw_only=True)
class WrittenMerge:
    """The folder, and what was checked before it got its name."""

    path: Path
    method: str
    weights: tuple[float, ...]
    inputs: tuple[dict[str, Any], ...]
    """For each input its path, the scope of the alignment, and how far its function moved by it."""
    norms: tuple[float, float, float]
    """Least, middle and largest norm of a tensor over the mean norm in the inputs."""
    outputs: str
    dtype: str
    bytes: int

    def to_json(self) -> dict[str, Any]:
        return {
            "path": str(self.path), "method": self.method, "weights": list(self.weights), "inputs": list(self.inputs),
            "norm_ratios": {"least": self.norms[0], "median": self.norms[1], "largest": self.norms[2]},
            "outputs": self.outputs, "dtype": self.dtype, "bytes": self.bytes,
        }  # fmt: skip


def write_merge(
    models: Sequence[Model], out: str | Path, weights: Sequence[float] | None = None, *, method: Method = "linear",
    base: Model | None = None, aligned: bool = True, scope: str = "auto", precision: Precision = "auto",
    progress: Progress | None = None,
) -> WrittenMerge:  # fmt: skip
    """Write the merged model to the folder ``out``, which must not exist; one layer at a time is in memory.

    Every aligned input is written beside it first, checked to compute what it computed, and removed at the end. The
    result is opened again, every tensor must be finite, and its outputs are computed where it is small enough.
    """
    chosen, target = check_plan(models, weights, method, base), models[0] if base is None else base
    refuse_quantised([model.dtype for model in (*models, target)], "a merge")
    with new_folder(Path(out), target.path) as temporary:
        near, told = [], []
        for number, model in enumerate(models):
            if model is target or not aligned:
                near.append(model)
                told.append({"path": model.whereabouts, "scope": None, "worst_mismatch": None, "worst_misfit": None})
                continue
            place = temporary / f"aligned-{number}"
            own = _scope(scope, target, model)
            written = write_model(align(target, model, own), place, "auto", progress)
            near.append(open_model(place))
            told.append({"path": model.whereabouts, "scope": own, **_mismatch(written.to_json())})
        merged = Merged(target, inputs=tuple(near), weights=chosen, method=method, base=base)
        dtype = write_folder(merged, temporary, precision, progress)
        result = open_model(temporary)
        norms = _norm_ratios(result, near)
        check = check_outputs(result, result)
        if check.gap is not None and not np.isfinite(check.gap):
            raise WriteError(f"{out} was not written: its outputs are not finite")
        for place in temporary.glob("aligned-*"):
            shutil.rmtree(place)
        note = {"method": method, "weights": list(chosen), "inputs": told}
        (temporary / "merge.json").write_text(json.dumps(note, indent=1) + "\n")
        # Of the weights alone: the note has digits of mismatches, which hang on the CPU.
        size = sum(path.stat().st_size for path in temporary.glob("*.safetensors"))
    outputs = "finite at random inputs" if check.gap is not None else f"not computed: {check.reason}"
    return WrittenMerge(
        path=Path(out), method=method, weights=chosen, inputs=tuple(told), norms=norms, outputs=outputs, dtype=dtype,
        bytes=size,
    )  # fmt: skip


def _mismatch(record: dict[str, Any]) -> dict[str, Any]:
    return {key: record["check"][key] for key in ("worst_mismatch", "worst_misfit", "allowed")}


def _norm_ratios(result: Model, inputs: Sequence[Model]) -> tuple[float, float, float]:
    """Norms of tensors of the result over the mean of those of the inputs; reading them checks that all are finite."""
    ratios = []
    for name, header in result.tensors.headers.items():
        if header.dtype not in DTYPES:
            continue
        own = float(np.linalg.norm(result.tensors.raw(name).astype(np.float64)))
        mean = float(np.mean([np.linalg.norm(_load(model, name)) for model in inputs]))
        ratios.append(own / mean if mean else float(own == 0))
    return float(np.min(ratios)), float(np.median(ratios)), float(np.max(ratios))
