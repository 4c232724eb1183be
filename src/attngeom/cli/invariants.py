"""``attngeom invariants``: the equations that hold on every attention layer."""

from __future__ import annotations

import contextlib
import io
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from attngeom.cli.options import (
    Heads,
    IgnoredSeed,
    Json,
    Tokens,
    ValueWidth,
    check_choice,
    choice_option,
    file_option,
    flag,
)
from attngeom.cli.output import print_answer, print_json, table
from attngeom.equations import Family, Variety, families, find_family
from attngeom.equations.export import FORMATS, WRITERS, export, member_record
from attngeom.equations.families.lines import Line, LineFamily
from attngeom.errors import InputError, SizeError
from attngeom.files import write_atomic
from attngeom.limits.sizes import COUNTED_WIDTH, LISTED_POLYNOMIALS


def _names() -> list[str]:
    return [family.name for family in families(Variety(4, 3, tokens=2))]


def invariants_command(
    d: Annotated[int, typer.Option("--d", min=1, help="Embedding width d.")],
    a: Annotated[int, typer.Option("--a", min=1, help="Attention width a: the bound on rank A.")],
    tokens: Tokens = 2,
    d_out: Annotated[int, typer.Option("--d-out", min=1, help="Output width.")] = 1,
    targets: Annotated[int | None, typer.Option("--targets", min=1, help="Columns of A, if not d.")] = None,
    heads: Heads = 1,
    value_width: ValueWidth = None,
    family_name: Annotated[
        str | None, typer.Option("--family", autocompletion=_names, help="One family only; default: all.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", metavar="I,J", help="One entry of the output: row I, column J, from 0.")
    ] = None,
    line: Annotated[
        list[str] | None,
        typer.Option("--line", metavar="P:R", help="Own line of families 9 and 12, such as 1,0,0:0,1,1; repeatable."),
    ] = None,
    form: Annotated[str, choice_option("--format", FORMATS, f"One of {', '.join(FORMATS)}.")] = "text",
    count: Annotated[bool, flag("--count", "Degrees and counts instead of the polynomials.")] = False,
    index: Annotated[int | None, typer.Option("--index", min=0, help="One member of --family by number.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="At most this many members per family.")] = None,
    out: Annotated[Path | None, file_option("--out", "Write to a file instead of stdout.")] = None,
    json: Json = False,
    seed: IgnoredSeed = 0,
) -> None:
    """List, count or export the polynomial equations that hold on every attention layer, of one head or of several."""
    largest = max(d, d_out, targets or d)
    if largest > COUNTED_WIDTH:
        raise SizeError(
            f"width {str(largest)[:40]} given; equations are counted and listed for widths up to {COUNTED_WIDTH}"
        )
    column = None if output is None else _read_entry(output, d_out, tokens)
    # The equations of an entry do not depend on its row.
    variety = Variety(d, a, tokens, d_out if column is None else 1, targets, heads, value_width)
    lines = None if line is None else tuple(map(_read_line, line))
    if family_name is None:
        chosen = families(variety, column, lines)
    else:
        chosen = (find_family(variety, family_name, column, lines),)
    if lines is not None:
        chosen = tuple(family for family in chosen if isinstance(family, LineFamily))
        if not chosen:
            raise InputError("--line given; it is for the families sylvester-resultant and binary-restriction")
    check_choice(form, FORMATS, "format")
    if index is not None and family_name is None:
        raise InputError("--index given without --family; name the family")
    if out is None:
        _print(chosen, form, count, index, limit, json)
        return
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        _print(chosen, form, count, index, limit, json)
    write_atomic(out, text.getvalue())


def _read_entry(text: str, d_out: int, tokens: int) -> int:
    """The column of an entry of the output, from I,J."""
    row, _, column = text.partition(",")
    if not (row.strip().isdecimal() and column.strip().isdecimal()):
        raise InputError(f"--output {text[:40]} given; a row and a column from 0 are required, such as 0,0")
    if int(row) >= d_out or int(column) >= tokens:
        size = f"{d_out} row{'s' * (d_out > 1)} and {tokens} column{'s' * (tokens > 1)}"
        raise InputError(f"--output {text[:40]} given; the output has {size}, counted from 0")
    return int(column)


def _read_line(text: str) -> Line:
    """The two points of a line, from P:R."""
    points = [point.split(",") for point in text.split(":")]
    try:
        first, second = (tuple(int(x) for x in point) for point in points)
    except ValueError:
        raise InputError(
            f"--line {text[:40]} given; two points of integers are required, such as 1,0,0:0,1,1"
        ) from None
    return first, second


def _print(
    chosen: tuple[Family, ...], form: str, count: bool, index: int | None, limit: int | None, json: bool
) -> None:
    is_json = json or form == "json"
    listed = sum(f.count if limit is None else min(f.count, limit) for f in chosen)
    if count:
        rows = [
            [f.number, f.name, f.degree, f"{f.count:,}", "" if f.span is None else f"{f.span:,}", f.source]
            for f in chosen
        ]
        shown = table(("no", "family", "degree", "count", "span", "from"), rows, left=("family", "from"))
        print_answer(is_json, {"families": {f.name: _summary(f) for f in chosen}}, shown)
    elif index is not None and is_json:
        print_json(member_record(chosen[0][index]))
    elif index is not None:
        print(WRITERS[form](chosen[0].polynomial(index)))
    elif listed > LISTED_POLYNOMIALS:
        raise SizeError(
            f"more than {LISTED_POLYNOMIALS:,} polynomials asked for; give --limit, --family with --index, or --count"
        )
    elif json:
        print_json({"families": {f.name: {**_summary(f), "members": _members(f, limit)} for f in chosen}})
    else:
        for line in export(chosen, form, limit):
            print(line)


def _summary(f: Family) -> dict[str, Any]:
    return {"degree": f.degree, "count": f.count, "dimension": f.span, "number": f.number, "source": f.source}


def _members(f: Family, limit: int | None) -> list[dict[str, Any]]:
    chosen = islice(f, f.count if limit is None else min(f.count, limit))
    return [{"index": x.index, "label": x.label, "polynomial": x.polynomial().to_json()} for x in chosen]
