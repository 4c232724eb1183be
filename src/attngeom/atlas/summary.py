"""What a store says, as Markdown tables: dimensions by kind of network, ideals by degree, completeness of families."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from attngeom.atlas.records import Fact
from attngeom.atlas.store import FactStore


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table.

    >>> print(markdown_table(["d", "a"], [[2, 1]]))
    | d | a |
    |---|---|
    | 2 | 1 |
    """
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join(lines)


def summarize_store(store: FactStore) -> str:
    """All tables for which the store has facts, with headings."""
    parts = [
        ("Dimensions by kind of network", dimension_table(store.facts("dimension"))),
        ("Dimension and the number of tokens", token_table(store.facts("dimension"))),
        ("Hilbert functions", hilbert_table(store.facts("ideal"))),
        ("Minimal generators by degree", generator_table(store.facts("ideal"))),
        ("Generators that known families of invariants explain", completeness_table(store.facts("completeness"))),
    ]
    return "\n\n".join(f"### {title}\n\n{table}" for title, table in parts if table)


def kind_name(fact: Fact) -> str:
    """The kind of network in words, without its sizes."""
    network = fact.task.architecture
    marks = [network["kind"], *(name for name in ("residual", "causal") if network[name])]
    return " ".join(marks + ([f"{network['heads']} heads"] if network["heads"] > 1 else []))


def dimension_table(facts: Iterable[Fact]) -> str:
    """How many architectures, how many proven, and whether the formulas that claim to apply are right."""
    groups: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        groups[kind_name(fact)].append(fact)
    rows = []
    for name in sorted(groups):
        found = groups[name]
        proven = [fact for fact in found if fact.result.evidence == "proven"]
        claims = [fact for fact in proven if (fact.result.answer["formula"] or {}).get("applies")]
        right = sum(fact.result.answer["formula"]["value"] == fact.result.answer["dimension"] for fact in claims)
        share = sum(fact.result.answer["dimension"] / fact.result.answer["num_parameters"] for fact in found)
        rows.append([name, f"{len(found):,}", f"{len(proven):,}", f"{right:,} of {len(claims):,}"])
        rows[-1].append(f"{share / len(found):.2f}")
    header = ["network", "architectures", "proven", "formula right where it applies", "mean dimension / parameters"]
    return markdown_table(header, rows) if rows else ""


def token_table(facts: Iterable[Fact]) -> str:
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
            rows.append([name, *(f"{sum(b > a for a, b in found):,} of {len(found):,}" for found in pairs)])
    return markdown_table(["network", *(f"grows from t = {t} to {t + 1}" for t in steps)], rows) if rows else ""


def _by_model(facts: Iterable[Fact]) -> dict[tuple[str, int, int, int, int], dict[int, Fact]]:
    models: dict[tuple[str, int, int, int, int], dict[int, Fact]] = defaultdict(dict)
    for fact in facts:
        (d, rows), (a,) = fact.task.architecture["widths"], fact.task.architecture["attention"]
        parameters = fact.task.parameters
        models[parameters["coordinates"], rows, d, parameters["targets"], a][parameters["degree"]] = fact
    return models


def _ideal_rows(facts: Iterable[Fact], key: str) -> Iterator[list[str]]:
    models = _by_model(facts)
    degrees = sorted({n for found in models.values() for n in found})
    yield ["t", "rows", "d", "targets", "a", *(f"n = {n}" for n in degrees)]
    for (coordinates, rows, d, targets, a), found in sorted(models.items()):
        # A star marks what is not proven.
        cells = [
            f"{found[n].result.answer[key]:,}{'' if found[n].result.evidence == 'proven' else '*'}"
            if n in found
            else ""
            for n in degrees
        ]
        yield ["1" if coordinates == "single" else "≥ 2", *map(str, (rows, d, targets, a)), *cells]


def hilbert_table(facts: Iterable[Fact]) -> str:
    """dim (R/I)_n for each model; a star marks values that hold with high probability only."""
    header, *rows = _ideal_rows(facts, "hilbert_function")
    return markdown_table(header, rows) if rows else ""


def generator_table(facts: Iterable[Fact]) -> str:
    """Numbers of minimal generators for each model; a star marks values that hold with high probability only."""
    header, *rows = _ideal_rows(facts, "minimal_generators")
    return markdown_table(header, rows) if rows else ""


def completeness_table(facts: Iterable[Fact]) -> str:
    """Minimal generators, those in modules that families of [I] reach, and those that any known family does."""
    rows: dict[tuple[int, ...], list[str]] = {}
    for fact in facts:
        answer, parameters = fact.result.answer, fact.task.parameters
        d, (a,) = fact.task.architecture["widths"][0], fact.task.architecture["attention"]
        found = [sum(answer[key].values()) for key in ("minimal_generators", "from_paper", "from_families")]
        rows[d, parameters["targets"], a, parameters["max_degree"]] = [f"{value:,}" for value in found]
    header = ["d", "targets", "a", "degrees up to", "minimal generators", "families of [I]", "all families"]
    return markdown_table(header, [[*sizes, *cells] for sizes, cells in sorted(rows.items())]) if rows else ""
