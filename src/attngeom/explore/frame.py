"""The frame around every view: head, way back, controls, answer, what to copy; and the start page with its cards."""

from __future__ import annotations

from collections.abc import Mapping

from attngeom.errors import AttnGeomError
from attngeom.explore.controls import draw_form, read_state, read_texts, write_query
from attngeom.explore.emblems import emblem
from attngeom.explore.markup import Html, Node, code, join, refusal, section, tag
from attngeom.explore.shelf import Shelf
from attngeom.explore.view import View
from attngeom.explore.views import VIEWS

DOCTYPE = Html("<!doctype html>\n")


def page(title: str, *body: Node) -> Html:
    """A whole page; everything that it loads is served beside it."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{title} · attngeom"),
        tag("link", rel="stylesheet", href="/assets/explore.css"),
        tag("link", rel="icon", href="/assets/icon.svg"),
        tag("script", src="/assets/turn.js", defer=True),
        tag("script", src="/assets/explore.js", defer=True),
    )
    return Html(DOCTYPE + tag("html", head, tag("body", *body), lang="en"))


def start_page() -> Html:
    """One card for each view."""
    cards = (
        tag("li", tag("a", emblem(name), tag("h2", title), tag("p", summary), href=f"/{name}", class_="card"))
        for name, (title, summary) in VIEWS.items()
    )
    words = "Exact questions about attention networks, answered by the engine of attngeom on this machine."
    header = tag("header", tag("h1", "attngeom explore"), tag("p", words))
    return page("Explore", header, tag("main", tag("ul", *cards, class_="cards")))


def answer(view: View, query: Mapping[str, str], shelf: Shelf) -> Html:
    """What a view shows for an address: the answer or one line that refuses, room for long work, what to copy."""
    try:
        state = read_state(view.controls, query, shelf)
        shown = view.show(state)
        copied: Node = _copied(view.command(state), view.python(state))
    except AttnGeomError as error:
        shown, copied = refusal(error), None
    link = f"/{view.name}?{write_query(read_texts(view.controls, query))}"
    work = tag("section", id="job", aria_live="polite")
    return join((shown, work, tag("footer", copied, tag("p", tag("a", "Link to what you see", href=link, id="link")))))


def _copied(command: str, python: str) -> Html:
    return section("Show the command", code(command), tag("h3", "In Python"), code(python), class_="copied")


def view_page(view: View, query: Mapping[str, str], shelf: Shelf) -> Html:
    """The page of a view, with the answer for its address already in it."""
    title = VIEWS[view.name][0]
    names = list(VIEWS)
    links = (
        tag("a", VIEWS[name][0], href=f"/{name}", aria_current="page" if name == view.name else None) for name in names
    )
    header = tag(
        "header",
        tag("a", "attngeom explore", href="/", class_="home"),
        tag("details", tag("summary", "All views"), tag("nav", *links, aria_label="Views"), class_="menu"),
        tag("h1", title),
        tag("p", VIEWS[view.name][1]),
    )
    buttons = tag("div", *map(_button, view.actions), class_="buttons wide") if view.actions else None
    form = draw_form(view.controls, query, shelf, buttons)
    main = tag("main", tag("div", answer(view, query, shelf), id="answer", aria_live="polite"))
    return page(title, header, tag("div", form, main, class_="view", data_view=view.name))


def _button(action: str) -> Html:
    return tag("button", action, type="button", data_action=action)
