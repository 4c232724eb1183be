"""Atlas: browse a store of facts; filter, sort, pivot, plot, open one fact with its evidence."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attngeom.atlas import Fact, FactStore, parse_sweep
from attngeom.atlas.questions import get_question
from attngeom.atlas.records import short_name
from attngeom.atlas.tables import Row, RowCondition, columns_of, select, summarize_answer, to_csv
from attngeom.errors import InputError, SizeError
from attngeom.explore.controls import Control, State
from attngeom.explore.pages import plain
from attngeom.explore.shelf import ShelfItem, named, quoted
from attngeom.explore.view import Download, Facts, json_file
from attngeom.limits.memory import PAGE_FACTS
from attngeom.limits.shown import CELL_CHARACTERS, PAGE_ROWS, PIVOT_SIDE, PLOT_POINTS
from attngeom.results import STANDINGS
from attngeom.verification import verify

Selected = list[tuple[Fact, Row]]
EXAMPLE = """
[[dimension]]
layers = [1, 2]
widths = [2, 3]
attention = 2
tokens = 2
kinds = ["lightning", "softmax"]
"""
"""The sweep of the example store: networks of one and two layers."""


@lru_cache(maxsize=4)
def facts_of(file: ShelfItem | None) -> tuple[Fact, ...]:
    """The facts of the chosen store; of the example, computed on the spot, if none is."""
    if file is None:
        tasks = parse_sweep(EXAMPLE).tasks()
        return tuple(Fact(task, get_question(task.question).run(task), 0.0) for task in tasks)
    with FactStore(file.path, read_only=True) as store:
        if store.count() > PAGE_FACTS:
            raise SizeError(f"{store.count():,} facts; the page reads {PAGE_FACTS:,}: use attngeom atlas show --where")
        return tuple(store.facts())


def chosen(state: State) -> Selected:
    """The facts that meet the conditions, sorted."""
    conditions = [RowCondition.parse(part) for part in state["where"].split(",") if part.strip()]
    return select(facts_of(state["file"]), conditions, state["sort"] or None)


def _known(column: str, columns: Sequence[str]) -> str:
    if column not in columns:
        raise InputError(f"column {column[:40]!r} given; there are {', '.join(columns)}"[:200])
    return column


def pivot(rows: Sequence[Row], down: str, across: str, value: str) -> tuple[list[str], list[list[str]]]:
    """The values of one column by two others; several different ones are listed together.

    >>> pivot([{"a": 1, "b": 2, "c": 5}, {"a": 1, "b": 2, "c": 6}], "a", "b", "c")
    (['c by a \\\\ b', '2'], [['1', '5, 6']])
    """
    cells: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        place = (str(row.get(down, "–")), str(row.get(across, "–")))
        text = str(row.get(value, "–"))[:40]
        if text not in cells.setdefault(place, []):
            cells[place].append(text)
    lines, columns = (sorted({place[k] for place in cells}, key=lambda text: (len(text), text)) for k in (0, 1))
    if max(len(lines), len(columns)) > PIVOT_SIDE:
        raise SizeError(f"a table of {len(lines):,} × {len(columns):,} asked for; at most {PIVOT_SIDE}: filter more")
    body = [[line, *(", ".join(cells.get((line, column), [])) for column in columns)] for line in lines]
    return [f"{value} by {down} \\ {across}", *columns], body


def points_of(facts: Selected, x: str, y: str) -> list[tuple[float, float, str, str]]:
    """Facts with numbers in both columns, by evidence."""
    points = []
    for fact, row in facts:
        if all(isinstance(row.get(name), (int, float)) and not isinstance(row.get(name), bool) for name in (x, y)):
            words = f"{short_name(fact.task.architecture)}: {_answer(fact)}"
            points.append((float(row[x]), float(row[y]), fact.result.evidence[:60], words[:CELL_CHARACTERS]))
    if len(points) > PLOT_POINTS:
        raise SizeError(f"{len(points):,} points asked for; at most {PLOT_POINTS:,} are drawn: filter more")
    return points


def held_by(fact: Fact) -> dict[str, Any]:
    """Everything that the store holds of a fact, and what becomes of its certificate."""
    record = fact.to_json()
    certificate = record.pop("certificate")
    held = {key.replace("_", " "): plain(value)[: 4 * CELL_CHARACTERS] for key, value in record.items()}
    if certificate is None:
        return {**held, "certificate": "none is stored"}
    verdict = verify(certificate)
    words = {True: "it proves its claim", False: "it proves nothing", None: "its recheck is beyond the budget"}
    return {**held, "certificate": f"rechecked: {words[verdict.valid]} ({verdict.reason[:CELL_CHARACTERS]})"}


def _answer(fact: Fact) -> str:
    short = fact.task.question in ("dimension", "ideal", "network")
    return (summarize_answer(fact) if short else plain(fact.result.answer))[:CELL_CHARACTERS]


def opened(state: State) -> Fact | None:
    """The fact whose key is given."""
    fact_opened = next((fact for fact in facts_of(state["file"]) if fact.task.key == state["fact"]), None)
    if fact_opened is None and state["fact"]:
        raise InputError(f"fact {state['fact'][:40]!r} given; this store has no such key")
    return fact_opened


def show(state: State) -> Facts:
    """A table of facts, a pivot, a plot, one fact."""
    facts = chosen(state)
    rows = [row for _, row in facts]
    columns = columns_of(rows)
    fact, first = opened(state), PAGE_ROWS * (state["page"] - 1)
    by, axes = (
        [_known(state[part], columns) for part in parts] if any(state[part] for part in parts) else []
        for parts in (("down", "across", "value"), ("x", "y"))
    )
    if state["file"] is None and not axes:
        axes = ["num_parameters", "dimension"]
    page = [
        (each, short_name(each.task.architecture), plain(each.task.parameters)[:CELL_CHARACTERS], _answer(each))
        for each, _ in facts[first : first + PAGE_ROWS]
    ]
    return {
        "is_example": state["file"] is None,
        "fact": fact,
        "held": {} if fact is None else held_by(fact),
        "pivot": pivot(rows, *by) if by else None,
        "axes": axes,
        "points": points_of(facts, *axes) if axes else [],
        "page": page,
        "total": len(facts),
        "first": first,
        "columns": columns,
        "STANDINGS": STANDINGS,
    }


def csv(state: State) -> Download:
    """The chosen facts as comma separated values."""
    return "facts.csv", to_csv([row for _, row in chosen(state)]).encode()


def certificate(state: State) -> Download:
    """The certificate of the open fact."""
    if (fact := opened(state)) is None or fact.result.certificate is None:
        raise InputError("no fact with a certificate is open; open one")
    return json_file("certificate.json", fact.result.certificate)


def example(state: State) -> Download:
    """The example store as a file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "example.db"
        with FactStore(path) as store:
            store.add(facts_of(None))
        return path.name, path.read_bytes()


def command(state: State) -> str:
    words = ["attngeom atlas show --store", quoted(state["file"], "example.db")]
    words += [f"--where {shlex.quote(part.strip())}" for part in state["where"].split(",") if part.strip()]
    words += [f"--sort={shlex.quote(state['sort'])}"] if state["sort"] else []
    return " ".join(words)


def python(state: State) -> str:
    store = f"FactStore({named(state['file'], 'example.db')!r}, read_only=True)"
    return f"from attngeom.atlas import FactStore; print(*{store}.facts(), sep='\\n')"


CONTROLS = (
    Control("file", "Store", "file", kinds=("store",), none="an example"),
    Control("where", "Where", hint="conditions such as kind=softmax, tokens>=2", longest=400),
    Control("sort", "Sort by", hint="a column; largest first with a leading −"),
    Control("down", "Pivot: rows", hint="three columns make a table"),
    Control("across", "Pivot: columns"),
    Control("value", "Pivot: values"),
    Control("x", "Plot: across", hint="two columns of numbers make a plot"),
    Control("y", "Plot: up"),
    Control("page", "Page of the table", "number", "1", low=1, high=10**6),
    Control("fact", "Open fact", hint="its key, or click on one", longest=80),
)
DOWNLOADS = {"csv": csv, "certificate": certificate, "example": example}
