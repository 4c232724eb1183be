"""HTML as a tree of calls: text is escaped once, where it enters, and nowhere else."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

VOID = frozenset({"br", "img", "input", "link", "meta", "hr"})


class Html(str):
    """Text that is markup already; every other string is escaped when it becomes part of a page."""

    __slots__ = ()


Node = Html | str | int | float | None
"""What may stand inside an element; None stands for nothing."""


def text(node: Node) -> Html:
    """A node as markup.

    >>> text("<b> & 'c'")
    '&lt;b&gt; &amp; &#x27;c&#x27;'
    """
    if node is None:
        return Html("")
    return node if isinstance(node, Html) else Html(html.escape(str(node)))


def join(nodes: Iterable[Node], separator: str = "") -> Html:
    """Nodes one after the other."""
    return Html(html.escape(separator).join(text(node) for node in nodes))


def tag(name: str, /, *children: Node, **attributes: object) -> Html:
    """An element. A trailing underscore of an attribute is dropped, inner ones are dashes; None and False leave it out.

    >>> tag("a", "x < y", href="?q=1&r", class_="link")
    '<a href="?q=1&amp;r" class="link">x &lt; y</a>'
    """
    words = [name]
    for key, value in attributes.items():
        label = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(label)
        elif value is not None and value is not False:
            words.append(f'{label}="{html.escape(str(value))}"')
    opening = f"<{' '.join(words)}>"
    return Html(opening) if name in VOID else Html(f"{opening}{join(children)}</{name}>")


def table(columns: Sequence[Node], rows: Iterable[Sequence[Node]], **attributes: object) -> Html:
    """A table with a head, in a box that scrolls by itself on narrow pages."""
    head = tag("tr", *(tag("th", title, scope="col") for title in columns))
    body = (tag("tr", *(tag("td", entry) for entry in row)) for row in rows)
    whole = tag("table", tag("thead", head), tag("tbody", *body), **attributes)
    return tag("div", whole, class_="scroll", tabindex=0, role="group")


def pairs(entries: Mapping[str, Node], **attributes: object) -> Html:
    """Labels and values."""
    parts = (join((tag("dt", label), tag("dd", value))) for label, value in entries.items())
    return tag("dl", *parts, **attributes)


def section(title: str, *children: Node, **attributes: object) -> Html:
    """A part of an answer under its title."""
    return tag("section", tag("h2", title), *children, **attributes)


def badge(standing: str) -> Html:
    """How strong a claim is, as a badge; the word carries it, the colour only repeats it."""
    return tag("span", standing, class_=f"badge {standing}")


def standing_line(standing: str, reason: object) -> Html:
    """How strong an answer is, and why."""
    return tag("p", badge(standing), " ", str(reason), class_="reason")


def verdict_line(words: str, marked: str) -> Html:
    """The verdict of a page in words; ``marked`` is the word for scripts."""
    return tag("p", words, class_="verdict", id="verdict", data_verdict=marked)


def job_button(words: str, job: str) -> Html:
    """The button that starts a long computation of the view."""
    return tag("button", words, type="button", class_="main", data_job=job)


def subscript(index: int) -> str:
    """The digits of a number below the line.

    >>> subscript(12)
    '₁₂'
    """
    return "".join("₀₁₂₃₄₅₆₇₈₉"[int(digit)] for digit in str(index))


def refusal(message: object) -> Html:
    """One line that says what is wrong with what was given."""
    return tag("p", str(message), class_="refusal", role="alert")


def code(line: str) -> Html:
    """A line to copy."""
    return tag("div", tag("code", line), tag("button", "Copy", type="button", data_copy=line), class_="copy")
