"""``attngeom laws``: what gradient flow conserves, and whether that is all."""

from __future__ import annotations

from typing import Annotated

from attngeom.cli import options
from attngeom.cli.app import EXIT_UNDECIDED
from attngeom.cli.output import pairs, print_answer, working
from attngeom.errors import InputError
from attngeom.interop import read_weights
from attngeom.learning.laws import conserved_quantities
from attngeom.verification import write_certificate


@options.takes_shape
def laws_command(
    shape: options.OptionalArchitecture,
    weights: options.OptionalWeights = None,
    prove: Annotated[
        bool, options.flag("--prove", "Prove that there are no other laws; small networks always are.")
    ] = False,
    certificate: options.CertificateFile = None,
    json: options.Json = False,
    seed: options.Seed = 0,
) -> int:
    """The conserved quantities of gradient flow on any loss of the function, and a proof that there are no others.

    WEIGHTS in place of --widths: those of their architecture.
    """
    options.check_either(shape, weights)
    architecture = shape.architecture if weights is None else read_weights(weights).architecture
    if certificate is not None:
        options.check_stored_seed(seed)
    wanted = prove or certificate is not None
    with working("brackets"):
        answer = conserved_quantities(architecture, prove=True if wanted else None, seed=seed)
    if certificate is not None:
        if answer.certificate is None:
            raise InputError(f"no certificate was written: {answer.reason}")
        write_certificate(answer.certificate, certificate)
    title = f"{architecture.kind} attention, widths {','.join(map(str, architecture.widths))}"
    print_answer(json, answer.to_json(), pairs(title, answer.rows()))
    return EXIT_UNDECIDED if wanted and not answer.is_complete else 0
