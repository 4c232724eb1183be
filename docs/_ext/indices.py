"""Indices and exponents in running text are set as such: d_{i−1}, S_222, x_jᵀ, B'_1, (x)_k, C^d, 2^61; code stays.

Underscores are never emphasis on these pages; Markdown would take those of two indices in one line for that, so they
are escaped before it reads them.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

# What is no running text: blocks and spans of code, formulas, targets of links, comments and tags.
OUTSIDE = re.compile(
    r"^(`{3,}).*?^\1 *$|(?<=\n\n)(?: {4}[^\n]*\n)+|(`+)(?!`).+?(?<!`)\2(?!`)"
    r"|\$\$.+?\$\$|\$[^$\n]+\$|\]\([^)]*\)|<[^>\n]*>|^\{[^}\n]*\}$",
    re.DOTALL | re.MULTILINE,
)
NAMES = ("Tor", "min", "max", "dim", "deg", "sl", "gl", "df", "dh", "HF")
BASE = "|".join(
    [r"(?<=(?<![^\W\d_])[^\W\d_])", r"(?<=[A-Zᵀ][^\W\d_])", r"(?<=[)\]'′’*⊕⊗∂⁰\u0307α-ωΑ-Ω])"]
    + [rf"(?<=\b{name})" for name in NAMES]
)
INDEX = r"\d+(?![a-p\d])|[a-z]{2,4}(?!\w)|[^\W\d_](?![a-z\d]|\w*_?[a-z]{2})"
POWER = r"[−-]?\d+|⊥|[^\W\d_](?!\w)"
MARK = re.compile(
    r"(?P<sign>[_^])\{(?P<braced>(?:[^{}]|\{[^{}]*\}){1,60})\}"
    r"|(?P<mark>[_^])\((?P<round>(?:[^()]|\([^()]*\)){1,30})\)"
    rf"|(?:{BASE})_(?P<index>{INDEX})"
    rf"|(?<=\S)\^(?P<power>{POWER})"
)
CODE = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.comment, nodes.title, nodes.raw)


def escape(app: Any, page: str, source: list[str]) -> None:
    text, place, pieces = source[0], 0, []
    for found in OUTSIDE.finditer(text):
        pieces += [text[place : found.start()].replace("_", r"\_"), found[0]]
        place = found.end()
    source[0] = "".join([*pieces, text[place:].replace("_", r"\_")])


def split(text: str) -> list[nodes.Node]:
    """The text with its indices and exponents as nodes, those of an index included."""
    pieces: list[nodes.Node] = []
    place = 0
    for found in MARK.finditer(text):
        pieces.append(nodes.Text(text[place : found.start()]))
        inner = found["braced"] or found["index"] or found["power"] or f"({found['round']})"
        raised = found["power"] or "^" in (found["sign"], found["mark"])
        pieces.append((nodes.superscript if raised else nodes.subscript)("", "", *split(inner)))
        place = found.end()
    pieces.append(nodes.Text(text[place:]))
    return [piece for piece in pieces if piece.astext()]


def set_indices(app: Any, document: nodes.document) -> None:
    for text in list(document.findall(nodes.Text)):
        parent = text.parent
        if isinstance(parent, nodes.TextElement) and not isinstance(parent, CODE) and MARK.search(text):
            parent.replace(text, split(str(text)))


def setup(app: Any) -> dict[str, bool]:
    # Generated text is put in at priority 500, and has its own code.
    app.connect("source-read", escape, priority=400)
    app.connect("doctree-read", set_indices)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
