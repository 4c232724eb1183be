"""``attngeom demo`` and ``attngeom random``: files to begin with."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from attngeom.cli.options import (
    Causal,
    Heads,
    IgnoredSeed,
    Json,
    Kind,
    Residual,
    Seed,
    Temperature,
    Tokens,
    ValueWidth,
    default_attention,
    file_option,
    parse_list,
)
from attngeom.cli.output import print_json, print_line, print_pairs
from attngeom.exact.domains import QQ, RR
from attngeom.interop import write_weights
from attngeom.network import Architecture, random_weights


def register(app: typer.Typer) -> None:
    app.command("demo")(demo_command)
    app.command("random")(random_command)


def demo_command(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="A new folder, or one that demo made.")] = Path(
        "attngeom-demo"
    ),
    json: Json = False,
    seed: IgnoredSeed = 0,
) -> None:
    """Write a folder of small example files, made on the spot and checked, and say what to try on them."""
    from attngeom.demo import EXAMPLES, commands, write_demo

    write_demo(folder)
    holds = {example.name: example.holds for example in EXAMPLES}
    lines = [shlex.join(words) for words in commands(folder)]
    if json:
        print_json({"folder": str(folder), "files": holds, "commands": lines})
        return
    print_pairs(f"{len(holds)} files in {folder}", holds)
    print_line()
    print_line("Five commands to try:")
    for line in lines:
        print_line(f"  {line}")


def random_command(
    widths: Annotated[str, typer.Option("--widths", help="Widths d_0,…,d_l, comma separated.")],
    out: Annotated[Path, file_option("--out", "Where to write: .json for exact weights, .safetensors for floats.")],
    attention: Annotated[
        str | None, typer.Option("--attention", help="Attention widths; one is repeated; by default d_{i-1} / heads.")
    ] = None,
    tokens: Tokens = 3,
    kind: Kind = "lightning",
    heads: Heads = 1,
    value_width: ValueWidth = None,
    residual: Residual = False,
    causal: Causal = False,
    temperature: Temperature = "1",
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Write random weights: small integers in a .json file, normal floats scaled by 1/√d_in in .safetensors."""
    sizes = parse_list(widths, "widths")
    chosen = default_attention(sizes, heads) if attention is None else parse_list(attention, "attention")
    architecture = Architecture(sizes, chosen, tokens, kind, heads, value_width, residual, causal, temperature)
    domain = QQ if out.suffix == ".json" else RR
    write_weights(random_weights(architecture, domain, seed), out)
    record = {
        "architecture": architecture.to_json(),
        "num_parameters": architecture.num_parameters,
        "exact": domain.is_exact,
        "seed": seed,
        "out": str(out),
    }
    if json:
        print_json(record)
        return
    kind_of_numbers = "small integers, exact" if domain.is_exact else "normal floats, scaled by 1/√d_in"
    print_pairs(
        f"random weights, seed {seed}",
        {"parameters": f"{architecture.num_parameters:,}", "numbers": kind_of_numbers, "written to": out},
    )
