"""The first time that a page uses a word of the glossary, the word leads there."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes

GLOSSARY = "explanation/glossary"
WORDS = {
    "alignment": r"align(?:ment|ments)",
    "ball": r"balls?",
    "boundary point": r"boundary points?",
    "certificate": r"certificates?",
    "closure": r"closure",
    "fiber": r"fibers?",
    "gauge": r"gauges?",
    "generic": r"generic",
    "Hilbert function HF": r"Hilbert functions?",
    "highest weight vector": r"highest weight vectors?",
    "ideal": r"ideals?",
    "lightning attention": r"lightning attention|lightning",
    "minimal generators": r"minimal generators?",
    "minor": r"minors?",
    "neuromanifold": r"neuromanifolds?",
    "orbit": r"orbits?",
    "skip connection": r"skip connections?",
    "stratum": r"strat(?:um|a)",
    "teleport": r"teleports?",
    "virtual weights (M, L)": r"virtual weights",
}
"""The entries that are looked for, and the forms in which they occur."""
PLAIN = (nodes.paragraph, nodes.list_item, nodes.entry)
PATTERN = re.compile("|".join(rf"(?P<w{n}>\b(?:{form})\b)" for n, form in enumerate(WORDS.values())), re.IGNORECASE)


def link_words(app: Any, document: nodes.document) -> None:
    if app.env.docname == GLOSSARY:
        return
    names, seen = list(WORDS), set()
    for text in list(document.findall(nodes.Text)):
        if not isinstance(text.parent, PLAIN):
            continue
        pieces: list[nodes.Node] = []
        place = 0
        for found in PATTERN.finditer(text):
            name = names[int(str(found.lastgroup)[1:])]
            if name not in seen:
                seen.add(name)
                link = addnodes.pending_xref(
                    "", nodes.inline("", found[0], classes=["word"]), refdomain="std", reftype="term", reftarget=name
                )
                link["refdoc"], link["refwarn"], link["refexplicit"] = app.env.docname, True, True
                pieces += [nodes.Text(text[place : found.start()]), link]
                place = found.end()
        if pieces:
            pieces.append(nodes.Text(text[place:]))
            text.parent.replace(text, [piece for piece in pieces if piece.astext()])


def setup(app: Any) -> dict[str, bool]:
    app.connect("doctree-read", link_words, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
