"""What the commands of ``attngeom model`` do with the folder of a LoRA adapter in place of a model."""

from __future__ import annotations

from pathlib import Path

from attngeom.cli.app import VERDICTS
from attngeom.cli.output import print_json, print_pairs, print_text
from attngeom.errors import InputError

CONFIG = "adapter_config.json"


def is_adapter(path: Path) -> bool:
    """Whether a folder holds an adapter; nothing is loaded for the answer."""
    return (path / CONFIG).is_file()


def refuse_options(options: dict[str, bool]) -> None:
    """InputError for an option that is set and means nothing for adapters."""
    for name, is_set in options.items():
        if is_set:
            raise InputError(f"{name} given for a LoRA adapter; it is for models, leave it out")


def inspect_adapter(path: Path, json: bool) -> None:
    """The pairs of an adapter and their redundancy."""
    from attngeom.models.adapters import open_adapter

    found = open_adapter(path)
    if json:
        print_json(found.to_json())
        return
    about = {"parameters": f"{found.parameters:,}", "redundancy": f"{found.redundancy:,} (theorem)"}
    print_pairs(f"LoRA adapter, {len(found.pairs)} modules", about)
    for pair in found.pairs.values():
        print_text(f"  {pair.module}: {pair.rows} × {pair.columns}, rank {pair.rank}, GL({pair.rank})")


def compare_adapter_folders(one: Path, other: Path, json: bool, seed: int) -> int:
    """Whether two adapters change the weights in the same way."""
    from attngeom.models.adapters import compare_adapters, open_adapter

    found = compare_adapters(open_adapter(one), open_adapter(other), seed=seed)
    if json:
        print_json(found.to_json())
    else:
        print_text(found)
    return VERDICTS[found.same_change]


def canonicalize_adapter(path: Path, out: Path, json: bool) -> None:
    """Write the canonical form of an adapter."""
    from attngeom.models.adapters import open_adapter, write_canonical_adapter

    done = write_canonical_adapter(open_adapter(path), out)
    if json:
        print_json({"path": str(out), **done.to_json()})
    else:
        print_pairs("written", {"path": str(out), **done.rows()})
