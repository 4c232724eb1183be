"""The table of docs/how-to/kinds.md: what is told of which kind of attention, asked of the package row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attngeom.canonical import canonicalize, fingerprint
from attngeom.comparison import compare
from attngeom.dimensions.modern import modern_formula
from attngeom.errors import AttnGeomError
from attngeom.exact.domains import QQ, RR
from attngeom.learning.laws import conserved_quantities
from attngeom.network import Architecture, random_symmetry, random_weights

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "kinds.md"
START, END = "<!-- table of kinds: python -m tests.docs.kind_table -->\n", "<!-- end of the table -->\n"
HEAD = """| kind | one head | two heads | residual stack | canonical weights | fingerprint, compare | laws |
|---|---|---|---|---|---|---|
"""
SHAPES: tuple[dict[str, Any], ...] = (
    dict(widths=(3, 2)),
    dict(widths=(3, 2), heads=2, value_width=2),
    dict(widths=(3, 3, 3), heads=2, value_width=2, residual=True),
)


def row(kind: str, options: dict[str, Any]) -> str:
    """The cells of one kind: theorems on its dimension, forms of all shapes, laws of one head."""
    networks = [Architecture(attention=2, tokens=3, kind=kind, **shape, **options) for shape in SHAPES]
    formulas = [modern_formula(network) for network in networks]
    theorems = [x.source.replace("Theorem ", "").split(" (")[0] if x else "computed" for x in formulas]
    weights = [random_weights(network, domain, 0) for network in networks for domain in (QQ, RR)]
    forms = " and ".join(
        name for name, part in (("exact", weights[0::2]), ("floats", weights[1::2])) if all(map(_has_form, part))
    )
    told = all(_is_told(x) for x in weights[0::2])
    laws = "complete" if conserved_quantities(networks[0]).is_complete else "listed"
    flags = [f"--{k.replace('_', '-')}" + ("" if v is True else f" {v}") for k, v in options.items()]
    name = " ".join([kind, *flags])
    return f"| {' | '.join([f'`{name}`', *theorems, forms, 'yes' if told else 'no', laws])} |\n"


def _has_form(weights: Any) -> bool:
    try:
        return bool(canonicalize(weights).is_canonical)
    except AttnGeomError:
        return False


def _is_told(weights: Any) -> bool:
    moved = random_symmetry(weights.architecture, QQ, 1).apply(weights)
    same = fingerprint(weights).fingerprint == fingerprint(moved).fingerprint
    return same and compare(weights, moved).same_function is True


def written() -> list[str]:
    """The rows of the page."""
    text = PAGE.read_text(encoding="utf-8")
    return text.split(START)[1].split(END)[0].removeprefix(HEAD).splitlines(keepends=True)


if __name__ == "__main__":
    from tests.network.modern_cases import CASES

    before, rest = PAGE.read_text(encoding="utf-8").split(START)
    table = HEAD + "".join(row(*case) for case in CASES)
    PAGE.write_text(before + START + table + END + rest.split(END)[1], encoding="utf-8")
