"""The report of recomputed claims as one HTML page: navigation, filters, closed details, nothing from elsewhere."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from attngeom.papers import PAPERS, Record
from attngeom.papers.reports import (
    MARKS,
    Figure,
    Report,
    as_text,
    check_text,
    intro,
    provenance,
    record_facts,
    record_values,
    summary_rows,
)

STYLE = """
:root{--line:#d8d8d8;--soft:#f5f5f3;--text:#222;--dim:#555;--link:#0b5394;--fail:#8a2500;--yes:#1b5e20}
*{box-sizing:border-box}[hidden]{display:none!important}
body{font:16px/1.5 system-ui,sans-serif;color:var(--text);margin:0;overflow-wrap:anywhere}
a{color:var(--link)}main{max-width:62rem;margin:0 auto;padding:1rem}
nav{position:sticky;top:0;background:#fff;border-bottom:1px solid var(--line);z-index:2}
nav div{max-width:62rem;margin:0 auto;padding:.5rem 1rem;display:flex;flex-wrap:wrap;gap:.3rem 1rem;align-items:center}
section{scroll-margin-top:6rem}h1,h2{line-height:1.2}
.scroll{overflow-x:auto}table{border-collapse:collapse;margin:1rem 0}
th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}
td.n{text-align:right}.names td:first-child{white-space:nowrap}
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
[data-outcome=supported],[data-outcome=misprint],[data-outcome='expectation refuted']{--yes:#8a5a00}
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
    head = "".join(f"<th>{escape(label)}" for label, _ in rows)
    body = "".join(
        f"<tr><th>{escape(f'{MARKS[name]} {name}')}"
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
