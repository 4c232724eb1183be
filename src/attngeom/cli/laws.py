"""``attngeom laws``: what gradient flow conserves, and whether that is all."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attngeom.cli.app import EXIT_UNDECIDED
from attngeom.cli.options import (
    Causal,
    Heads,
    Json,
    Kind,
    Residual,
    Seed,
    Temperature,
    Tokens,
    ValueWidth,
    check_stored_seed,
    default_attention,
    file_option,
    flag,
    parse_list,
)
from attngeom.cli.output import print_json, print_pairs
from attngeom.errors import InputError
from attngeom.learning.laws import conserved_quantities
from attngeom.network import Architecture
from attngeom.verification import write_certificate


def register(app: typer.Typer) -> None:
    app.command("laws")(laws_command)


def laws_command(
    widths: Annotated[str, typer.Option("--widths", help="Widths d_0,…,d_l, comma separated.")],
    attention: Annotated[
        str | None,
        typer.Option("--attention", help="Attention widths a_1,…,a_l; one is repeated; by default d_{i-1} / heads."),
    ] = None,
    tokens: Tokens = 3,
    kind: Kind = "lightning",
    heads: Heads = 1,
    value_width: ValueWidth = None,
    residual: Residual = False,
    causal: Causal = False,
    temperature: Temperature = "1",
    prove: Annotated[bool, flag("--prove", "Prove that there are no other laws; small networks always are.")] = False,
    certificate: Annotated[
        Path | None, file_option("--certificate", "Prove, and write a certificate for attngeom verify to this file.")
    ] = None,
    json: Json = False,
    seed: Seed = 0,
) -> int:
    """The conserved quantities of gradient flow on any loss of the function, and a proof that there are no others."""
    sizes = parse_list(widths, "widths")
    chosen = default_attention(sizes, heads) if attention is None else parse_list(attention, "attention")
    architecture = Architecture(sizes, chosen, tokens, kind, heads, value_width, residual, causal, temperature)
    if certificate is not None:
        check_stored_seed(seed)
    wanted = prove or certificate is not None
    found = conserved_quantities(architecture, prove=True if wanted else None, seed=seed)
    if certificate is not None:
        if found.certificate is None:
            raise InputError(f"no certificate was written: {found.reason}")
        write_certificate(found.certificate, certificate)
    if json:
        print_json(found.to_json())
    else:
        print_pairs(f"{architecture.kind} attention, widths {widths}", found.rows())
    return EXIT_UNDECIDED if wanted and not found.is_complete else 0
