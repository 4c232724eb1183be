"""Write a rewritten model as a folder that other libraries load: whole, checked, and renamed into place at the end.

Tensors keep their names. config.json is copied with the type of the weights brought up to date, tokenizer and other
small files are copied as they are. The folder is written under a temporary name beside its place and compared with the
model it came from; nothing appears under the final name unless the functions agree within the rounding of the file.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from attngeom.errors import AttnGeomError, InputError
from attngeom.exact.arrays import Array
from attngeom.limits.rounding import NEAR_ISOMETRY, RANDOM_CONDITION, TENSORS_AGREE
from attngeom.limits.sizes import COPIED_BYTES, SHARD_BYTES
from attngeom.models.compact import pack_all
from attngeom.models.comparison import ModelComparison, compare
from attngeom.models.crews import Crew, Progress, each_layer, hired
from attngeom.models.fingerprints import layers_done, parts
from attngeom.models.folders import identity, new_folder, resumed_folder
from attngeom.models.live import LiveCheck, live_check, require_live
from attngeom.models.model import Model, open_model
from attngeom.models.orbits import PARTS
from attngeom.models.quantised import refuse_quantised
from attngeom.models.reading import COMPACT, DTYPES, INDEX, ROUNDOFF, SINGLE, is_inside
from attngeom.models.rewriting import Rewrite, teleport
from attngeom.models.witness import allowed_gap

Precision = Literal["keep", "float32", "auto"]
COPIED = (".json", ".txt", ".model", ".jinja", ".tiktoken", ".md", ".py.txt")
UNFINISHED = ".unfinished"
CONFIG_NAMES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}


class WriteError(AttnGeomError, RuntimeError):
    """A written folder that does not compute the function of the model it came from; it was removed."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """The folder and the comparison that was passed before it got its name."""

    path: Path
    check: ModelComparison
    bytes: int
    dtype: str
    live: LiveCheck

    def to_json(self) -> dict[str, Any]:
        residuals = [layer.worst for layer in self.check.layers if layer.worst is not None]
        worst = max(residuals, key=lambda mismatch: mismatch.ratio, default=None)
        return {
            "path": str(self.path),
            "dtype": self.dtype,
            "bytes": self.bytes,
            "check": {
                "same_function": self.check.same_function,
                "level": self.check.level,
                "worst_mismatch": 0.0 if worst is None else worst.value,
                "worst_misfit": 0.0 if worst is None else worst.value,
                "allowed": 0.0 if worst is None else worst.allowed,
                "logits_gap": self.live.gap,
                "live": self.live.words,
            },
        }


def write_model(
    rewrite: Rewrite, out: str | Path, precision: Precision = "auto",
    progress: Progress | None = None, compact: bool = False, live: bool = False, crew: Crew = 1,
) -> Written:  # fmt: skip
    """Write the rewritten model to the folder ``out``, which must not exist.

    ``precision`` keep stores every tensor in its own type, float32 in float32; auto is float32, or the stored type
    where that is wider. ``compact`` leaves out the entries that the gauge fixes: attngeom reads such a folder like any
    other, other libraries do not; the canonical form of a compact folder, not compact, is a whole folder again.
    ``live`` asks transformers, which is then required, for the logits of both folders. A ``crew`` works on several
    layers at once. Large models, and those that a crew writes, have a file for each layer: a run that was killed leaves
    them in ``out``.partial, and the same call goes on from there.
    """
    place = Path(out)
    if live:
        require_live()
    if precision not in ("keep", "float32", "auto"):
        raise InputError(f"dtype {precision[:40]!r} given; keep or float32 is required")
    refuse_quantised([rewrite.model.dtype], "a rewritten copy")
    is_sharded = _plan(rewrite, precision, compact, crew).is_sharded
    opened = resumed_folder(place, rewrite.model.path, identity(rewrite, precision)) if is_sharded else None
    with opened or new_folder(place, rewrite.model.path) as temporary, hired(crew) as crew:
        dtype = write_folder(rewrite, temporary, precision, progress, compact, crew)
        written = open_model(temporary)
        back = None if rewrite.rotation is None else {name: turn.T for name, turn in rewrite.rotation.items()}
        unit = ROUNDOFF[written.dtype]
        check = compare(rewrite.model, written, level="rounding", scope=rewrite.scope, unit=unit, turns=back, crew=crew)
        if not _is_good(check):
            verdict = "differs from" if check.same_function is False else "cannot be shown to be that of"
            raise WriteError(f"{place} was not written: the result {verdict} the model ({check.reason[:120]})")
        asked = LiveCheck()
        if live and (rewrite.model.path is None or compact or (rewrite.model.path / COMPACT).exists()):
            asked = LiveCheck(None, "not possible: transformers reads whole folders only")
        elif live and rewrite.model.path is not None:
            asked = live_check(rewrite.model, rewrite.model.path, temporary)
        if asked.gap is not None and asked.gap > allowed_gap(ROUNDOFF[written.dtype], 2e-5):
            raise WriteError(f"{place} was not written: by transformers, {asked.words}")
        size = sum(path.stat().st_size for path in temporary.iterdir())
    return Written(path=place, check=check, bytes=size, dtype=dtype, live=asked)


def write_teleport(
    model: Model, out: str | Path, *, seed: int = 0, condition: float = RANDOM_CONDITION,
    parts: Collection[str] = PARTS,
    precision: Precision = "auto", progress: Progress | None = None, live: bool = False,
    crew: Crew = 1,
) -> tuple[Written, float]:  # fmt: skip
    """Write a random model with the same function, and say which condition number its matrices have.

    Where rounding of the file would show, a better conditioned element is drawn from the same seed: its condition
    number is the cube root of the one before.
    """
    while True:
        try:
            moved = teleport(model, seed, condition, parts)
            return write_model(moved, out, precision, progress, live=live, crew=crew), condition
        except WriteError as error:
            if condition == 1:
                wider = "" if precision == "float32" else "; give --dtype float32 where the file is coarser, or"
                raise WriteError(f"{error}{wider or '; give'} fewer --parts") from None
            condition = float(np.cbrt(condition)) if condition > NEAR_ISOMETRY else 1.0


def _is_good(check: ModelComparison) -> bool:
    """Same, or open only because of heads that stand out and that rounding explains all the same."""
    worst = max((layer.worst.ratio for layer in check.layers if layer.worst), default=0.0)
    return check.same_function is True or (check.same_function is None and worst <= TENSORS_AGREE)


def target_type(stored: str, precision: Precision) -> str:
    if stored not in DTYPES or precision == "keep":
        return stored
    return "F64" if precision == "auto" and stored == "F64" else "F32"


@dataclass(frozen=True)
class _Plan:
    """The stored type of every tensor, how many bytes that makes, and whether each layer is a file of its own."""

    targets: dict[str, str]
    total: int
    is_sharded: bool


def _plan(rewrite: Rewrite, precision: Precision, compact: bool, crew: Crew) -> _Plan:
    headers = rewrite.model.tensors.headers
    targets = {name: target_type(header.dtype, precision) for name, header in headers.items()}
    width = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
    total = sum(int(np.prod(h.shape)) * width.get(targets[n], 8) for n, h in headers.items())
    if compact and total > SHARD_BYTES:
        raise InputError(
            f"{total:,} bytes to write; compact folders hold at most {SHARD_BYTES:,}, write without --compact"
        )
    return _Plan(targets, total, not compact and (total > SHARD_BYTES or isinstance(crew, Executor) or crew > 1))


def write_folder(
    rewrite: Rewrite, folder: Path, precision: Precision, progress: Progress | None,
    compact: bool = False, crew: Crew = 1,
) -> str:  # fmt: skip
    """Write all files of the rewritten model; files of layers that are there already are kept."""
    model, plan = rewrite.model, _plan(rewrite, precision, compact, crew)
    targets = plan.targets
    free = shutil.disk_usage(folder).free + sum(path.stat().st_size for path in folder.glob("model-*.safetensors"))
    if plan.total > 0.95 * free:
        raise InputError(f"{plan.total:,} bytes to write and {free:,} free; give a place with more room")

    if plan.is_sharded:
        places = [folder / f"model-{n + 1:05d}-of-{model.layers + 1:05d}.safetensors" for n in range(model.layers + 1)]
        named = dict(zip([*range(model.layers), None], places))
        items = [(rewrite, part, named[part], targets) for part in parts(model)]
        names = each_layer(_write_part, items, crew, layers_done(model, progress))
        weight_map = {name: place.name for (_, _, place, _), own in zip(items, names) for name in own}
        for path in folder.glob(f"*{UNFINISHED}"):
            path.unlink(missing_ok=True)
        index = {"metadata": {"total_size": plan.total}, "weight_map": dict(sorted(weight_map.items()))}
        (folder / INDEX).write_text(json.dumps(index, indent=1))
    else:
        store: dict[str, Array] = {}
        for layer in range(model.layers):
            store |= all_rounded(rewrite.layer_tensors(layer), targets)
            if progress is not None:
                progress(layer + 1, model.layers)
        store |= all_rounded(_outer(rewrite), targets)
        kept = pack_all(store) if compact else store
        save_file(kept, str(folder / (COMPACT if compact else SINGLE)), metadata={"format": "pt"})
    dtype = coarsest_of(targets)
    write_config(model.config, folder, dtype, precision)
    copy_files(model.path, folder)
    return dtype


def coarsest_of(targets: Mapping[str, str]) -> str:
    """The coarsest of the types of tensors, in the words of configurations."""
    types = {target for target in targets.values() if target in DTYPES}
    return CONFIG_NAMES[next((name for name in ("BF16", "F16", "F32") if name in types), "F64")]


def _outer(rewrite: Rewrite) -> dict[str, Array]:
    """What lies outside the layers, moved or as it is stored."""
    model, moved = rewrite.model, rewrite.outside_tensors()
    owners = {model.stored(name) for layer in range(model.layers) for name in model.layer_names(layer)}
    rest = [name for name in model.tensors.headers if name not in owners and name not in moved]
    return moved | {name: model.tensors.raw(name) for name in rest}


def _write_part(rewrite: Rewrite, layer: int | None, place: Path, targets: dict[str, str]) -> list[str]:
    """Write a layer, or what lies outside them, as a file, unless it is there; the names of its tensors."""
    if not place.exists():
        tensors = _outer(rewrite) if layer is None else rewrite.layer_tensors(layer)
        _save(all_rounded(tensors, targets), place)
    return _names_in(place)


def _save(tensors: dict[str, Array], place: Path) -> None:
    """A file appears whole or not at all, and once: tasks of a run that was stopped may still be at work."""
    unfinished = place.with_suffix(f".{uuid4().hex}{UNFINISHED}")
    save_file(tensors, str(unfinished), metadata={"format": "pt"})
    if place.exists():
        unfinished.unlink()
    else:
        unfinished.replace(place)


def _names_in(place: Path) -> list[str]:
    with safe_open(str(place), framework="numpy") as stream:
        return list(stream.keys())


def all_rounded(tensors: dict[str, Array], targets: dict[str, str]) -> dict[str, Array]:
    return {name: _rounded(tensor, targets[name], name) for name, tensor in tensors.items()}


def _rounded(tensor: Array, target: str, name: str) -> Array:
    if target in DTYPES:
        with np.errstate(over="ignore"):
            tensor = tensor.astype(DTYPES[target], copy=False)
    rounded = np.ascontiguousarray(tensor).reshape(tensor.shape)  # single numbers stay without an axis
    if target not in DTYPES:
        return rounded
    if not np.isfinite(rounded.astype(np.float32 if target != "F64" else np.float64)).all():
        raise InputError(f"tensor {name} overflows in {CONFIG_NAMES[target]}; write with --dtype float32")
    return rounded


def write_config(settings: Mapping[str, Any], folder: Path, dtype: str, precision: Precision) -> None:
    """The config of a model; the type of the weights is updated, or loaders would round them again."""
    config = dict(settings)
    if precision != "keep":
        for key in ("dtype", "torch_dtype"):
            if key in config:
                config[key] = dtype
    (folder / "config.json").write_text(json.dumps(config, indent=2, ensure_ascii=False, default=str) + "\n")


def copy_files(source: Path | None, folder: Path) -> None:
    """Tokenizer files and the like: small files with known endings, by content; links that leave are not followed."""
    if source is None:
        return
    for path in sorted(source.iterdir()):
        known = path.name.endswith(COPIED) and not path.name.endswith(INDEX)
        if not known or (folder / path.name).exists() or not path.is_file():
            continue
        if not is_inside(source.resolve(), path.resolve()):
            continue
        if path.stat().st_size <= COPIED_BYTES:
            shutil.copyfile(path, folder / path.name)
