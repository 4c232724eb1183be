"""``attngeom demo`` and ``attngeom random``: files to begin with."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from attngeom.cli import options
from attngeom.cli.output import pairs, print_answer
from attngeom.exact.domains import QQ, RR
from attngeom.interop import write_weights
from attngeom.network import random_weights


def demo_command(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="A new folder, or one that demo made.")] = Path(
        "attngeom-demo"
    ),
    json: options.Json = False,
    seed: options.IgnoredSeed = 0,
) -> None:
    """Write a folder of small example files, made on the spot and checked, and say what to try on them."""
    from attngeom.demo import EXAMPLES, commands, write_demo

    write_demo(folder)
    holds = {example.name: example.holds for example in EXAMPLES}
    lines = [shlex.join(words) for words in commands(folder)]
    record = {"folder": str(folder), "files": holds, "commands": lines}
    shown = pairs(f"{len(holds)} files in {folder}", holds)
    print_answer(json, record, shown, "", "Five commands to try:", *(f"  {line}" for line in lines))


@options.takes_shape
def random_command(
    shape: options.ArchitectureOptions,
    out: Annotated[
        Path, options.file_option("--out", "Where to write: .json for exact weights, .safetensors for floats.")
    ],
    json: options.Json = False,
    seed: options.Seed = 0,
) -> None:
    """Write random weights: small integers in a .json file, normal floats scaled by 1/√d_in in .safetensors."""
    architecture = shape.architecture
    domain = QQ if out.suffix == ".json" else RR
    write_weights(random_weights(architecture, domain, seed), out)
    record = {
        "architecture": architecture.to_json(),
        "num_parameters": architecture.num_parameters,
        "exact": domain.is_exact,
        "seed": seed,
        "out": str(out),
    }
    numbers = "small integers, exact" if domain.is_exact else "normal floats, scaled by 1/√d_in"
    shown = {"parameters": f"{architecture.num_parameters:,}", "numbers": numbers, "written to": out}
    print_answer(json, record, pairs(f"random weights, seed {seed}", shown))
