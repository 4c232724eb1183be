"""Indices and exponents in running text, such as d_{i−1} and x^{2}, are set as such; code stays as it is."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

MARK = re.compile(r"([_^])\{([^{}]{1,40})\}|(?<=(?<!\w)[^\W\d_])_([0-9a-zA-Z])(?!\w)")
CODE = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.reference, nodes.comment)


def set_indices(app: Any, document: nodes.document) -> None:
    for text in list(document.findall(nodes.Text)):
        parent = text.parent
        if not MARK.search(text) or isinstance(parent, CODE) or parent.next_node(nodes.literal_block) is parent:
            continue
        if not isinstance(parent, nodes.TextElement) or isinstance(parent, nodes.title):
            continue
        pieces: list[nodes.Node] = []
        place = 0
        for found in MARK.finditer(text):
            pieces.append(nodes.Text(text[place : found.start()]))
            kind = nodes.superscript if found[1] == "^" else nodes.subscript
            pieces.append(kind("", found[2] or found[3]))
            place = found.end()
        pieces.append(nodes.Text(text[place:]))
        parent.replace(text, [piece for piece in pieces if piece.astext()])


def setup(app: Any) -> dict[str, bool]:
    app.connect("doctree-read", set_indices)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
