"""Facts as flat rows: filtered, sorted, and exported to CSV, Parquet and Markdown."""

from __future__ import annotations

import csv
import io
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attngeom.atlas.records import Fact, canonical_json, short_name
from attngeom.errors import InputError
from attngeom.files import write_atomic

Row = dict[str, Any]
OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
FORMATS = (".csv", ".parquet", ".md")


def flatten(fact: Fact) -> Row:
    """One row: the architecture, the parameters and the answer side by side; lists and objects as JSON text.

    >>> from attngeom.atlas.records import Answer, Task
    >>> row = flatten(Fact(Task("dimension", {"widths": [3, 2]}), Answer({"dimension": 13}, "proven"), 0.5))
    >>> row["widths"], row["dimension"], row["evidence"]
    ('[3,2]', 13, 'proven')
    """
    record = fact.to_json()
    nested = {**record.pop("architecture"), **record.pop("parameters"), **record.pop("answer")}
    row = {"question": record.pop("question"), **nested, **record}
    return {key: canonical_json(value) if isinstance(value, (list, dict)) else value for key, value in row.items()}


@dataclass(frozen=True)
class RowCondition:
    """``column operator value``, such as ``tokens>=2``; a row without the column does not meet it.

    >>> RowCondition.parse("tokens>=2").holds({"tokens": 3}), RowCondition.parse("kind=softmax").holds({"tokens": 3})
    (True, False)
    """

    column: str
    symbol: str
    value: str

    @classmethod
    def parse(cls, text: str) -> RowCondition:
        match = re.fullmatch(r"\s*([A-Za-z_]+)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*", text)
        if match is None:
            raise InputError(f"--where {text[:60]!r} given; write COLUMN=VALUE, also with != < <= > >=")
        return cls(*match.groups())

    def holds(self, row: Row) -> bool:
        if row.get(self.column) is None:
            return False
        ours, theirs = _comparable(row[self.column]), _comparable(self.value)
        if type(ours) is not type(theirs):
            ours, theirs = str(row[self.column]).lower(), self.value.lower()
        return OPERATORS[self.symbol](ours, theirs)


def _comparable(value: Any) -> float | str:
    if isinstance(value, bool):
        return str(value).lower()
    try:
        return float(value)
    except ValueError:
        return str(value).replace(" ", "").lower()


def select(
    facts: Iterable[Fact], conditions: Sequence[RowCondition] = (), sort: str | None = None
) -> list[tuple[Fact, Row]]:
    """The facts that meet all conditions, with their rows, sorted by a column (largest first with a leading ``-``)."""
    rows = ((fact, flatten(fact)) for fact in facts)
    chosen = [(fact, row) for fact, row in rows if all(condition.holds(row) for condition in conditions)]
    if sort is None:
        return chosen
    column, is_descending = sort.lstrip("-"), sort.startswith("-")
    if chosen and not any(column in row for _, row in chosen):
        raise InputError(f"--sort {column[:40]!r} given; no fact has that column; see `attngeom atlas export`")

    def rank(item: tuple[Fact, Row]) -> tuple[bool, Any]:
        key = _comparable(item[1][column])
        return (isinstance(key, str), key)

    present = [item for item in chosen if item[1].get(column) is not None]
    absent = [item for item in chosen if item[1].get(column) is None]
    return [*sorted(present, key=rank, reverse=is_descending), *absent]


def summarize_answer(fact: Fact) -> str:
    """The answer in one line.

    >>> from attngeom.atlas.records import Answer, Task
    >>> summarize_answer(Fact(Task("dimension", {}), Answer({"dimension": 13, "upper_bound": 13}, "proven"), 0.5))
    'dimension 13'
    """
    answer = fact.result.answer
    if fact.task.question in ("dimension", "network"):
        bounds = f" in {answer.get('lower_bound')}..{answer.get('upper_bound')}"
        return f"dimension {answer.get('dimension')}{'' if fact.result.evidence == 'proven' else bounds}"
    if fact.task.question == "ideal":
        names = ("hilbert_function", "ideal_dimension", "minimal_generators")
        values = [f"{answer.get(name):,}" for name in names]
        return f"HF {values[0]}, ideal {values[1]}, new generators {values[2]}"
    return ", ".join(f"{name.replace('_', ' ')} {canonical_json(value)}" for name, value in answer.items())


def columns_of(rows: Sequence[Row]) -> list[str]:
    """All columns, in the order in which they first occur."""
    return list(dict.fromkeys(key for row in rows for key in row))


def to_csv(rows: Sequence[Row]) -> str:
    """Comma separated values with a header; missing values are empty."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns_of(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown.

    >>> print(markdown_table(["d", "a"], [[2, 1]]))
    | d | a |
    |---|---|
    | 2 | 1 |
    """
    texts = [[str(cell).replace("|", "\\|") for cell in row] for row in (columns, *rows)]
    head, *body = ("| " + " | ".join(row) + " |" for row in texts)
    return "\n".join([head, "|" + "---|" * len(columns), *body])


def to_markdown(facts: Iterable[Fact]) -> str:
    """One readable table for each question."""
    tables: dict[str, list[tuple[str, ...]]] = {}
    for fact in facts:
        network, task = short_name(fact.task.architecture), fact.task
        parameters = ", ".join(f"{key} {value}" for key, value in task.parameters.items())
        tables.setdefault(task.question, []).append((network, parameters, summarize_answer(fact), fact.result.evidence))
    columns = ("architecture", "parameters", "answer", "evidence")
    parts = [
        f"## {question} ({len(rows):,} facts)\n\n{markdown_table(columns, rows)}\n" for question, rows in tables.items()
    ]
    return "\n".join(parts) + "\n"


def to_parquet(rows: Sequence[Row]) -> bytes:
    """An Apache Parquet file; columns of one type keep it, mixed ones become text."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError("Parquet asked for; pyarrow is not installed; run pip install 'attngeom[parquet]'") from None
    arrays = {}
    for column in columns_of(rows):
        values = [row.get(column) for row in rows]
        kinds = {type(value) for value in values if value is not None}
        # Values beyond 64 bits, such as large Hilbert functions, have no integer type there.
        is_wide = any(type(value) is int and abs(value) >= 2**63 for value in values)
        if len(kinds) > 1 or is_wide:
            values = [None if value is None else str(value) for value in values]
        arrays[column] = pyarrow.array(values)
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(arrays), sink)
    return bytes(sink.getvalue())


def export(selected: Sequence[tuple[Fact, Row]], path: Path) -> None:
    """Write facts in the format that the suffix names, all or nothing."""
    rows = [row for _, row in selected]
    makers: Mapping[str, Callable[[], str | bytes]] = {
        ".csv": lambda: to_csv(rows),
        ".parquet": lambda: to_parquet(rows),
        ".md": lambda: to_markdown(fact for fact, _ in selected),
    }
    write_atomic(path, makers[check_format(path).suffix]())


def check_format(path: Path) -> Path:
    """The path, if its suffix names a format."""
    if path.suffix not in FORMATS:
        raise InputError(f"--out {path} given; a name that ends in {', '.join(FORMATS)} is required")
    return path
