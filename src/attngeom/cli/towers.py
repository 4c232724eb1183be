"""What the commands of ``attngeom model`` do with the folder of a model that has two towers (CLIP, SigLIP)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attngeom.cli.app import VERDICTS
from attngeom.cli.output import pairs, print_answer, prose

if TYPE_CHECKING:
    from attngeom.models.crews import Crew
    from attngeom.models.pair_comparison import PairComparison

Progress = Callable[[int, int], None]


def inspect_pair(path: Path, step: Progress, crew: Crew, json: bool, seed: int) -> None:
    """Both towers, and what is free between them."""
    from attngeom.models.inspection import inspect_model
    from attngeom.models.pairs import open_pair

    pair = open_pair(path)
    inspections = {name: inspect_model(tower, step, crew) for name, tower in pair.towers.items()}
    free = f"O({len(next(iter(pair.heads.values())).bias)}) on both, and " if pair.turns else ""
    told = f"{free}a positive number for each: {pair.redundancy:,} dimensions"
    about = {"parameters": f"{pair.parameters:,}", "matrices that write what is compared": told}
    lines = [pairs(f"{pair.kind}, two towers", about)]
    for name, inspection in inspections.items():
        lines += [prose(f"tower of {name}s: {inspection}")]
    towers = {name: inspection.to_json() for name, inspection in inspections.items()}
    record = {"family": pair.kind, "parameters": pair.parameters, "between": pair.redundancy, "towers": towers}
    print_answer(json, {**record, "seed": seed}, *lines)


def compare_pair_folders(one: Path, other: Path, every: bool, json: bool, **options: Any) -> int:
    """Whether two models with two towers score images and texts alike."""
    from attngeom.models.pair_comparison import compare_pairs
    from attngeom.models.pairs import open_pair

    comparison = compare_pairs(open_pair(one), open_pair(other), **options)
    print_answer(json, comparison.to_json(), prose(comparison.text(every=every)))
    return VERDICTS[comparison.same_function]


def fingerprint_pair_folder(path: Path, seed: int, json: bool, **options: Any) -> None:
    """Print the fingerprints of both towers and of what compares their outputs."""
    from attngeom.models.pair_comparison import fingerprint_pair
    from attngeom.models.pairs import open_pair

    prints = fingerprint_pair(open_pair(path), seed, **options)
    print_answer(json, {**prints.to_json(), "seed": seed}, prose(prints))


def canonicalize_pair(path: Path, out: Path, gauge: str, scope: str, dtype: str, json: bool) -> None:
    """Write the canonical form of a model with two towers."""
    from attngeom.models.pair_moves import canonical_pair, write_pair
    from attngeom.models.pairs import open_pair

    pair = open_pair(path)
    form = canonical_pair(pair, gauge, scope)  # type: ignore[arg-type]
    check, written = write_pair(pair, form, out, dtype)  # type: ignore[arg-type]
    _report(check, {**written, "gauge": gauge, "scope": scope}, json)


def teleport_pair_folder(
    path: Path, out: Path, seed: int, condition: float, parts: Sequence[str], dtype: str, json: bool
) -> None:
    """Write a random model with two towers and the same function."""
    from attngeom.models.pair_moves import write_teleported_pair
    from attngeom.models.pairs import open_pair

    check, written = write_teleported_pair(
        open_pair(path), out, seed=seed, condition=condition, parts=parts, precision=dtype,  # type: ignore[arg-type]
    )  # fmt: skip
    _report(check, written, json)


def align_pair_folders(target: Path, path: Path, out: Path, scope: str, dtype: str, json: bool) -> None:
    """Write the second model in the gauge of the first."""
    from attngeom.models.pair_moves import aligned_pair, write_pair
    from attngeom.models.pairs import open_pair

    pair = open_pair(path)
    check, written = write_pair(pair, aligned_pair(open_pair(target), pair, scope), out, dtype)  # type: ignore[arg-type]
    _report(check, {**written, "target": str(target), "scope": scope}, json)


def _report(check: PairComparison, about: dict[str, Any], json: bool) -> None:
    shown = {name: ", ".join(own) if isinstance(own, list) else own for name, own in about.items()}
    print_answer(json, {**about, "check": check.to_json()}, pairs("written", shown))
