"""``attngeom laws``: what gradient flow conserves, and whether that is all."""

from __future__ import annotations

from typing import Annotated

from attngeom.cli import options
from attngeom.cli.app import EXIT_UNDECIDED
from attngeom.cli.output import print_answer
from attngeom.errors import InputError
from attngeom.learning.laws import conserved_quantities
from attngeom.verification import write_certificate


def laws_command(
    widths: options.Widths,
    attention: options.Attention = None,
    tokens: options.Tokens = 3,
    kind: options.Kind = "lightning",
    heads: options.Heads = 1,
    value_width: options.ValueWidth = None,
    residual: options.Residual = False,
    causal: options.Causal = False,
    temperature: options.Temperature = "1",
    prove: Annotated[
        bool, options.flag("--prove", "Prove that there are no other laws; small networks always are.")
    ] = False,
    certificate: options.CertificateFile = None,
    json: options.Json = False,
    seed: options.Seed = 0,
) -> int:
    """The conserved quantities of gradient flow on any loss of the function, and a proof that there are no others."""
    architecture = options.make_architecture(
        widths, attention, tokens, kind, heads, value_width, residual, causal, temperature
    )
    if certificate is not None:
        options.check_stored_seed(seed)
    wanted = prove or certificate is not None
    found = conserved_quantities(architecture, prove=True if wanted else None, seed=seed)
    if certificate is not None:
        if found.certificate is None:
            raise InputError(f"no certificate was written: {found.reason}")
        write_certificate(found.certificate, certificate)
    print_answer(json, found.to_json(), f"{architecture.kind} attention, widths {widths}", found.rows())
    return EXIT_UNDECIDED if wanted and not found.is_complete else 0
