"""Reports of recomputed claims: what they show, the Markdown, and one HTML page with filters."""

from __future__ import annotations

import base64
import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
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
TOTALS = {name: "error in the paper" if name == "error" else name for name in MARKS}
"""What outcomes are called where no claim stands beside them."""


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
    from attngeom.papers.reports import to_html

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
    head = ["paper", *(TOTALS[name] for name in rows[0][1])]
    lines += ["", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
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


STYLE = """
:root{--line:#d8d8d8;--soft:#f5f5f3;--text:#222;--dim:#555;--link:#0b5394;--fail:#8a2500;--yes:#1b5e20;
  --paper:#fff;--odd:#8a5a00;color-scheme:light dark}
@media screen and (prefers-color-scheme:dark){:root{--line:#3a4450;--soft:#1c2531;--text:#e6e9ee;--dim:#aab4c0;
  --link:#8ec2f2;--fail:#ff9d7a;--yes:#8fd694;--paper:#131a24;--odd:#f0c060}figure img{background:#fff;padding:8px}}
*{box-sizing:border-box}[hidden]{display:none!important}
body{font:16px/1.5 system-ui,sans-serif;color:var(--text);background:var(--paper);margin:0;overflow-wrap:anywhere}
a{color:var(--link)}main{max-width:62rem;margin:0 auto;padding:1rem}
nav{position:sticky;top:0;background:var(--paper);border-bottom:1px solid var(--line);z-index:2}
nav div{max-width:62rem;margin:0 auto;padding:.5rem 1rem;display:flex;flex-wrap:wrap;gap:.3rem 1rem;align-items:center}
section{scroll-margin-top:6rem}h1,h2{line-height:1.2}
.scroll{overflow-x:auto}table{border-collapse:collapse;margin:1rem 0}
th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}
td.n,th.n{text-align:right;white-space:nowrap}.names td:first-child{white-space:nowrap}
label{color:var(--dim)}select,input{font:inherit;max-width:100%;padding:.15rem .3rem}
details.claim{border-bottom:1px solid var(--line);scroll-margin-top:6rem}
details.claim>summary{display:grid;grid-template-columns:1rem 14rem 1fr 5rem;gap:.6rem;padding:.35rem .2rem;
  cursor:pointer;list-style:none}
details.claim>summary::-webkit-details-marker{display:none}
details.claim>summary::before{content:"▸";color:var(--dim)}details.claim[open]>summary::before{content:"▾"}
details.claim>summary:hover{background:var(--soft)}
.kind,.said{color:var(--dim)}.outcome{font-weight:600;color:var(--yes)}.time{text-align:right;color:var(--dim)}
.said{grid-column:2/-1;overflow:hidden;text-overflow:ellipsis;white-space:nowrap;font-size:.9em;margin-top:-.5rem}
details[open]>summary>.said{display:none}
[data-outcome=error],[data-outcome=failed]{--yes:var(--fail)}
[data-outcome=supported],[data-outcome=misprint],[data-outcome='expectation refuted']{--yes:var(--odd)}
.body{padding:.2rem .2rem 1rem 1.8rem}.box{border-left:4px solid #999;padding:.2rem .8rem;background:var(--soft)}
ul{padding-left:1.2rem}li{margin:.15rem 0}.fails{color:var(--fail)}
code{background:var(--soft);padding:0 .2em}figure{margin:2rem 0}figure img{max-width:100%;height:auto}
figcaption{color:var(--dim)}sub,sup{line-height:0;font-size:.78em}
@media(max-width:40rem){nav{position:static}details.claim,section{scroll-margin-top:.5rem}
  details.claim>summary{grid-template-columns:1rem 1fr}
  details.claim>summary .second{grid-column:2}.said{margin-top:0}.time{display:none}.body{padding-left:.4rem}}
@media print{nav{display:none}}
"""
SCRIPT = """
const rows=[...document.querySelectorAll('details.claim')],box=id=>document.getElementById(id);
function filter(){const p=box('paper').value,o=box('outcome').value,t=box('words').value.toLowerCase();let n=0;
for(const r of rows){const on=(!p||r.dataset.paper===p)&&(!o||r.dataset.outcome===o)
&&(!t||r.textContent.toLowerCase().includes(t));r.hidden=!on;n+=on}
box('count').textContent=n+' of '+rows.length}
for(const id of ['paper','outcome','words'])box(id).addEventListener('input',filter);
function show(){const r=document.getElementById(decodeURIComponent(location.hash.slice(1)));
if(r&&r.matches('details')){r.hidden=false;r.open=true;r.scrollIntoView()}}
addEventListener('hashchange',show);
box('all').addEventListener('click',()=>{const open=rows.some(r=>!r.hidden&&!r.open);
for(const r of rows)if(!r.hidden)r.open=open});document.querySelector('.filters').hidden=false;filter();show();
"""
_INDEX = "[0-9a-zA-Zα-ω]"
_SUBSCRIPT = re.compile(
    r"_\{([^{}]{1,40})\}|(?<![^\W\d])(?P<name>[^\W\d_]{1,2})_"
    rf"(?:\(([^()]{{1,20}})\)|({_INDEX}{{1,3}})(?!{_INDEX}|_))"
)
_SUPERSCRIPT = re.compile(rf"\^\{{([^{{}}]{{1,40}})\}}|(?<=[\w)\]])\^(?:\(([^()]{{1,40}})\)|({_INDEX}+))")


def math_html(text: str) -> str:
    """Escaped text with indices and exponents set as such.

    >>> math_html("d_{i−1} < M_1 and x^2, y_k_l stays")
    'd<sub>i−1</sub> &lt; M<sub>1</sub> and x<sup>2</sup>, y_k_l stays'
    """
    written = _SUBSCRIPT.sub(lambda m: f"{m['name'] or ''}<sub>{m[1] or m[3] or m[4]}</sub>", escape(text, quote=False))
    for _ in range(2):  # an exponent may hold an exponent
        written = _SUPERSCRIPT.sub(lambda m: f"<sup>{m[1] or m[2] or m[3]}</sup>", written)
    return written


def to_html(report: Report) -> str:
    """The report as one HTML page without external parts; without scripts everything is there, unfiltered."""
    parts = [
        "<!doctype html><html lang=en><head><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width,initial-scale=1'>",
        f"<title>Claims recomputed</title><style>{STYLE}</style></head><body>",
        _navigation(report),
        f"<main><section id=summary><h1>Claims recomputed</h1><p>{escape(intro(report))}</p><ul>",
        *(f"<li><b>[{key}]</b> {escape(title)}</li>" for key, title in PAPERS.items()),
        f"</ul>{_summary(report)}</section>",
        "<section id=claims><h2>Claims</h2>",
        *(_claim(record) for record in report.records),
        "</section><section id=figures><h2>Figures</h2>",
        *(_figure(figure) for figure in report.figures),
        "</section><section id=versions><h2>Versions, primes, seed</h2><div class=scroll><table class=names>",
        *(f"<tr><td>{escape(name)}<td>{escape(text)}</tr>" for name, text in provenance(report)),
        f"</table></div></section></main><script>{SCRIPT}</script></body></html>\n",
    ]
    return "\n".join(parts)


def _navigation(report: Report) -> str:
    def options(values: list[str]) -> str:
        return "".join(f"<option value='{escape(value)}'>{escape(value)}</option>" for value in values)

    papers = list(dict.fromkeys(record.paper for record in report.records))
    outcomes = list(dict.fromkeys(record.outcome for record in report.records))
    links = " ".join(f"<a href='#{name}'>{name}</a>" for name in ("summary", "claims", "figures", "versions"))
    return (
        f"<nav><div>{links}</div><div class=filters hidden>"
        f"<label>paper <select id=paper><option value=''>all</option>{options([*papers])}</select></label>"
        f"<label>outcome <select id=outcome><option value=''>all</option>{options([*outcomes])}</select></label>"
        "<label>words <input id=words size=12></label> <button id=all>open or close</button> <span id=count></span>"
        "</div></nav>"
    )


def _summary(report: Report) -> str:
    rows = summary_rows(report)
    shown = [name for name, count in rows[-1][1].items() if count]
    head = "".join(f"<th class=n>{escape(label)}" for label, _ in rows)
    body = "".join(
        f"<tr><th>{escape(f'{MARKS[name]} {TOTALS[name]}')}"
        + "".join(f"<td class=n>{counts[name]}" for _, counts in rows)
        + "</tr>"
        for name in shown
    )
    return f"<div class=scroll><table><tr><th>outcome{head}</tr>{body}</table></div>"


def _claim(record: Record) -> str:
    facts = "".join(f"<li><b>{escape(name)}:</b> {math_html(text)}</li>" for name, text in record_facts(record))
    checks = "".join(
        f"<li{'' if check.holds else ' class=fails'}>{math_html(check_text(check))}</li>" for check in record.checks
    )
    values = "".join(f"<li>{math_html(name)}: {_value(value)}</li>" for name, value in record_values(record))
    numbers = f"<details><summary>numbers</summary><ul>{values}</ul></details>" if values else ""
    place = escape(f"[{record.paper}] {record.place}")
    outcome = f"{MARKS[record.outcome]} {record.label}"
    return (
        f"<details class=claim id='{escape(record.id)}' data-paper='{escape(record.paper)}'"
        f" data-outcome='{escape(record.outcome)}'><summary><span>{place}</span>"
        f"<span class=second><span class=outcome>{escape(outcome)}</span>"
        f" <span class=kind>{escape(record.basis)}</span></span>"
        f"<span class=time>{record.seconds:.2f} s</span><span class=said>{math_html(record.statement)}</span></summary>"
        f"<div class=body><p class=box>{math_html(record.statement)}</p><ul>{facts}</ul>"
        f"<details><summary>{len(record.checks)} checks</summary><ul>{checks}</ul></details>{numbers}"
        f"<p><a href='#{escape(record.id)}'>link to this claim</a></p></div></details>"
    )


def _value(value: Any) -> str:
    """A number, a text, or rows with the same names as a table."""
    if not (isinstance(value, list | tuple) and value and all(isinstance(row, Mapping) for row in value)):
        return f"<code>{escape(as_text(value))}</code>"
    head = "".join(f"<th>{escape(name)}" for name in value[0])
    rows = "".join("<tr>" + "".join(f"<td>{escape(as_text(entry))}" for entry in row.values()) for row in value)
    return f"<div class=scroll><table><tr>{head}{rows}</table></div>"


def _figure(figure: Figure) -> str:
    image = base64.b64encode(figure.png).decode()
    links = ", ".join(f"<a href='{escape(name)}'>{escape(Path(name).suffix[1:])}</a>" for name in figure.files)
    note = f" {escape(figure.note)}" if figure.note else ""
    wide = f" width={figure.width}" if figure.width else ""
    return (
        f"<figure id='figure-{escape(figure.id)}'>"
        f"<img alt='{escape(figure.title)}'{wide} src='data:image/png;base64,{image}'>"
        f"<figcaption><b>{escape(figure.title)}.</b> {math_html(figure.caption)} ({links})"
        f"<p class=kind>{math_html(figure.details)}{note}</p></figcaption></figure>"
    )
