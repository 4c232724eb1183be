"""Reports of recomputed claims: what they show, and the Markdown; the page is :mod:`attngeom.papers.page`."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from attngeom.exact.numbers import BIG_PRIME, BLAS_PRIME, WORD_PRIME
from attngeom.files import to_json, write_atomic
from attngeom.papers import PAPERS, Check, Record, count_outcomes
from attngeom.papers.records import FLAWS
from attngeom.version import __version__, library_versions

LIBRARIES = ("numpy", "scipy", "python-flint", "sympy", "matplotlib", "plotly")
PAGES = re.compile(r"\bdocs/([a-z0-9/-]+)\.md")
"""A page of the documentation, as texts name it."""
MARKS = {
    "proven": "✓",
    "confirmed in all degrees": "✓",
    "proven in part": "✓",
    "proven at the stated sizes": "✓",
    "supported": "≈",
    "answered": "!",
    "error": "✗",
    "expectation refuted": "✗",
    "misprint": "✎",
    "failed": "?",
}


@dataclass(frozen=True)
class Figure:
    """A drawn figure: caption and details, the PNG as bytes, names of the files beside the report, a note if something
    is missing, its width on a page."""

    id: str
    title: str
    caption: str
    details: str
    png: bytes
    files: tuple[str, ...]
    note: str | None = None
    width: int | None = None


@dataclass(frozen=True)
class Report:
    """Everything a report shows: finished claims, figures, and what they rest on."""

    records: Sequence[Record]
    figures: Sequence[Figure] = ()
    quick: bool = False
    seed: int = 0
    wall_seconds: float | None = None

    @property
    def unexpected(self) -> list[Record]:
        """Claims whose computed outcome differs from the recorded one."""
        return [record for record in self.records if not record.as_expected]


def versions() -> dict[str, str]:
    """Versions of attngeom, Python and the libraries that the numbers rest on."""
    libraries = {name: version or "not installed" for name, version in library_versions(LIBRARIES).items()}
    return {"attngeom": __version__, "python": platform.python_version(), **libraries}


def write_report(report: Report, folder: str | Path) -> tuple[Path, Path]:
    """Write report.html and report.md, each all or nothing, and return their paths."""
    from attngeom.papers.page import to_html

    page, text = Path(folder) / "report.html", Path(folder) / "report.md"
    link = find_pages(Path(folder))
    write_atomic(page, PAGES.sub(lambda found: f"<a href='{link(found)}'>{found[0]}</a>", to_html(report)))
    write_atomic(text, PAGES.sub(lambda found: f"[{found[0]}]({link(found)})", to_markdown(report)))
    return page, text


def find_pages(folder: Path) -> Callable[[re.Match[str]], str]:
    """Where a page of the documentation is from a folder: on the built site, else as its text, of the working copy.

    A package that was installed has no pages beside it: their addresses are those of the repository's files.
    """
    root = Path(__file__).parents[3]
    site = root / "build" / "site"

    def link(match: re.Match[str]) -> str:
        built, text = site / f"{match[1]}.html", root / match[0]
        target = next((path for path in (built, text) if path.is_file()), None)
        return match[0] if target is None else quote(Path(os.path.relpath(target, folder)).as_posix())

    return link


def summary_rows(report: Report) -> list[tuple[str, dict[str, int]]]:
    """(paper, outcomes) for each paper and for both together."""
    rows = [(f"[{key}]", count_outcomes(r for r in report.records if r.paper == key)) for key in PAPERS]
    return [*rows, ("both", count_outcomes(report.records))]


def record_facts(record: Record) -> list[tuple[str, str]]:
    """Labelled facts of one claim, in the order in which they are shown."""
    facts = [("proof", record.proof)] if record.proof else []
    facts.append(("examples" if record.proof else "evidence", f"{record.kind}: {record.evidence}"))
    is_flawed = record.outcome in FLAWS
    if record.correction:
        facts.append(("correction" if is_flawed else "remark", record.correction))
    if record.counterexample and (is_flawed or record.outcome == "failed"):
        facts.append(("smallest example", record.counterexample))
    if record.error_bound:
        facts.append(("error probability", f"at most {record.error_bound:.1e}"))
    if record.primes:
        facts.append(("primes", ", ".join(map(str, record.primes))))
    if not record.as_expected:
        facts.append(("expected", record.expected))
    return facts


def record_values(record: Record) -> list[tuple[str, Any]]:
    """The numbers of one claim: nested tables line by line."""
    values: list[tuple[str, Any]] = []
    for key, value in record.values.items():
        if isinstance(value, Mapping) and len(value) > 4:
            values += [(f"{key}: {name}", entry) for name, entry in value.items()]
        else:
            values.append((key, value))
    return values


def as_text(value: Any) -> str:
    """A number of a claim as short text."""
    return value if isinstance(value, str) else to_json(value).replace('"', "")


def intro(report: Report) -> str:
    """How many claims, at which size, how many differ, how long the run took, and its claims one after the other."""
    size = "quick sizes" if report.quick else "full sizes"
    total = sum(record.seconds for record in report.records)
    wall = "" if report.wall_seconds is None else f"this run took {report.wall_seconds:.0f} seconds; "
    others = len(report.unexpected)
    agreed = f"{others} outcome{'s differ' if others > 1 else ' differs'} from the recorded ones"
    return (
        f"{len(report.records)} claims of two papers, recomputed with attngeom at {size} (seed {report.seed})."
        f" {agreed if others else 'Every outcome is the recorded one'}. Wall time: {wall}the times of all claims, which"
        f" may run side by side or stem from an earlier run, add up to {total:.0f} seconds."
    )


def check_text(check: Check) -> str:
    """A check in one line: whether it holds, its part unless it is the claim itself, and its statement."""
    part = "" if check.part == "claim" else f"({check.part}) "
    return f"{'✓' if check.holds else '✗'} {part}{check.statement}"


def provenance(report: Report) -> list[tuple[str, str]]:
    """What the numbers rest on: versions, seed, size, primes."""
    primes = {BLAS_PRIME, WORD_PRIME, BIG_PRIME}.union(*(record.primes for record in report.records))
    return [
        *versions().items(),
        ("seed", str(report.seed)),
        ("size", "quick" if report.quick else "full"),
        ("primes", ", ".join(map(str, sorted(primes)))),
    ]


def to_markdown(report: Report) -> str:
    """The report as Markdown; figures are linked as files beside it."""
    lines = ["# Claims recomputed", "", intro(report), ""]
    lines += [f"- **[{key}]** {title}" for key, title in PAPERS.items()]
    rows = summary_rows(report)
    lines += ["", "| paper | " + " | ".join(rows[0][1]) + " |", "|---" * (len(rows[0][1]) + 1) + "|"]
    lines += [f"| {label} | " + " | ".join(map(str, counts.values())) + " |" for label, counts in rows]
    lines += ["", "## Claims", "", "| claim | outcome | evidence | seconds |", "|---|---|---|---|"]
    for record in report.records:
        outcome = f"{MARKS[record.outcome]} {record.label}"
        lines.append(f"| [{record.paper}] {record.place} | {outcome} | {record.basis} | {record.seconds:.2f} |")
    lines += ["", "## Figures", ""]
    for figure in report.figures:
        name = next(name for name in figure.files if name.endswith(".png"))
        note = f" {figure.note}" if figure.note else ""
        lines += [f"![{figure.title}]({name})", "", f"**{figure.title}.** {figure.caption}", ""]
        lines += [f"{figure.details}{note}", ""]
    lines += ["## Details", ""]
    for record in report.records:
        lines += [f"### [{record.paper}] {record.place}: {record.label}", "", f"> {record.statement}", ""]
        lines += [f"- {name}: {text}" for name, text in record_facts(record)]
        lines += [f"- {check_text(check)}" for check in record.checks]
        lines += [f"- {name}: `{as_text(value)}`" for name, value in record_values(record)]
        lines.append("")
    lines += ["## Versions, primes, seed", ""]
    lines += [f"- {name}: {text}" for name, text in provenance(report)]
    return "\n".join(lines) + "\n"
