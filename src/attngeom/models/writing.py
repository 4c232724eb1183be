"""Write a rewritten model as a folder that other libraries load: whole, checked, and renamed into place at the end.

Tensors keep their names. config.json is copied with the type of the weights brought up to date, tokenizer and other
small files are copied as they are. The folder is written under a temporary name beside its place and compared with the
model it came from; nothing appears under the final name unless the functions agree within the rounding of the file.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save_file

from attngeom.errors import AttnGeomError, InputError
from attngeom.exact.arrays import Array
from attngeom.models.compact import pack_all
from attngeom.models.comparison import ModelComparison, compare
from attngeom.models.live import LiveCheck, live_check, require_live
from attngeom.models.misfits import SAME
from attngeom.models.model import Model, open_model
from attngeom.models.reading import COMPACT, DTYPES, INDEX, ROUNDOFF, SINGLE, is_inside
from attngeom.models.rewriting import Rewrite, teleport
from attngeom.models.sampling import DEFAULT, PARTS
from attngeom.temporaries import filling

Precision = Literal["keep", "float32", "auto"]
SHARD = 2**31
"""Models of up to this many bytes are written as one file, larger ones as one shard per layer."""
SMALL_FILE = 2**27
NEAR_ONE = 1.3
"""A condition number from which the next smaller one is 1."""
COPIED = (".json", ".txt", ".model", ".jinja", ".tiktoken", ".md", ".py.txt")
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
        found = [layer.worst for layer in self.check.layers if layer.worst is not None]
        worst = max(found, key=lambda misfit: misfit.ratio, default=None)
        return {
            "path": str(self.path),
            "dtype": self.dtype,
            "bytes": self.bytes,
            "check": {
                "same_function": self.check.same_function,
                "level": self.check.level,
                "worst_misfit": 0.0 if worst is None else worst.value,
                "allowed": 0.0 if worst is None else worst.allowed,
                "logits_gap": self.live.gap,
                "live": self.live.words,
            },
        }


def write_model(
    rewrite: Rewrite, out: str | Path, precision: Precision = "auto",
    progress: Callable[[int, int], None] | None = None, compact: bool = False, live: bool = False,
) -> Written:  # fmt: skip
    """Write the rewritten model to the folder ``out``, which must not exist.

    ``precision`` keep stores every tensor in its own type, float32 in float32; auto is float32, or the stored type
    where that is wider. ``compact`` leaves out the entries that the gauge fixes: attngeom reads such a folder like any
    other, other libraries do not; the canonical form of a compact folder, not compact, is a whole folder again.
    ``live`` asks transformers, which is then required, for the logits of both folders.
    """
    place = Path(out)
    if live:
        require_live()
    if precision not in ("keep", "float32", "auto"):
        raise InputError(f"dtype {precision[:40]!r} given; keep or float32 is required")
    with new_folder(place, rewrite.model.path) as temporary:
        dtype = _write_folder(rewrite, temporary, precision, progress, compact)
        written = open_model(temporary)
        back = None if rewrite.rotation is None else {name: turn.T for name, turn in rewrite.rotation.items()}
        unit = ROUNDOFF[written.dtype]
        check = compare(rewrite.model, written, level="rounding", scope=rewrite.scope, unit=unit, turns=back)
        if not _is_good(check):
            raise WriteError(f"{place} was not written: the result differs from the model ({check.reason[:120]})")
        asked = LiveCheck()
        if live and (rewrite.model.path is None or compact or (rewrite.model.path / COMPACT).exists()):
            asked = LiveCheck(None, "not possible: transformers reads whole folders only")
        elif live and rewrite.model.path is not None:
            asked = live_check(rewrite.model, rewrite.model.path, temporary)
        if asked.gap is not None and asked.gap > _allowed_gap(written.dtype):
            raise WriteError(f"{place} was not written: by transformers, {asked.words}")
        size = sum(path.stat().st_size for path in temporary.iterdir())
    return Written(path=place, check=check, bytes=size, dtype=dtype, live=asked)


def write_teleport(
    model: Model, out: str | Path, *, seed: int = 0, condition: float = DEFAULT, parts: Collection[str] = PARTS,
    precision: Precision = "auto", progress: Callable[[int, int], None] | None = None, live: bool = False,
) -> tuple[Written, float]:  # fmt: skip
    """Write a random model with the same function, and say which condition number its matrices have.

    Where rounding of the file would show, a better conditioned element is drawn from the same seed: its condition
    number is the cube root of the one before.
    """
    while True:
        try:
            moved = teleport(model, seed, condition, parts)
            return write_model(moved, out, precision, progress, live=live), condition
        except WriteError as error:
            if condition == 1:
                wider = "" if precision == "float32" else "; give --dtype float32 where the file is coarser, or"
                raise WriteError(f"{error}{wider or '; give'} fewer --parts") from None
            condition = float(np.cbrt(condition)) if condition > NEAR_ONE else 1.0


@contextmanager
def new_folder(place: Path, source: Path | None) -> Iterator[Path]:
    """A temporary folder beside ``place`` that gets its name at the end, or vanishes if the work fails."""
    _check_place(place, source)
    try:
        with filling(place) as temporary:
            yield temporary
    except (OSError, SafetensorError) as error:
        words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"nothing was changed: cannot write {place}: {words[:80]}; give a place with room") from None


def _allowed_gap(dtype: str) -> float:
    """How far logits of transformers may move: rounding amplified by layers, at least its own float32 steps."""
    return min(max(2e3 * ROUNDOFF[dtype], 2e-5), 0.3)


def _is_good(check: ModelComparison) -> bool:
    """Same, or open only because of heads that stand out and that rounding explains all the same."""
    worst = max((layer.worst.ratio for layer in check.layers if layer.worst), default=0.0)
    return check.same_function is True or (check.same_function is None and worst <= SAME)


def _check_place(place: Path, source: Path | None) -> None:
    if place.exists() or place.is_symlink():
        raise InputError(f"{place} exists already; give the name of a new folder, models are never changed in place")
    if not place.parent.is_dir():
        raise InputError(f"{place.parent} is not a folder; give a place in an existing folder")
    if source is not None and source.resolve() == place.resolve():
        raise InputError(f"{place} is the model itself; give the name of a new folder")


def _target_type(stored: str, precision: Precision) -> str:
    if stored not in DTYPES or precision == "keep":
        return stored
    return "F64" if precision == "auto" and stored == "F64" else "F32"


def _write_folder(
    rewrite: Rewrite, folder: Path, precision: Precision, progress: Callable[[int, int], None] | None, compact: bool
) -> str:
    model = rewrite.model
    headers = model.tensors.headers
    targets = {name: _target_type(header.dtype, precision) for name, header in headers.items()}
    width = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
    total = sum(int(np.prod(h.shape)) * width.get(targets[n], 8) for n, h in headers.items())
    free = shutil.disk_usage(folder).free
    if total > 0.95 * free:
        raise InputError(f"{total:,} bytes to write and {free:,} free; give a place with more room")
    owners: dict[str, int] = {}
    for layer in range(model.layers):
        owners |= {model.stored(name): layer for name in model.layer_names(layer)}
    if compact and total > SHARD:
        raise InputError(f"{total:,} bytes to write; compact folders hold at most {SHARD:,}, write without --compact")
    single = total <= SHARD
    store: dict[str, Array] = {}
    weight_map: dict[str, str] = {}

    def flush(number: int) -> None:
        if not single:
            name = f"model-{number:05d}-of-{model.layers + 1:05d}.safetensors"
            weight_map.update(dict.fromkeys(store, name))
            save_file(store, str(folder / name), metadata={"format": "pt"})
            store.clear()

    def put(tensors: dict[str, Array]) -> None:
        for name, tensor in tensors.items():
            store[name] = _rounded(tensor, targets[name], name)

    for layer in range(model.layers):
        put(rewrite.layer_tensors(layer))
        if progress is not None:
            progress(layer + 1, model.layers)
        flush(layer + 1)
    moved = rewrite.outside_tensors()
    put(moved)
    put({name: model.tensors.raw(name) for name in headers if name not in owners and name not in moved})
    flush(model.layers + 1)
    if single:
        kept = pack_all(store) if compact else store
        save_file(kept, str(folder / (COMPACT if compact else SINGLE)), metadata={"format": "pt"})
    else:
        index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
        (folder / INDEX).write_text(json.dumps(index, indent=1))
    types = {target for target in targets.values() if target in DTYPES}
    coarsest = next((name for name in ("BF16", "F16", "F32") if name in types), "F64")
    _write_config(model, folder, CONFIG_NAMES[coarsest], precision)
    _copy_files(model.path, folder)
    return CONFIG_NAMES[coarsest]


def _rounded(tensor: Array, target: str, name: str) -> Array:
    if target not in DTYPES:
        return np.ascontiguousarray(tensor)
    with np.errstate(over="ignore"):
        rounded = np.ascontiguousarray(tensor.astype(DTYPES[target], copy=False))
    if not np.isfinite(rounded.astype(np.float32 if target != "F64" else np.float64)).all():
        raise InputError(f"tensor {name} overflows in {CONFIG_NAMES[target]}; write with --dtype float32")
    return rounded


def _write_config(model: Model, folder: Path, dtype: str, precision: Precision) -> None:
    """The config of the model; the type of the weights is updated, or loaders would round them again."""
    config = dict(model.config)
    if precision != "keep":
        for key in ("dtype", "torch_dtype"):
            if key in config:
                config[key] = dtype
    (folder / "config.json").write_text(json.dumps(config, indent=2, ensure_ascii=False, default=str) + "\n")


def _copy_files(source: Path | None, folder: Path) -> None:
    """Tokenizer files and the like: small files with known endings, by content; links that leave are not followed."""
    if source is None:
        return
    for path in sorted(source.iterdir()):
        known = path.name.endswith(COPIED) and not path.name.endswith(INDEX)
        if not known or (folder / path.name).exists() or not path.is_file():
            continue
        if not is_inside(source.resolve(), path.resolve()):
            continue
        if path.stat().st_size <= SMALL_FILE:
            shutil.copyfile(path, folder / path.name)
