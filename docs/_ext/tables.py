"""Tables of words are read on narrow screens as a list: every cell says which column it belongs to.

A cell gets the heading of its column in front, which the style sheet shows only where the table is stacked. Tables of
numbers stay tables and scroll.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes

WORDS, LETTERS = 34, 45
"""A table with a cell of more characters, or a row of more letters, than this is one of words."""


def stack(app: Any, document: nodes.document) -> None:
    for table in document.findall(nodes.table):
        head, body = table.next_node(nodes.thead), table.next_node(nodes.tbody)
        if head is None or body is None:
            continue
        rows = [list(row.children) for row in body.findall(nodes.row)]
        titles = [cell.astext() for cell in head.next_node(nodes.row).children]
        texts = [[cell.astext() for cell in row] for row in rows]
        if not any(max(map(len, row)) > WORDS or sum(map(str.isalpha, "".join(row))) > LETTERS for row in texts):
            continue
        table["classes"].append("stacked")
        if len(titles) == 2:
            continue
        for row in rows:
            for cell, title in list(zip(row, titles))[1:]:
                if title and cell.astext() and isinstance(cell.children[0], nodes.TextElement):
                    cell.children[0].insert(0, nodes.inline("", f"{title}: ", classes=["column"]))


def setup(app: Any) -> dict[str, bool]:
    app.connect("doctree-read", stack)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
