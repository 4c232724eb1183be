"""Reports of recomputed claims: one self-contained HTML page, and the same as Markdown."""

from __future__ import annotations

import base64
import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import attngeom
from attngeom.exact.primes import BIG_PRIME, BLAS_PRIME, WORD_PRIME
from attngeom.files import to_json, write_atomic
from attngeom.papers import PAPERS, Record, count_outcomes
from attngeom.papers.records import Paper

LIBRARIES = ("numpy", "scipy", "python-flint", "sympy", "matplotlib", "plotly")
MARKS = {
    "proven": "✓",
    "proven at the stated sizes": "✓",
    "supported": "≈",
    "answered": "!",
    "false as printed": "✗",
    "failed": "?",
    "not run": "–",
}
PAPER_KEYS: tuple[Paper, ...] = ("G", "I")
STYLE = """
body{font:16px/1.5 system-ui,sans-serif;color:#222;max-width:64rem;margin:2rem auto;padding:0 1rem}
h1,h2,h3{line-height:1.2}h3{margin-top:2rem;border-top:1px solid #ddd;padding-top:1rem}
table{border-collapse:collapse;width:100%;margin:1rem 0}
th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #ddd;vertical-align:top}
th{background:#f4f4f4}td.n{text-align:right;white-space:nowrap}
figure{margin:2rem 0}figure img{max-width:100%;height:auto}
figcaption{color:#444}code{background:#f4f4f4;padding:0 .2em}ul{padding-left:1.2rem}li{margin:.15rem 0}
.o{white-space:nowrap;font-weight:600}.fails{color:#7a1f00}
.box{border-left:4px solid #888;padding:.2rem .8rem;background:#fafafa}
"""


@dataclass(frozen=True)
class Figure:
    """A drawn figure: the PNG as bytes, names of the files beside the report, and a note if something is missing."""

    id: str
    title: str
    caption: str
    png: bytes
    files: tuple[str, ...]
    note: str | None = None


@dataclass(frozen=True)
class Report:
    """Everything a report shows: finished claims, figures, and what they rest on."""

    records: Sequence[Record]
    figures: Sequence[Figure] = ()
    quick: bool = False
    seed: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def unexpected(self) -> list[Record]:
        """Claims whose computed outcome differs from the recorded one."""
        return [record for record in self.records if not record.as_expected]


def library_versions() -> dict[str, str]:
    """Versions of attngeom, Python and the libraries that the numbers rest on."""
    found = {"attngeom": attngeom.__version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def write_report(report: Report, folder: str | Path) -> tuple[Path, Path]:
    """Write report.html and report.md, each all or nothing, and return their paths."""
    page, text = Path(folder) / "report.html", Path(folder) / "report.md"
    write_atomic(page, to_html(report))
    write_atomic(text, to_markdown(report))
    return page, text


def summary_rows(report: Report) -> list[tuple[str, dict[str, int]]]:
    """(paper, outcomes) for each paper and for both together."""
    rows = [(f"[{key}]", count_outcomes(r for r in report.records if r.paper == key)) for key in PAPER_KEYS]
    return [*rows, ("both", count_outcomes(report.records))]


def _details(record: Record) -> list[tuple[str, str]]:
    """Labelled facts of one claim, in the order in which they are shown."""
    facts = [("proof", record.proof)] if record.proof else []
    facts.append(("evidence", f"{record.kind}: {record.evidence}"))
    is_false = record.outcome == "false as printed"
    if record.correction:
        facts.append(("correction" if is_false else "remark", record.correction))
    if record.counterexample and (is_false or record.outcome == "failed"):
        facts.append(("smallest example", record.counterexample))
    if record.error_bound:
        facts.append(("error probability", f"at most {record.error_bound:.1e}"))
    if record.primes:
        facts.append(("primes", ", ".join(map(str, record.primes))))
    if not record.as_expected:
        facts.append(("expected", record.expected))
    return facts


def _values(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Numbers as short texts: nested tables line by line."""
    found = []
    for key, value in values.items():
        if isinstance(value, Mapping) and len(value) > 4:
            found += [(f"{key}: {name}", _text(entry)) for name, entry in value.items()]
        else:
            found.append((key, _text(value)))
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else to_json(value).replace('"', "")


def _intro(report: Report) -> str:
    size = "quick sizes" if report.quick else "full sizes"
    total = sum(record.seconds for record in report.records)
    return (
        f"{len(report.records)} claims of two papers, recomputed with attngeom at {size} (seed {report.seed}) in"
        f" {total:.0f} seconds. {len(report.unexpected)} outcomes differ from the recorded ones."
    )


def to_html(report: Report) -> str:
    """The report as one HTML page without external parts."""
    parts = [
        "<!doctype html><html lang=en><head><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width,initial-scale=1'>",
        f"<title>Claims recomputed</title><style>{STYLE}</style></head><body>",
        f"<h1>Claims recomputed</h1><p>{escape(_intro(report))}</p><ul>",
        *(f"<li><b>[{key}]</b> {escape(title)}</li>" for key, title in PAPERS.items()),
        "</ul>",
        _summary_html(report),
        "<h2>Claims</h2><table><tr><th>claim<th>outcome<th>evidence<th>seconds</tr>",
    ]
    for record in report.records:
        place = escape(f"[{record.paper}] {record.place}")
        outcome = escape(f"{MARKS[record.outcome]} {record.label}")
        parts.append(
            f"<tr><td><a href='#{escape(record.id)}'>{place}</a><td class=o>{outcome}<td>{escape(record.kind)}"
            f"<td class=n>{record.seconds:.2f}</tr>"
        )
    parts.append("</table><h2>Figures</h2>")
    parts += [_figure_html(figure) for figure in report.figures]
    parts.append("<h2>Details</h2>")
    parts += [_record_html(record) for record in report.records]
    parts.append("<h2>Versions, primes, seed</h2><table>")
    parts += [f"<tr><td>{escape(name)}<td>{escape(text)}</tr>" for name, text in _provenance(report)]
    parts.append("</table></body></html>\n")
    return "\n".join(parts)


def _summary_html(report: Report) -> str:
    rows = summary_rows(report)
    head = "".join(f"<th>{escape(f'{MARKS[name]} {name}')}" for name in rows[0][1])
    body = "".join(
        f"<tr><th>{escape(label)}" + "".join(f"<td class=n>{count}" for count in counts.values()) + "</tr>"
        for label, counts in rows
    )
    return f"<table><tr><th>paper{head}</tr>{body}</table>"


def _figure_html(figure: Figure) -> str:
    image = base64.b64encode(figure.png).decode()
    links = ", ".join(f"<a href='{escape(name)}'>{escape(Path(name).suffix[1:])}</a>" for name in figure.files)
    note = f" {escape(figure.note)}" if figure.note else ""
    return (
        f"<figure id='figure-{escape(figure.id)}'>"
        f"<img alt='{escape(figure.title)}' src='data:image/png;base64,{image}'>"
        f"<figcaption><b>{escape(figure.title)}.</b> {escape(figure.caption)}{note} ({links})</figcaption></figure>"
    )


def _record_html(record: Record) -> str:
    facts = "".join(f"<li><b>{escape(name)}:</b> {escape(text)}</li>" for name, text in _details(record))
    checks = "".join(
        f"<li{'' if check.holds else ' class=fails'}>{'✓' if check.holds else '✗'} {escape(_label(check.part))}"
        f"{escape(check.statement)}</li>"
        for check in record.checks
    )
    values = "".join(f"<li>{escape(name)}: <code>{escape(text)}</code></li>" for name, text in _values(record.values))
    tables = f"<details><summary>numbers</summary><ul>{values}</ul></details>" if values else ""
    return (
        f"<h3 id='{escape(record.id)}'>[{escape(record.paper)}] {escape(record.place)}: {escape(record.label)}</h3>"
        f"<p class=box>{escape(record.statement)}</p><ul>{facts}</ul>"
        f"<details open><summary>{len(record.checks)} checks, {record.seconds:.2f} s</summary>"
        f"<ul>{checks}</ul></details>"
        f"{tables}"
    )


def _label(part: str) -> str:
    return "" if part == "claim" else f"({part}) "


def _provenance(report: Report) -> list[tuple[str, str]]:
    primes = sorted(
        {prime for record in report.records for prime in record.primes} | {BLAS_PRIME, WORD_PRIME, BIG_PRIME}
    )
    return [
        *((report.versions or library_versions()).items()),
        ("seed", str(report.seed)),
        ("size", "quick" if report.quick else "full"),
        ("primes", ", ".join(map(str, primes))),
    ]


def to_markdown(report: Report) -> str:
    """The report as Markdown; figures are linked as files beside it."""
    lines = ["# Claims recomputed", "", _intro(report), ""]
    lines += [f"- **[{key}]** {title}" for key, title in PAPERS.items()]
    rows = summary_rows(report)
    lines += ["", "| paper | " + " | ".join(rows[0][1]) + " |", "|---" * (len(rows[0][1]) + 1) + "|"]
    lines += [f"| {label} | " + " | ".join(map(str, counts.values())) + " |" for label, counts in rows]
    lines += ["", "## Claims", "", "| claim | outcome | evidence | seconds |", "|---|---|---|---|"]
    for record in report.records:
        outcome = f"{MARKS[record.outcome]} {record.label}"
        lines.append(f"| [{record.paper}] {record.place} | {outcome} | {record.kind} | {record.seconds:.2f} |")
    lines += ["", "## Figures", ""]
    for figure in report.figures:
        name = next(name for name in figure.files if name.endswith(".png"))
        note = f" {figure.note}" if figure.note else ""
        lines += [f"![{figure.title}]({name})", "", f"**{figure.title}.** {figure.caption}{note}", ""]
    lines += ["## Details", ""]
    for record in report.records:
        lines += [f"### [{record.paper}] {record.place}: {record.label}", "", f"> {record.statement}", ""]
        lines += [f"- {name}: {text}" for name, text in _details(record)]
        lines += [f"- {'✓' if c.holds else '✗'} {_label(c.part)}{c.statement}" for c in record.checks]
        lines += [f"- {name}: `{text}`" for name, text in _values(record.values)]
        lines.append("")
    lines += ["## Versions, primes, seed", ""]
    lines += [f"- {name}: {text}" for name, text in _provenance(report)]
    return "\n".join(lines) + "\n"
