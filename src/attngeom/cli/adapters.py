"""What the commands of ``attngeom model`` do with the folder of a LoRA adapter in place of a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attngeom.cli.app import VERDICTS
from attngeom.cli.folders import is_adapter
from attngeom.cli.output import pairs, print_answer, prose
from attngeom.errors import InputError

if TYPE_CHECKING:
    from attngeom.models.adapters import AdapterComparison


def inspect_adapter(path: Path, json: bool) -> None:
    """The pairs of an adapter and their redundancy."""
    from attngeom.models.adapters import open_adapter

    adapter = open_adapter(path)
    about = {"parameters": f"{adapter.parameters:,}", "redundancy": f"{adapter.redundancy:,} (theorem)"}
    lines = (f"  {x.module}: {x.rows} × {x.columns}, rank {x.rank}, GL({x.rank})" for x in adapter.pairs.values())
    title = f"LoRA adapter, {len(adapter.pairs)} modules"
    print_answer(json, adapter.to_json(), pairs(title, about), *map(prose, lines))


def compare_adapter_folders(one: Path, other: Path, json: bool, seed: int) -> int:
    """Whether two adapters change the weights in the same way."""
    from attngeom.models.adapters import compare_adapters, open_adapter

    comparison = compare_adapters(open_adapter(one), open_adapter(other), seed=seed)
    print_answer(json, comparison.to_json(), prose(comparison))
    return VERDICTS[comparison.is_positive]


def canonicalize_adapter(path: Path, out: Path, json: bool) -> None:
    """Write the canonical form of an adapter."""
    from attngeom.models.adapters import canonical_adapter, open_adapter, write_adapter

    adapter = open_adapter(path)
    _report(write_adapter(adapter, canonical_adapter(adapter), out), out, json, {})


def teleport_adapter_folder(path: Path, out: Path, condition: float, seed: int, json: bool) -> None:
    """Write an adapter with the same change, every pair moved by a random matrix."""
    from attngeom.models.adapters import open_adapter, teleport_adapter, write_adapter

    adapter = open_adapter(path)
    moved = teleport_adapter(adapter, seed, condition)
    _report(write_adapter(adapter, moved, out), out, json, {"seed": seed, "condition": condition})


def _report(done: AdapterComparison, out: Path, json: bool, settings: dict[str, object]) -> None:
    about = {"path": str(out), **settings}
    print_answer(json, done.to_json() | about, pairs("written", {**about, **done.rows()}))


def fingerprint_adapter_folder(path: Path, seed: int, json: bool) -> None:
    """Print the fingerprints of the changes of an adapter."""
    from attngeom.models.adapters import fingerprint_adapter, open_adapter

    fingerprints = fingerprint_adapter(open_adapter(path), seed)
    print_answer(json, {"modules": fingerprints, "seed": seed}, pairs("fingerprints of changes", fingerprints))


def refuse_alignment(*paths: Path) -> None:
    """InputError that says why adapters are not aligned, if one is given."""
    given = next(filter(is_adapter, paths), None)
    if given is not None:
        raise InputError(
            f"{given} is a LoRA adapter: its factors have no gauge beside GL(r); "
            "attngeom model canonicalize brings two to one form"
        )


def merge_adapter_folders(
    paths: Sequence[Path], out: Path, weights: Sequence[float] | None, rank: int | None, json: bool
) -> None:
    """Write the weighted sum of adapters, cut to a rank where one is given."""
    from attngeom.models.adapter_merging import merge_adapters, write_merged_adapter
    from attngeom.models.adapters import open_adapter

    opened = [open_adapter(path) for path in paths]
    record = write_merged_adapter(opened, merge_adapters(opened, weights, rank), out)
    shown = {"path": record["path"], "modules": len(record["modules"]), "rank": record["rank"]}
    shown["largest error of the cut"] = f"{record['worst_error']:.3g} of the change (exact, from singular values)"
    print_answer(json, record, pairs("written", shown))
