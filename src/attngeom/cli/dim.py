"""``attngeom dim``: the dimension of an architecture, with what is proven and where parameters get lost."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Annotated

import typer

from attngeom.cli import options
from attngeom.cli.app import EXIT_UNDECIDED
from attngeom.cli.output import print_json, print_pairs, print_table, progress
from attngeom.dimensions import Dimension, dimension, rank_at, upper_bound
from attngeom.dimensions.answer import REQUESTS
from attngeom.dimensions.formulas import formula
from attngeom.errors import InputError, SizeError
from attngeom.exact.domains import QQ
from attngeom.network import Architecture
from attngeom.network.attention import find_kind

MAX_TABLE = 10000
MAX_MINOR = 4000
"""Larger certificates hold a transcript in the place of a minor."""

Prove = Annotated[bool, options.flag("--prove", "Compute proven bounds instead of trusting a formula.")]
Method = Annotated[
    str, typer.Option("--method", help="How to prove: auto, theorem, minor, schur, krylov (matrix-free) or balls.")
]
OptionalWidths = Annotated[
    str | None, typer.Option("--widths", help="Widths d_0,…,d_l, comma separated; with --table ranges such as 2-4.")
]
TokensText = Annotated[str, typer.Option("--tokens", help="Number of tokens t; with --table a range such as 1-3.")]
AsTable = Annotated[bool, options.flag("--table", "One row for each architecture of a grid of ranges.")]
Checkpoint = Annotated[
    str | None, typer.Option("--from-checkpoint", help="Take architecture and point from a weights file.")
]
Workers = Annotated[int, typer.Option("--workers", min=1, help="Threads of the matrix-free proof.")]


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


def _size(part: range) -> int:
    """The length of a range of step one; ``len`` refuses those beyond 2^63."""
    return part.stop - part.start


def _one_range(tokens: str) -> list[range]:
    values = parse_ranges(tokens, "tokens")
    if len(values) != 1:
        raise InputError(f"--tokens {tokens[:40]!r} given; one number is required, or one range with --table")
    return values


def _only(values: list[range], name: str) -> list[int]:
    if any(_size(part) != 1 for part in values):
        raise InputError(f"a range was given for --{name}; ranges need --table")
    return [part[0] for part in values]


def _print_answer(answer: Dimension) -> None:
    architecture = answer.architecture
    title = f"{architecture.kind} attention, widths {','.join(map(str, architecture.widths))}"
    if architecture.temperature != 1:
        title += f", temperature {architecture.temperature}"
    print_pairs(title, answer.rows())


def _print_table(answers: list[Dimension]) -> None:
    rows = []
    for answer in answers:
        architecture = answer.architecture
        known = answer.formula
        rows.append(
            (
                ",".join(map(str, architecture.widths)),
                ",".join(map(str, architecture.attention)),
                architecture.tokens,
                answer.num_parameters,
                answer.dimension,
                "yes" if answer.is_proven else "no",
                known.source if known is not None and known.applies else "-",
            )
        )
    columns = ("widths", "attention", "tokens", "parameters", "dimension", "proven", "formula")
    print_table(columns, rows, left=("formula",))


def _grid(widths: str, attention: str | None, tokens: str, make: Callable[..., Architecture]) -> list[Architecture]:
    """Every architecture of a grid of ranges, at most :data:`MAX_TABLE`."""
    spread = [parse_ranges(widths, "widths"), _one_range(tokens)]
    heads_width = [] if attention is None else parse_ranges(attention, "attention")
    size = prod(_size(part) for part in (*spread[0], *heads_width, *spread[1]))
    if size > MAX_TABLE:
        shown = f"{size:,}" if size < 10**18 else "more than 10^18"
        raise InputError(f"a grid of {shown} architectures given; at most {MAX_TABLE:,} are tabulated")
    choices = product(product(*spread[0]), product(*heads_width), product(*spread[1]))
    return [make(list(w), list(a) or None, t[0]) for w, a, t in choices]


def dim_command(
    widths: OptionalWidths = None,
    attention: options.Attention = None,
    tokens: TokensText = "3",
    kind: options.Kind = "lightning",
    heads: options.Heads = 1,
    value_width: options.ValueWidth = None,
    residual: options.Residual = False,
    causal: options.Causal = False,
    temperature: options.Temperature = "1",
    prove: Prove = False,
    method: Method = "auto",
    table: AsTable = False,
    from_checkpoint: Checkpoint = None,
    certificate: options.CertificateFile = None,
    workers: Workers = 1,
    json: options.Json = False,
    seed: options.Seed = 0,
) -> int:
    """The dimension of the set of functions of an architecture: by formula at once, or proven."""
    if (widths is None) == (from_checkpoint is None):
        raise InputError("give either --widths or --from-checkpoint")
    options.check_choice(method, REQUESTS, "method")
    find_kind(kind)
    if certificate is not None:
        options.check_stored_seed(seed)

    def make(w: list[int], a: list[int] | None, t: int) -> Architecture:
        a = options.default_attention(w, heads) if a is None else a
        return Architecture(w, a, t, kind, heads, value_width, residual, causal, temperature)

    def answer_for(architecture: Architecture, wanted: bool, how: str) -> Dimension:
        with progress() as bar:
            task = bar.add_task("products", total=None)
            return dimension(
                architecture,
                prove=wanted,
                method=how,  # type: ignore[arg-type]
                seed=seed,
                progress=lambda done, total: bar.update(task, completed=done, total=total),
                workers=workers,
            )

    if table:
        if widths is None or certificate is not None:
            raise InputError("--table was given with a file; it needs --widths alone")
        answers = [answer_for(architecture, prove, method) for architecture in _grid(widths, attention, tokens, make)]
        if json:
            print_json({"table": [answer.to_json() for answer in answers]})
        else:
            _print_table(answers)
        return EXIT_UNDECIDED if prove and not all(answer.is_proven for answer in answers) else 0
    point = None
    if from_checkpoint is not None:
        from attngeom.interop.weights import read_weights

        weights = read_weights(from_checkpoint)
        architecture = weights.architecture
        try:
            # The numbers of the file as they are: floats are rationals.
            point = rank_at(weights.to(QQ), seed)
        except SizeError as error:
            # The architecture still has an answer.
            typer.echo(f"attngeom: rank at this point left out: {error}", err=True)
    else:
        assert widths is not None
        sizes = _only(parse_ranges(widths, "widths"), "widths")
        heads_width = None if attention is None else _only(parse_ranges(attention, "attention"), "attention")
        architecture = make(sizes, heads_width, _only(_one_range(tokens), "tokens")[0])
    wanted = prove or certificate is not None
    if certificate is not None and method == "auto":
        known = formula(architecture)
        method = "auto" if known is not None and known.status == "theorem" else "minor"
        if method == "minor" and upper_bound(architecture).value > MAX_MINOR:
            method = "krylov"
    answer = answer_for(architecture, wanted, method)
    if certificate is not None:
        # The verifier and the readers of weights are not needed for an answer by theorem: they start slowly.
        from attngeom.dimensions.certificate import certify_dimension
        from attngeom.verification import write_certificate

        write_certificate(certify_dimension(answer), certificate)
    if json:
        record = answer.to_json()
        if from_checkpoint is not None:
            record["point"] = None if point is None else point.to_json()
        print_json(record)
    else:
        _print_answer(answer)
        if point is not None:
            print_pairs("given weights", point.rows())
    return EXIT_UNDECIDED if wanted and not answer.is_proven else 0
