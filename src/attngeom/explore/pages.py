"""Templates become pages here: everything that is put into them is escaped, once, unless it is markup already."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import tanh
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape


def subscript(index: int) -> str:
    """The digits of a number below the line.

    >>> subscript(12)
    '₁₂'
    """
    return "".join("₀₁₂₃₄₅₆₇₈₉"[int(digit)] for digit in str(index))


def shorten(value: Any) -> str:
    """A number for a cell of a matrix.

    >>> [shorten(x) for x in (0.0, -0.5, 12.25, 4321.5, 1234567.0, -1e-9)]
    ['0', '−0.5', '12.2', '4322', '1e6', '−1e-9']
    """
    size = abs(float(value))
    if size == 0:
        return "0"
    if 0.005 <= size < 1000:
        shown = f"{size:.{2 if size < 10 else 1}f}".rstrip("0").rstrip(".")
    elif 1000 <= size < 9999.5:
        shown = f"{size:.0f}"
    else:
        shown = f"{size:.0e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    return "−" + shown if value < 0 else shown


def shade(value: Any) -> str:
    """How much of its colour the cell of a number shows: none for 0, nearly all for large ones."""
    return f"{0.85 * tanh(abs(float(value)) / 3):.2f}"


def math(text: object) -> Markup:
    """Words with their indices below and exponents above the line, minus signs of numbers, columns of matrices apart.

    >>> str(math("rk A_1 < 2^3"))
    'rk <var>A</var><sub>1</sub> &lt; 2<sup>3</sup>'
    """
    indexed = re.sub(r"(?<![\w.])([A-Za-z])_(\w+)", r"<var>\1</var><sub>\2</sub>", str(escape(str(text))))
    indexed = re.sub(r"\^(\w+)", r"<sup>\1</sup>", indexed)
    indexed = re.sub(r"(?<![\w.)\]-])-(?=\d)|(?<=\de)-(?=\d)", "−", indexed)
    return Markup(re.sub(r"\b(not|closure)_(realizable|only)\b", r"\1 \2", indexed).replace("  ", "\u2002"))


def plain(value: Any) -> str:
    """A value of a file or of a configuration, without the marks of any language.

    >>> plain({"widths": [3, 2], "residual": False, "value_width": None})
    'widths 3,2; residual no; value width –'
    """
    if isinstance(value, Mapping):
        return "; ".join(f"{str(key).replace('_', ' ')} {plain(each)}" for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return ",".join(map(plain, value))
    return {None: "–", True: "yes", False: "no"}[value] if value is None or isinstance(value, bool) else str(value)


ENVIRONMENT = Environment(
    loader=PackageLoader("attngeom.explore"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters |= {each.__name__: each for each in (subscript, shorten, shade, math, plain)}
ENVIRONMENT.filters["commas"] = "{:,}".format


def render(template: str, **context: Any) -> Markup:
    """A template with its values.

    >>> render("refusal.html", message="<b> given").strip()
    Markup('<p class="refusal" role="alert">&lt;b&gt; given</p>')
    """
    return Markup(ENVIRONMENT.get_template(template).render(context))


def refusal(message: object) -> Markup:
    """One line that says what is wrong with what was given."""
    return render("refusal.html", message=str(message))
