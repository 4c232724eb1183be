"""``attngeom dim``: the dimension of an architecture, with what is proven and where parameters get lost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any

import typer

from attngeom.cli import options
from attngeom.cli.app import EXIT_UNDECIDED
from attngeom.cli.output import pairs, print_answer, working
from attngeom.cli.output import table as table_of
from attngeom.dimensions import Dimension, dimension, rank_at
from attngeom.dimensions.lower_bounds import REQUESTS, Request
from attngeom.errors import InputError, SizeError
from attngeom.exact.domains import QQ
from attngeom.limits.sizes import TABLE_ARCHITECTURES
from attngeom.network import Architecture
from attngeom.network.attention import find_kind

COLUMNS = ("widths", "attention", "tokens", "parameters", "dimension", "proven", "formula")

TokensText = Annotated[str, typer.Option("--tokens", help="Number of tokens t; with --table a range such as 1-3.")]
METHOD = "How to prove: auto, theorem, minor, schur, krylov (matrix-free) or balls."


@dataclass(frozen=True, kw_only=True)
class RangeOptions(options.OptionalArchitecture):
    """An architecture, or a grid of them where sizes are ranges."""

    widths: Annotated[
        str, typer.Option("--widths", help="Widths d_0,…,d_l, comma separated; with --table ranges such as 2-4.")
    ] = ""
    tokens: TokensText = "3"  # type: ignore[assignment]

    def grid(self, has_ranges: bool) -> list[Architecture]:
        """Every architecture of the ranges, at most :data:`TABLE_ARCHITECTURES`; one if ranges are not allowed."""
        widths, tokens = parse_ranges(self.widths, "widths"), parse_ranges(str(self.tokens), "tokens")
        attention = [] if self.attention is None else parse_ranges(self.attention, "attention")
        if len(tokens) != 1:
            given = str(self.tokens)[:40]
            raise InputError(f"--tokens {given!r} given; one number is required, or one range with --table")
        named = {"widths": widths, "attention": attention, "tokens": tokens}
        for name, ranges in {} if has_ranges else named.items():
            if any(part.stop - part.start != 1 for part in ranges):
                raise InputError(f"a range was given for --{name}; ranges need --table")
        # The lengths of ranges of step one; ``len`` refuses those beyond 2^63.
        size = prod(part.stop - part.start for ranges in named.values() for part in ranges)
        if size > TABLE_ARCHITECTURES:
            shown = f"{size:,}" if size < 10**18 else "more than 10^18"
            raise InputError(f"a grid of {shown} architectures given; at most {TABLE_ARCHITECTURES:,} are tabulated")
        choices = product(product(*widths), product(*attention), tokens[0])
        return [self.make(list(w), list(a) or None, t) for w, a, t in choices]


def parse_ranges(text: str, name: str) -> list[range]:
    """Comma separated integers or ranges.

    >>> [list(part) for part in parse_ranges("3,1-2", "widths")]
    [[3], [1, 2]]
    """
    ranges = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        try:
            low, high = int(first), int(last or first)
        except ValueError:
            raise InputError(f"--{name} {text[:40]!r} given; integers such as 3,3,2 are required") from None
        if high < low:
            raise InputError(f"--{name} range {part[:40]!r} given; the first number must not exceed the last")
        ranges.append(range(low, high + 1))
    return ranges


def _listed(answer: Dimension) -> tuple[object, ...]:
    """The row of a table."""
    architecture, known = answer.architecture, answer.formula
    return (
        ",".join(map(str, architecture.widths)),
        ",".join(map(str, architecture.attention)),
        architecture.tokens,
        answer.num_parameters,
        answer.dimension,
        "yes" if answer.is_proven else "no",
        known.source if known is not None and known.applies else "-",
    )


@options.takes_shape
def dim_command(
    shape: RangeOptions,
    weights: options.OptionalWeights = None,
    prove: Annotated[bool, options.flag("--prove", "Compute proven bounds instead of trusting a formula.")] = False,
    method: Annotated[str, options.choice_option("--method", REQUESTS, METHOD)] = "auto",
    table: Annotated[bool, options.flag("--table", "One row for each architecture of a grid of ranges.")] = False,
    from_checkpoint: Annotated[
        Path | None, typer.Option("--from-checkpoint", hidden=True, help="The former way to name WEIGHTS.")
    ] = None,
    certificate: options.CertificateFile = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Threads of the matrix-free proof.")] = 1,
    json: options.Json = False,
    seed: options.Seed = 0,
) -> int:
    """The dimension of the set of functions of an architecture: by formula at once, or proven.

    WEIGHTS in place of --widths: the dimension of their architecture, and the rank at this point.
    """
    if weights is not None and from_checkpoint is not None:
        raise InputError("a file given twice; leave --from-checkpoint out")
    weights = weights or from_checkpoint
    options.check_either(shape, weights)
    asked = options.check_choice(method, REQUESTS, "method")
    find_kind(shape.kind)
    if certificate is not None:
        options.check_stored_seed(seed)
    wanted = prove or certificate is not None

    def answer_for(architecture: Architecture, how: Request) -> Dimension:
        with working("products") as report:
            told = partial(report, "products")
            return dimension(architecture, prove=wanted, method=how, seed=seed, progress=told, workers=workers)

    if table:
        if weights is not None or certificate is not None:
            raise InputError("--table was given with a file; it needs --widths alone")
        answers = [answer_for(architecture, asked) for architecture in shape.grid(has_ranges=True)]
        record: dict[str, Any] = {"table": [answer.to_json() for answer in answers]}
        print_answer(json, record, table_of(COLUMNS, map(_listed, answers), left=COLUMNS[-1:]))
        return EXIT_UNDECIDED if prove and not all(answer.is_proven for answer in answers) else 0
    point = None
    if weights is not None:
        from attngeom.interop.weights import read_weights

        given = read_weights(weights)
        architecture = given.architecture
        try:
            # The numbers of the file as they are: floats are rationals.
            point = rank_at(given.to(QQ), seed)
        except SizeError as error:
            # The architecture still has an answer.
            typer.echo(f"attngeom: rank at this point left out: {error}", err=True)
    else:
        (architecture,) = shape.grid(has_ranges=False)
    if certificate is None:
        answer = answer_for(architecture, asked)
    else:
        # The verifier and the readers of weights are not needed for an answer by theorem: they start slowly.
        from attngeom.dimensions.certificate import certifiable_method, certify_dimension
        from attngeom.verification import write_certificate

        answer = answer_for(architecture, certifiable_method(architecture) if asked == "auto" else asked)
        write_certificate(certify_dimension(answer), certificate)
    record, title = answer.to_json(), f"{architecture.kind} attention, widths {','.join(map(str, architecture.widths))}"
    if architecture.temperature != 1:
        title += f", temperature {architecture.temperature}"
    if weights is not None:
        record["point"] = None if point is None else point.to_json()
    shown = [pairs(title, answer.rows()), *([] if point is None else [pairs("given weights", point.rows())])]
    print_answer(json, record, *shown)
    return EXIT_UNDECIDED if wanted and not answer.is_proven else 0
