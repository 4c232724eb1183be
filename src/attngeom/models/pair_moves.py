"""Models with two towers in one form, moved or aligned, and written: both towers, and what compares their outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from attngeom.errors import InputError
from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.groups import Sampler
from attngeom.groups.gauges import DEFAULT, Gauge
from attngeom.limits.rounding import NEAR_ISOMETRY, RANDOM_CONDITION
from attngeom.models.folders import new_folder
from attngeom.models.orbits import PARTS
from attngeom.models.pair_comparison import PairComparison, compare_pairs
from attngeom.models.pairs import TwoTowers, open_pair
from attngeom.models.quantised import refuse_quantised
from attngeom.models.reading import ROUNDOFF, SINGLE
from attngeom.models.rewriting import Rewrite, align, canonicalize, teleport
from attngeom.models.writing import (
    Precision,
    WriteError,
    all_rounded,
    coarsest_of,
    copy_files,
    target_type,
    write_config,
)


def canonical_pair(pair: TwoTowers, gauge: Gauge = DEFAULT, scope: str = "layer") -> dict[str, Array]:
    """One representative of a pair: towers in canonical form, heads with singular vectors as rows, of mean square 1."""
    moved = pair.changed(_rewritten({name: canonicalize(tower, gauge, scope) for name, tower in pair.towers.items()}))
    heads = moved.heads
    sizes = {name: float(np.linalg.norm(head.rows)) or 1.0 for name, head in heads.items()}
    turn = None
    if moved.turns:
        rows = np.concatenate([head.rows / sizes[name] for name, head in heads.items()], axis=1)
        u, _, w = lapack.svd(rows)
        signs = np.sign(w[np.arange(len(u)), np.abs(w[: len(u)]).argmax(axis=1)])
        turn = np.where(signs == 0, 1.0, signs)[:, None] * u.T
    scales = {name: float(np.sqrt(heads[name].weight.size)) / size for name, size in sizes.items()}
    return moved.state(moved.acted(scales, turn))


def teleported_pair(
    pair: TwoTowers, seed: int, condition: float = RANDOM_CONDITION, parts: Collection[str] = PARTS
) -> dict[str, Array]:
    """A random point of the orbit of a pair."""
    towers = {
        name: teleport(tower, 2 * seed + number, condition, parts)
        for number, (name, tower) in enumerate(pair.towers.items())
    }
    moved, sampler = pair.changed(_rewritten(towers)), Sampler(seed, condition)
    heads = moved.heads
    turn = sampler.orthogonal(1, len(next(iter(heads.values())).bias))[0] if moved.turns else None
    return moved.state(moved.acted({name: float(sampler.scales(1)[0]) for name in heads}, turn))


def aligned_pair(target: TwoTowers, pair: TwoTowers, scope: str = "layer") -> dict[str, Array]:
    """A pair in the gauge of another one."""
    if target.kind != pair.kind:
        raise InputError(f"a {target.kind} and a {pair.kind} given; two of one kind are required")
    near = pair.with_heads_of(target)
    return near.state(
        _rewritten({name: align(target.towers[name], tower, scope) for name, tower in near.towers.items()})
    )


def _rewritten(towers: Mapping[str, Rewrite]) -> dict[str, Array]:
    """The tensors that towers moved, by their names."""
    return {name: tensor for tower in towers.values() for name, tensor in tower.changes().items()}


def write_pair(
    pair: TwoTowers, tensors: Mapping[str, Array], out: str | Path, precision: Precision = "auto"
) -> tuple[PairComparison, dict[str, Any]]:  # fmt: skip
    """Write other tensors of the same function as a folder, checked before it gets its name."""
    if precision not in ("keep", "float32", "auto"):
        raise InputError(f"dtype {precision[:40]!r} given; keep or float32 is required")
    refuse_quantised([pair.dtype], "a rewritten copy")
    place = Path(out)
    targets = {name: target_type(pair.tensors.headers[name].dtype, precision) for name in tensors}
    with new_folder(place, pair.path) as temporary:
        save_file(all_rounded(dict(tensors), targets), str(temporary / SINGLE), metadata={"format": "pt"})
        dtype = coarsest_of(targets)
        write_config(pair.config, temporary, dtype, precision)
        copy_files(pair.path, temporary)
        written = open_pair(temporary)
        check = compare_pairs(pair, written, level="rounding", unit=ROUNDOFF[written.dtype])
        if check.same_function is not True:
            verdict = "differs from" if check.same_function is False else "cannot be shown to be that of"
            raise WriteError(f"{place} was not written: the result {verdict} the model ({check.reason[:120]})")
        size = (temporary / SINGLE).stat().st_size
    return check, {"path": str(place), "dtype": dtype, "bytes": size}


def write_teleported_pair(
    pair: TwoTowers, out: str | Path, *, seed: int = 0, condition: float = RANDOM_CONDITION,
    parts: Collection[str] = PARTS, precision: Precision = "auto",
) -> tuple[PairComparison, dict[str, Any]]:  # fmt: skip
    """Write a random pair with the same function, better conditioned where rounding of the file would show."""
    while True:
        try:
            moved = teleported_pair(pair, seed, condition, parts)
            check, written = write_pair(pair, moved, out, precision)
            return check, {**written, "seed": seed, "condition": condition, "parts": list(parts)}
        except WriteError:
            if condition == 1:
                raise
            condition = float(np.cbrt(condition)) if condition > NEAR_ISOMETRY else 1.0
