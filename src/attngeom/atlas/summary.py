"""What a store says, as tables: dimensions by kind of network, ideals by degree, completeness of families."""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from attngeom.atlas.records import Fact, short_name
from attngeom.atlas.store import FactStore
from attngeom.atlas.tables import markdown_table
from attngeom.limits.shown import TABLE_BARS, TABLE_ROWS_DRAWN
from attngeom.network.architecture import FLAGS
from attngeom.results import CELL

Table = tuple[Sequence[str], Sequence[Sequence[object]]]
"""The columns and the rows of a table."""

if TYPE_CHECKING:
    from attngeom.drawing import Picture


@dataclass(frozen=True)
class SummaryTable:
    """A table of texts with its title; a star behind a number marks what is not proven.

    ``labels``: how many columns at the left name a row.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    labels: int = 1

    def __repr__(self) -> str:
        return self.to_markdown()

    def _repr_html_(self) -> str:
        lines = [("th", self.columns), *(("td", row) for row in self.rows)]
        body = "".join(
            "<tr>" + "".join(f"<{tag} style='{CELL}'>{html.escape(str(x))}</{tag}>" for x in line) + "</tr>"
            for tag, line in lines
        )
        return f"<b>{html.escape(self.title)}</b><table style='border-collapse:collapse'>{body}</table>"

    def to_markdown(self) -> str:
        """The table in Markdown, under its title."""
        return f"### {self.title}\n\n{markdown_table(self.columns, self.rows)}"

    def to_json(self) -> dict[str, Any]:
        """Columns and rows; integers are numbers, empty cells null.

        >>> SummaryTable("sizes", ["d", "count"], [["2", "1,024"], ["≥ 3", ""]]).to_json()["rows"]
        [[2, 1024], ['≥ 3', None]]
        """
        return {"title": self.title, "columns": [*self.columns], "rows": [[_cell(x) for x in row] for row in self.rows]}

    def plot(self) -> Picture:
        """The columns of numbers as bars, one group for each row, named by what tells it from the others."""
        from attngeom.drawing import draw_stacks

        drawn = list(zip(*self.rows[:TABLE_ROWS_DRAWN]))
        words = [k for k in range(self.labels) if len(set(drawn[k])) > 1] or [0]
        common = [f"{self.columns[k]} {drawn[k][0]}" for k in range(self.labels) if k not in words]
        names = [", ".join(map(str, parts)) for parts in zip(*(drawn[k] for k in words))]
        columns = ([_cell(x) for x in column] for column in drawn[self.labels :])
        stacks = {
            title: {name: cell for name, cell in zip(names, column) if isinstance(cell, int)}
            for title, column in zip(self.columns[self.labels :], columns)
            if any(isinstance(cell, int) for cell in column)
        }
        label = ", ".join(self.columns[k] for k in words) + (f" ({', '.join(common)})" if common else "")
        return draw_stacks(self.title, label, dict(islice(stacks.items(), TABLE_BARS)), scale="log")


def _cell(value: object) -> object:
    digits = str(value).replace(",", "")
    return int(digits) if digits.isdecimal() else str(value) or None


def summary_tables(store: FactStore) -> list[SummaryTable]:
    """All tables for which the store has facts."""
    tables = (
        ("Dimensions by kind of network", dimension_rows(store.facts("dimension")), 1),
        ("Dimension and the number of tokens", token_rows(store.facts("dimension")), 1),
        ("Hilbert functions", ideal_rows(store.facts("ideal"), "hilbert_function"), 5),
        ("Minimal generators by degree", ideal_rows(store.facts("ideal"), "minimal_generators"), 5),
        ("Generators that known families of invariants explain", completeness_rows(store.facts("completeness")), 4),
        ("Networks as they are written", network_rows(store.facts("network")), 1),
    )
    return [SummaryTable(title, columns, rows, labels) for title, (columns, rows), labels in tables if rows]


def network_rows(facts: Iterable[Fact]) -> Table:
    """Each network of the gallery with its weights, the dimension of its functions, and the fiber by symmetry."""
    rows = []
    for fact in facts:
        answer = fact.result.answer
        parts = [f"{count} {name}" for name, count in answer["fiber"].items()]
        parts += [f"{answer['unexplained']} by no symmetry"] if answer["unexplained"] else []
        sizes = [f"{answer[name]:,}" for name in ("num_parameters", "dimension")]
        rows.append([short_name(fact.task.architecture), *sizes, fact.result.evidence, "; ".join(parts) or "none"])
    return ["network", "weights", "dimension", "evidence", "fiber"], rows


def kind_name(fact: Fact) -> str:
    """The kind of network in words, without its sizes."""
    network = fact.task.architecture
    marks = [network["kind"], *(name for name in FLAGS if network[name])]
    return " ".join(marks + ([f"{network['heads']} heads"] if network["heads"] > 1 else []))


def dimension_rows(facts: Iterable[Fact]) -> Table:
    """How many architectures, how many proven, and whether the formulas that claim to apply are right."""
    groups: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        groups[kind_name(fact)].append(fact)
    rows = []
    for name in sorted(groups):
        group = groups[name]
        proven = [fact for fact in group if fact.result.evidence == "proven"]
        claims = [fact for fact in proven if (fact.result.answer["formula"] or {}).get("applies")]
        right = sum(fact.result.answer["formula"]["value"] == fact.result.answer["dimension"] for fact in claims)
        share = sum(fact.result.answer["dimension"] / fact.result.answer["num_parameters"] for fact in group)
        rows.append([name, f"{len(group):,}", f"{len(proven):,}", f"{right:,} of {len(claims):,}"])
        rows[-1].append(f"{share / len(group):.2f}")
    header = ["network", "architectures", "proven", "formula right where it applies", "mean dimension / parameters"]
    return header, rows


def token_rows(facts: Iterable[Fact]) -> Table:
    """For each kind: in how many architectures the dimension grows with one more token."""
    series: dict[str, dict[str, dict[int, int]]] = defaultdict(lambda: defaultdict(dict))
    for fact in facts:
        network = dict(fact.task.architecture)
        tokens = network.pop("tokens")
        series[kind_name(fact)][str(sorted(network.items()))][tokens] = fact.result.answer["dimension"]
    steps = sorted({t for shapes in series.values() for values in shapes.values() for t in values if t + 1 in values})
    rows = []
    for name in sorted(series):
        pairs = [[(v[t], v[t + 1]) for v in series[name].values() if t in v and t + 1 in v] for t in steps]
        if any(pairs):
            rows.append([name, *(f"{sum(b > a for a, b in column):,} of {len(column):,}" for column in pairs)])
    return ["network", *(f"grows from t = {t} to {t + 1}" for t in steps)], rows


def _by_model(facts: Iterable[Fact]) -> dict[tuple[str, int, int, int, int], dict[int, Fact]]:
    models: dict[tuple[str, int, int, int, int], dict[int, Fact]] = defaultdict(dict)
    for fact in facts:
        (d, rows), (a,) = fact.task.architecture["widths"], fact.task.architecture["attention"]
        parameters = fact.task.parameters
        models[parameters["coordinates"], rows, d, parameters["targets"], a][parameters["degree"]] = fact
    return models


def ideal_rows(facts: Iterable[Fact], key: str) -> Table:
    """One number for each model and degree; a star marks values that hold with high probability only."""
    models = _by_model(facts)
    degrees = sorted({n for degrees_of_model in models.values() for n in degrees_of_model})
    table = []
    for (coordinates, rows, d, targets, a), degrees_of_model in sorted(models.items()):
        cells = [_starred(degrees_of_model[n], key) if n in degrees_of_model else "" for n in degrees]
        table.append(["1" if coordinates == "single" else "≥ 2", *map(str, (rows, d, targets, a)), *cells])
    return ["t", "rows", "d", "targets", "a", *(f"n = {n}" for n in degrees)], table


def _starred(fact: Fact, key: str) -> str:
    return f"{fact.result.answer[key]:,}{'' if fact.result.evidence == 'proven' else '*'}"


def completeness_rows(facts: Iterable[Fact]) -> Table:
    """Minimal generators, those in modules that families of [I] reach, and those that any known family does."""
    rows: dict[tuple[int, ...], list[str]] = {}
    for fact in facts:
        answer, parameters = fact.result.answer, fact.task.parameters
        d, (a,) = fact.task.architecture["widths"][0], fact.task.architecture["attention"]
        counts = [sum(answer[key].values()) for key in ("minimal_generators", "from_paper", "from_families")]
        rows[d, parameters["targets"], a, parameters["max_degree"]] = [f"{value:,}" for value in counts]
    header = ["d", "targets", "a", "degrees up to", "minimal generators", "families of [I]", "all families"]
    return header, [[*sizes, *cells] for sizes, cells in sorted(rows.items())]
