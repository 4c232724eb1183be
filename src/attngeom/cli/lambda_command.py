"""``attngeom lambda``: the learning coefficient (λ, m) at given weights, or a table over all rank strata."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from attngeom.cli import options
from attngeom.cli.app import EXIT_UNDECIDED
from attngeom.cli.output import pairs, print_answer, working
from attngeom.cli.output import table as table_of
from attngeom.errors import InputError
from attngeom.interop import read_weights
from attngeom.interop.arrays import read_array
from attngeom.interop.learning_benchmark import write_benchmark
from attngeom.interop.learning_suite import write_suite
from attngeom.learning import global_learning_coefficient, learning_coefficient, learning_table
from attngeom.learning.losses import LOSSES
from attngeom.verification import write_certificate

BENCHMARK = "Write weights, λ, m and a torch module for estimators."
LOSS = "squared, or cross-entropy: outputs are logits, inputs bounded."
VOCABULARY = "Inputs are all sequences of the columns of this matrix, d×N (.json, .npy)."
SUITE = "Write points with proven λ for estimators, and a script that runs one over them."


@dataclass(frozen=True, kw_only=True)
class TableOptions(options.OptionalArchitecture):
    """The architecture of a table."""

    widths: Annotated[str, typer.Option("--widths", help="Widths d_0,…,d_l of a table, comma separated.")] = ""
    tokens: options.Tokens = 2


@options.takes_shape
def lambda_command(
    shape: TableOptions,
    weights: options.OptionalWeights = None,
    table: Annotated[bool, options.flag("--table", "One row for each rank stratum of the architecture.")] = False,
    everywhere: Annotated[
        bool, options.flag("--global", "The least pair over all weights of the same function.")
    ] = False,
    loss: Annotated[str, options.choice_option("--loss", LOSSES, LOSS)] = "squared",
    vocabulary: Annotated[Path | None, options.file_option("--vocabulary", VOCABULARY)] = None,
    certificate: Annotated[
        Path | None, options.file_option("--certificate", "Write a certificate for attngeom verify to this file.")
    ] = None,
    export_benchmark: Annotated[Path | None, typer.Option("--export-benchmark", metavar="DIR", help=BENCHMARK)] = None,
    suite: Annotated[Path | None, typer.Option("--suite", metavar="DIR", help=SUITE)] = None,
    json: options.Json = False,
    seed: options.Seed = 0,
) -> int:
    """The learning coefficient λ and its multiplicity m: vol{K ≤ ε} is of order ε^λ (log 1/ε)^(m−1).

    Exit code 0: proven; 3: not proven, an estimate of floats or bounds for λ.
    """
    if suite is not None:
        if weights is not None or table or shape.widths or certificate or export_benchmark:
            raise InputError("--suite given with weights or a table; it writes points of its own")
        with working("measuring Hessians"):
            points = write_suite(suite, seed)
        columns = ("name", "lambda", "multiplicity", "half_hessian_rank", "half_parameters")
        titles = ("point", "λ", "m", "half the rank of the Hessian", "half the weights")
        shown = table_of(titles, [[point[key] for key in columns] for point in points], left=("point",))
        print_answer(
            json, {"folder": str(suite), "points": points}, shown, f"next: python {suite}/run.py (needs torch)"
        )
        return 0
    if (weights is None) != table or table != bool(shape.widths):
        raise InputError("give a file of weights, or --widths and --table for the strata of an architecture")
    options.check_either(shape, weights)
    if (certificate is not None or export_benchmark is not None) and (table or everywhere):
        raise InputError("files asked for with --table or --global; they are about the point of given weights")
    if table:
        strata = learning_table(shape.architecture)
        rows = [(row.words, row.pair.value, row.pair.multiplicity, row.theorem) for row in strata.strata]
        shown = table_of(("stratum", "λ", "m", "theorem"), rows, left=("stratum", "theorem"))
        print_answer(json, strata.to_json(), f"rank strata of {strata.scope}", shown)
        return 0
    point = read_weights(Path(str(weights)))
    chosen = options.check_choice(loss, LOSSES, "loss")
    tokens = None if vocabulary is None else read_array(vocabulary)[0]
    if (everywhere or export_benchmark is not None) and (chosen != "squared" or tokens is not None):
        raise InputError("--loss or --vocabulary given with --global or --export-benchmark; leave one of them out")
    if everywhere:
        coefficient = global_learning_coefficient(point, seed=seed)
    else:
        coefficient = learning_coefficient(point, vocabulary=tokens, loss=chosen, seed=seed)
    if certificate is not None:
        if coefficient.certificate is None:
            raise InputError(
                f"no certificate can be written: {coefficient.standing}, by Theorem {coefficient.theorem}; see docs"
            )
        write_certificate(coefficient.certificate, certificate)
    if export_benchmark is not None:
        write_benchmark(coefficient, export_benchmark)
    title = f"learning coefficient, {point.architecture.kind} attention"
    print_answer(json, coefficient.to_json(), pairs(title, coefficient.rows()))
    return 0 if coefficient.is_proven else EXIT_UNDECIDED
