"""LoRA adapters put together: weighted sums of their changes in canonical form, cut to a rank with the exact error.

Σ w s B A is the product of the factors side by side, so a sum of adapters of ranks r and r' is one of rank r + r'. Its
singular values come from triangles of both factors, never from the large matrix; cutting it to rank k leaves out the
smallest of them, and the error is the root of the sum of their squares.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from attngeom.errors import InputError
from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.groups.gauges import balanced_pair
from attngeom.limits.rounding import MERGED_CHANGE
from attngeom.models.adapters import CONFIG, DOWN, UP, WEIGHTS, Adapter, open_adapter, product_size
from attngeom.models.folders import new_folder
from attngeom.models.merging import check_weights
from attngeom.models.writing import WriteError

WRAPPER = "base_model.model."
"""What the names of modules in an adapter begin with."""


@dataclass(frozen=True, kw_only=True)
class MergedPair:
    """One module of the sum: B and A in canonical form, and what the cut left out, relative to the whole."""

    module: str
    up: Array
    down: Array
    values: tuple[float, ...]
    error: float

    @property
    def rank(self) -> int:
        return len(self.down)


def merge_adapters(
    adapters: Sequence[Adapter], weights: Sequence[float] | None = None, rank: int | None = None
) -> list[MergedPair]:
    """Σ w s B A of every module, balanced, of the full rank or the nearest of rank ``rank``."""
    if len(adapters) < 1:
        raise InputError("no adapter given; at least one is required")
    chosen = tuple(weights) if weights is not None else (1.0,) * len(adapters)
    check_weights(chosen, len(adapters), "adapters")
    if rank is not None and rank < 1:
        raise InputError(f"rank {rank} given; a positive rank is required")
    names = {str(a.config.get("base_model_name_or_path")) for a in adapters if a.config.get("base_model_name_or_path")}
    if len(names) > 1:
        raise InputError(f"adapters of different bases given ({', '.join(sorted(names))[:100]}); one base is required")
    others = next((name for adapter in adapters for name in adapter.others), None)
    if others is not None:
        raise InputError(f"tensor {others[:80]} is no pair lora_A, lora_B; only plain pairs are merged")
    modules = sorted({module for adapter in adapters for module in adapter.pairs})
    return [_merged(adapters, chosen, module, rank) for module in modules]


def _merged(adapters: Sequence[Adapter], weights: Sequence[float], module: str, rank: int | None) -> MergedPair:
    shapes = {(a.pairs[module].rows, a.pairs[module].columns) for a in adapters if module in a.pairs}
    if len(shapes) > 1:
        raise InputError(f"{module[-80:]} has shapes {sorted(shapes)}; adapters of one base are required")
    ups, downs = [], []
    for adapter, weight in zip(adapters, weights):
        if module in adapter.pairs:
            up, down = adapter.factors(module)
            ups.append(up * (weight * adapter.pairs[module].scale))
            downs.append(down)
    up, down = np.concatenate(ups, axis=1), np.concatenate(downs)
    values = lapack.svdvals(lapack.triangle(up) @ lapack.triangle(down.T).T)
    new_down, new_up = balanced_pair(down, up.T)
    kept = min(rank or len(new_down), int((values > 1e-12 * values.max(initial=0.0)).sum()) or 1)
    whole = float(np.linalg.norm(values))
    error = float(np.linalg.norm(values[kept:])) / whole if whole else 0.0
    return MergedPair(
        module=module, up=np.ascontiguousarray(new_up[:kept].T), down=np.ascontiguousarray(new_down[:kept]),
        values=tuple(float(v) for v in values), error=error,
    )  # fmt: skip


def write_merged_adapter(adapters: Sequence[Adapter], pairs: Sequence[MergedPair], out: str | Path) -> dict[str, Any]:
    """Write the sum as a new adapter folder in float32, its scale in the factors; read back and checked first."""
    ranks = {pair.module: pair.rank for pair in pairs}
    top = max(ranks.values())
    config = {key: value for key, value in adapters[0].config.items() if key not in ("alpha_pattern", "rank_pattern")}
    config |= {"r": top, "lora_alpha": top, "use_rslora": False}
    # Patterns are held against the names that modules have in the base, which those of files put a wrapper before.
    others = {module.removeprefix(WRAPPER): rank for module, rank in ranks.items() if rank != top}
    config |= {"rank_pattern": others, "alpha_pattern": others}
    targets = sorted({module.rsplit(".", 1)[-1] for module in ranks})
    config |= {"target_modules": targets} if isinstance(config.get("target_modules"), list) else {}
    with new_folder(Path(out), adapters[0].path) as temporary:
        tensors = {pair.module + DOWN: pair.down.astype(np.float32) for pair in pairs}
        tensors |= {pair.module + UP: pair.up.astype(np.float32) for pair in pairs}
        save_file(tensors, temporary / WEIGHTS)
        (temporary / CONFIG).write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n")
        written = open_adapter(temporary)
        worst = max(_gap(written, pair) for pair in pairs)
        if not worst <= MERGED_CHANGE:
            raise WriteError(f"{out} was not written: a change differs by {worst:.1e} from the one computed")
    return {
        "path": str(out), "rank": top, "worst_rounding": worst, "worst_error": max(pair.error for pair in pairs),
        "modules": [
            {"module": p.module, "rank": p.rank, "error": p.error, "singular_values": list(p.values)} for p in pairs
        ],
    }  # fmt: skip


def _gap(written: Adapter, pair: MergedPair) -> float:
    """How far the change in the file is from the one computed, relative to it."""
    up, down = written.factors(pair.module)
    up = up * written.pairs[pair.module].scale
    left, right = np.concatenate([pair.up, -up], axis=1), np.concatenate([pair.down, down])
    size, gap = product_size(pair.up, pair.down), product_size(left, right)
    return gap / size if size else gap
