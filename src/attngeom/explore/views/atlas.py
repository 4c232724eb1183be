"""Atlas: browse a store of facts; filter, sort, pivot, plot, open one fact with its evidence."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from attngeom.atlas import Fact, FactStore
from attngeom.atlas.records import canonical_json, short_name
from attngeom.atlas.tables import Row, RowCondition, columns_of, select, summarize_answer, to_csv
from attngeom.errors import InputError, SizeError
from attngeom.explore.controls import File, Number, State, Text
from attngeom.explore.drawings import scatter
from attngeom.explore.markup import Html, Node, badge, join, pairs, section, table, tag
from attngeom.explore.shelf import ShelfItem, named, quoted
from attngeom.explore.view import View, json_file
from attngeom.results import STANDINGS
from attngeom.verification import verify

MAX_FACTS = 20000
"""Facts of a store that the page reads; the commands read any number."""
PAGE = 50
MAX_PIVOT = 40
MAX_POINTS = 2000
LONGEST = 300
Selected = list[tuple[Fact, Row]]


@lru_cache(maxsize=4)
def _facts(path: str, changed: float) -> tuple[Fact, ...]:
    """All facts of a store; a store that has changed is read again."""
    with FactStore(path, read_only=True) as store:
        if store.count() > MAX_FACTS:
            raise SizeError(f"{store.count():,} facts; the page reads {MAX_FACTS:,}: use attngeom atlas show --where")
        return tuple(store.facts())


def facts_of(file: ShelfItem) -> tuple[Fact, ...]:
    """The facts of the chosen store."""
    return _facts(file.path, file.changed)


def chosen(state: State) -> Selected:
    """The facts that meet the conditions, sorted."""
    if state["file"] is None:
        raise InputError("no store is open; drop the file that attngeom atlas run wrote, or name it when you start")
    conditions = [RowCondition.parse(part) for part in state["where"].split(",") if part.strip()]
    return select(facts_of(state["file"]), conditions, state["sort"] or None)


def _known(column: str, columns: Sequence[str]) -> str:
    if column not in columns:
        raise InputError(f"column {column[:40]!r} given; there are {', '.join(columns)}"[:200])
    return column


def pivot(rows: Sequence[Row], down: str, across: str, value: str) -> tuple[list[str], list[list[str]]]:
    """The values of one column by two others; several different ones are listed together.

    >>> pivot([{"a": 1, "b": 2, "c": 5}, {"a": 1, "b": 2, "c": 6}], "a", "b", "c")
    (['a \\\\ b', '2'], [['1', '5, 6']])
    """
    cells: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        place = (str(row.get(down, "–")), str(row.get(across, "–")))
        text = str(row.get(value, "–"))[:40]
        if text not in cells.setdefault(place, []):
            cells[place].append(text)
    lines, columns = (sorted({place[k] for place in cells}, key=_by_size) for k in (0, 1))
    if max(len(lines), len(columns)) > MAX_PIVOT:
        raise SizeError(f"a table of {len(lines):,} × {len(columns):,} asked for; at most {MAX_PIVOT}: filter more")
    body = [[line, *(", ".join(cells.get((line, column), [])) for column in columns)] for line in lines]
    return [f"{down} \\ {across}", *columns], body


def _by_size(text: str) -> tuple[bool, float, str]:
    try:
        return (False, float(text), text)
    except ValueError:
        return (True, 0.0, text)


def points_of(found: Selected, x: str, y: str) -> list[tuple[float, float, str, str]]:
    """Facts with numbers in both columns, by evidence."""
    points = []
    for fact, row in found:
        if all(isinstance(row.get(name), (int, float)) and not isinstance(row.get(name), bool) for name in (x, y)):
            words = f"{short_name(fact.task.architecture)}: {summarize_answer(fact)}"
            points.append((float(row[x]), float(row[y]), fact.result.evidence[:60], words[:LONGEST]))
    if len(points) > MAX_POINTS:
        raise SizeError(f"{len(points):,} points asked for; at most {MAX_POINTS:,} are drawn: filter more")
    return points


def _evidence(words: str) -> Node:
    return badge(words) if words in STANDINGS else words[:LONGEST]


def show_fact(fact: Fact) -> Html:
    """Everything that the store holds of a fact, and what becomes of its certificate."""
    record = fact.to_json()
    certificate = record.pop("certificate")
    held: dict[str, Node] = {
        key: (canonical_json(value) if isinstance(value, (list, dict)) else str(value))[: 4 * LONGEST]
        for key, value in record.items()
    }
    held["evidence"] = _evidence(fact.result.evidence)
    if certificate is None:
        held["certificate"] = "none is stored"
    else:
        verdict = verify(certificate)
        words = {True: "it proves its claim", False: "it proves nothing", None: "its recheck is beyond the budget"}
        held["certificate"] = f"rechecked: {words[verdict.valid]} ({verdict.reason[:LONGEST]})"
    return section("The fact", pairs(held), id="fact")


class AtlasView(View):
    """A store, conditions, a table, a pivot, a plot, a fact."""

    name = "atlas"

    def __init__(self) -> None:
        self.controls = (
            File(name="file", label="Store", suffixes=(".db", ".sqlite")),
            Text(name="where", label="Where", hint="conditions such as kind=softmax, tokens>=2", longest=400),
            Text(name="sort", label="Sort by", hint="a column; largest first with a leading −"),
            Text(name="down", label="Pivot: rows", hint="three columns make a table"),
            Text(name="across", label="Pivot: columns"),
            Text(name="value", label="Pivot: values"),
            Text(name="x", label="Plot: across", hint="two columns of numbers make a plot"),
            Text(name="y", label="Plot: up"),
            Number(name="page", label="Page of the table", default="1", low=1, high=10**6),
            Text(name="fact", label="Open fact", hint="its key, or click on one", longest=80),
        )
        self.downloads = {"csv": self.csv, "certificate": self.certificate}

    def show(self, state: State) -> Html:
        found = chosen(state)
        rows = [row for _, row in found]
        columns = columns_of(rows)
        parts: list[Node] = []
        if state["fact"]:
            parts.append(self._fact(state))
        if state["down"] or state["across"] or state["value"]:
            names = [_known(state[part], columns) for part in ("down", "across", "value")]
            head, body = pivot(rows, *names)
            parts.append(section(f"{names[2]} by {names[0]} and {names[1]}", table(head, body, id="pivot")))
        if state["x"] or state["y"]:
            points = points_of(found, _known(state["x"], columns), _known(state["y"], columns))
            drawn = (
                scatter(points, state["x"], state["y"]) if points else tag("p", "no fact has numbers in both columns")
            )
            parts.append(section(f"{state['y']} against {state['x']}", drawn, id="plot"))
        parts.append(self._table(state, found))
        parts.append(tag("p", "Columns: ", ", ".join(columns), class_="reason"))
        parts.append(tag("p", tag("a", "Take these facts as CSV", href=f"/atlas/download/csv?{state['query']}")))
        return join(parts)

    def _table(self, state: State, found: Selected) -> Html:
        first = PAGE * (state["page"] - 1)
        rows: list[list[Node]] = []
        for fact, _ in found[first : first + PAGE]:
            here = fact.task.key == state["fact"]
            button = tag(
                "button", fact.task.key[:8], type="button", data_set=urlencode({"fact": fact.task.key}),
                aria_pressed="true" if here else "false",
            )  # fmt: skip
            parameters = " ".join(f"{key}={value}" for key, value in fact.task.parameters.items())
            network = short_name(fact.task.architecture)
            answer = summarize_answer(fact)
            cells: list[Any] = [fact.task.question, network, parameters, answer]
            rows.append([button, *(str(cell)[:LONGEST] for cell in cells), _evidence(fact.result.evidence)])
        shown = f"{len(found):,} facts"
        if len(found) > PAGE:
            shown += f", {first + 1:,} to {min(first + PAGE, len(found)):,} on this page"
        heads = ("fact", "question", "architecture", "parameters", "answer", "evidence")
        return section("Facts", tag("p", shown, id="count"), table(heads, rows, id="facts"))

    def _fact(self, state: State) -> Html:
        for fact in facts_of(state["file"]):
            if fact.task.key == state["fact"]:
                link = f"/atlas/download/certificate?{state['query']}"
                taken = tag("p", tag("a", "Take its certificate", href=link)) if fact.result.certificate else None
                return join((show_fact(fact), taken))
        raise InputError(f"fact {state['fact'][:40]!r} given; this store has no such key")

    def csv(self, state: State) -> tuple[str, bytes]:
        """The chosen facts as comma separated values."""
        return "facts.csv", to_csv([row for _, row in chosen(state)]).encode()

    def certificate(self, state: State) -> tuple[str, bytes]:
        """The certificate of the open fact."""
        for fact in facts_of(state["file"]) if state["file"] else ():
            if fact.task.key == state["fact"] and fact.result.certificate is not None:
                return json_file("certificate.json", fact.result.certificate)
        raise InputError("no fact with a certificate is open; open one")

    def command(self, state: State) -> str:
        words = ["attngeom atlas show --store", quoted(state["file"], "atlas.db")]
        words += [f"--where {shlex.quote(part.strip())}" for part in state["where"].split(",") if part.strip()]
        words += [f"--sort={shlex.quote(state['sort'])}"] if state["sort"] else []
        return " ".join(words)

    def python(self, state: State) -> str:
        return (
            "from attngeom.atlas import FactStore; "
            f"print(*FactStore({named(state['file'], 'atlas.db')!r}, read_only=True).facts(), sep='\\n')"
        )


VIEW = AtlasView()
