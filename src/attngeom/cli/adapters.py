"""What the commands of ``attngeom model`` do with the folder of a LoRA adapter in place of a model."""

from __future__ import annotations

from pathlib import Path

from attngeom.cli.app import VERDICTS
from attngeom.cli.output import pairs, print_answer, prose
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
    about = {"parameters": f"{found.parameters:,}", "redundancy": f"{found.redundancy:,} (theorem)"}
    lines = (f"  {x.module}: {x.rows} × {x.columns}, rank {x.rank}, GL({x.rank})" for x in found.pairs.values())
    title = f"LoRA adapter, {len(found.pairs)} modules"
    print_answer(json, found.to_json(), pairs(title, about), *map(prose, lines))


def compare_adapter_folders(one: Path, other: Path, json: bool, seed: int) -> int:
    """Whether two adapters change the weights in the same way."""
    from attngeom.models.adapters import compare_adapters, open_adapter

    found = compare_adapters(open_adapter(one), open_adapter(other), seed=seed)
    print_answer(json, found.to_json(), prose(found))
    return VERDICTS[found.is_positive]


def canonicalize_adapter(path: Path, out: Path, json: bool) -> None:
    """Write the canonical form of an adapter."""
    from attngeom.models.adapters import open_adapter, write_canonical_adapter

    done = write_canonical_adapter(open_adapter(path), out)
    path_of = {"path": str(out)}
    print_answer(json, path_of | done.to_json(), pairs("written", {**path_of, **done.rows()}))
