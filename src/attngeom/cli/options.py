"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from attngeom.errors import InputError
from attngeom.network import Architecture

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of every random choice; stored with the result.")]
IgnoredSeed = Annotated[int, typer.Option("--seed", min=0, help="Accepted everywhere; no random choice is made here.")]
Widths = Annotated[str, typer.Option("--widths", help="Widths d_0,…,d_l, comma separated.")]
Attention = Annotated[str, typer.Option("--attention", help="Attention widths a_1,…,a_l; one number is repeated.")]
Tokens = Annotated[int, typer.Option("--tokens", help="Number of tokens t.")]
Kind = Annotated[str, typer.Option("--kind", help="lightning or softmax.")]
Heads = Annotated[int, typer.Option("--heads", help="Number of heads of each layer.")]
ValueWidth = Annotated[int | None, typer.Option("--value-width", help="Value width of each head.")]
Residual = Annotated[bool, typer.Option("--residual", help="Add the input of each layer to its output.")]
Causal = Annotated[bool, typer.Option("--causal", help="Token i attends to tokens j ≤ i only.")]


def parse_list(text: str, name: str) -> list[int]:
    """Comma separated integers.

    >>> parse_list("3, 3,2", "widths")
    [3, 3, 2]
    """
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--{name} {text[:40]!r} given; comma separated integers such as 3,3,2 are required") from None


def parse_architecture(
    widths: str,
    attention: str,
    tokens: int,
    kind: str,
    heads: int,
    value_width: int | None,
    residual: bool,
    causal: bool,
) -> Architecture:
    """The architecture that the shared options describe."""
    if kind not in ("lightning", "softmax"):
        raise InputError(f"--kind {kind[:40]!r} given; lightning or softmax is required")
    return Architecture(
        parse_list(widths, "widths"),
        parse_list(attention, "attention"),
        tokens=tokens,
        kind="softmax" if kind == "softmax" else "lightning",
        heads=heads,
        value_width=value_width,
        residual=residual,
        causal=causal,
    )
