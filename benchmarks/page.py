"""One page from all benchmarks: ours, the peers of the same run, ratios, physical limits, growth exponents, plots.

    python benchmarks/page.py [--full [NAME …]] [--seconds N] [--out out/bench] [--only NAME …] [--docs PAGE]

Every script of this folder is run in a process of its own, at its quick size unless ``--full`` names it (or none), with
one thread for linear algebra. A script that fails or takes longer than it may is on the page, with what it measured
until then, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import base64
import html
import io
import os
import platform
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contract import LIMIT, OURS, VARIABLE, Measurement

FOLDER = Path(__file__).parent
HELPERS = {"contract", "page"}
STOPPED = 124
"""The code of a script that took longer than it may."""
FEWEST = 3
"""Sizes that an exponent is fitted to, at least."""
SHORTEST, OFF_THE_LINE = 1e-3, 0.25
"""Shorter times are noise; how far, as a logarithm, a point may be off the line whose slope is told."""
WIDTH = 118
COLOURS = ("#1b2a41", "#4a7fb5", "#e0a100", "#8c4a4a", "#5a8f5a", "#777777")


@dataclass(frozen=True)
class Run:
    """What one script measured: its records, the first line of its docstring, its size, exit code and CPU seconds."""

    name: str
    title: str
    is_full: bool
    records: tuple[Measurement, ...]
    code: int
    seconds: float
    last: str
    """The last line that it printed, for scripts that failed."""


def scripts() -> list[Path]:
    """The scripts of this folder; a test sees to it that each follows the contract."""
    return [path for path in sorted(FOLDER.glob("*.py")) if path.stem not in HELPERS]


def run_script(path: Path, full: bool, limit: float) -> Run:
    """Run one benchmark for at most ``limit`` seconds and read its records."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "records.jsonl"
        environment = {**os.environ, VARIABLE: str(target), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        before = os.times()
        command = [sys.executable, str(path), *([] if full else ["--quick"])]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=limit)
            code, said = done.returncode, (done.stdout + done.stderr).splitlines()
        except subprocess.TimeoutExpired:
            code, said = STOPPED, [f"stopped after {limit:.0f} s"]
        after = os.times()
        lines = target.read_text(encoding="utf-8").splitlines() if target.exists() else []
    used = after.children_user + after.children_system - before.children_user - before.children_system
    said = [line for line in said if line.strip()]
    records = tuple(Measurement.from_line(line) for line in lines)
    return Run(path.stem, _title(path), full, records, code, used, said[-1] if said else "")


def _title(path: Path) -> str:
    """The first line of the docstring."""
    found = re.match(r'"""(.*?)(?:\n|""")', path.read_text(encoding="utf-8"))
    return found.group(1) if found else path.stem


@dataclass(frozen=True)
class Row:
    """One case of a table: its values by who was measured."""

    case: str
    size: float | None
    values: dict[str, float]


@dataclass(frozen=True)
class Table:
    """The measurements of one table in one unit."""

    title: str
    unit: str
    rows: tuple[Row, ...]

    @property
    def people(self) -> tuple[str, ...]:
        """Who was measured: ours first, peers, the limit last."""
        found = dict.fromkeys(who for row in self.rows for who in row.values)
        return tuple(sorted(found, key=lambda who: (who == LIMIT, who != OURS)))

    def ratio(self, row: Row, who: str) -> float | None:
        """A peer's value over ours, or ours over the limit."""
        ours, other = row.values.get(OURS), row.values.get(who)
        if who == OURS or not ours or not other:
            return None
        return ours / other if who == LIMIT else other / ours

    def exponent(self, who: str) -> float | None:
        """The slope of log value against log size over the upper half of the sizes, from at least three.

        None for tables of several series, for times below a millisecond, and where the points are on no line.
        """
        least = SHORTEST if self.unit == "CPU s" and who != LIMIT else 0.0
        points = sorted(
            (row.size, row.values[who]) for row in self.rows if row.size and row.values.get(who, 0.0) > least
        )
        upper = points[-max(FEWEST, len(points) // 2 + 1) :]
        if len(upper) < FEWEST or len({size for size, _ in points}) < len(points):
            return None
        x, y = np.log(np.array(upper)).T
        slope, start = np.polyfit(x, y, 1)
        return float(slope) if np.abs(y - slope * x - start).max() < OFF_THE_LINE else None


def tables(records: tuple[Measurement, ...]) -> list[Table]:
    """The records sorted into tables and rows, in the order in which they came."""
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for record in records:
        rows = found.setdefault((record.table, record.unit), {})
        row = rows.setdefault(record.case, Row(record.case, record.size, {}))
        row.values[record.who] = record.value
    return [Table(title, unit, tuple(rows.values())) for (title, unit), rows in found.items()]


def number(value: float | None) -> str:
    """Three digits, or a dash."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


def cells(table: Table) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: the case, the values, a ratio after every peer and after the limit; exponents last."""
    heads = ["case"]
    for who in table.people:
        heads.append(who if who != OURS else f"ours, {table.unit}")
        if who != OURS:
            heads.append("ours / limit" if who == LIMIT else "ratio")
    rows = []
    for row in table.rows:
        line = [row.case]
        for who in table.people:
            line.append(number(row.values.get(who)))
            if who != OURS:
                ratio = table.ratio(row, who)
                line.append("–" if ratio is None else f"{ratio:.3g}×")
        rows.append(line)
    exponents = {who: table.exponent(who) for who in table.people}
    if any(value is not None for value in exponents.values()):
        line = ["grows like size to the power"]
        for who in table.people:
            line.append("–" if exponents[who] is None else f"{exponents[who]:.2f}")
            line += [""] * (who != OURS)
        rows.append(line)
    return heads, rows


def text_of(table: Table) -> list[str]:
    """The table in Markdown; one that is too wide has a row for each value instead of a column."""
    heads, rows = cells(table)
    lines = _lines(heads, rows)
    if max(map(len, lines)) <= WIDTH:
        return lines
    values = []
    for row in table.rows:
        for who in table.people:
            ratio = None if who == OURS else table.ratio(row, who)
            if row.values.get(who) is not None:
                values.append([row.case, who, number(row.values[who]), "" if ratio is None else f"{ratio:.3g}×"])
    for who in table.people:
        if (exponent := table.exponent(who)) is not None:
            values.append(["grows like size to the power", who, f"{exponent:.2f}", ""])
    return _lines(["case", "who", table.unit, "ratio"], values)


def _lines(heads: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *(f"| {' | '.join(row)} |" for row in rows)]


def draw(table: Table) -> bytes | None:
    """A logarithmic plot against the size, if there are sizes to plot."""
    if sum(1 for row in table.rows if row.size) < FEWEST:
        return None
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5.6, 3.6))
    for who, colour in zip(table.people, COLOURS):
        points = sorted((row.size, row.values[who]) for row in table.rows if row.size and row.values.get(who, 0.0) > 0)
        if points:
            axes.loglog(*zip(*points), "--" if who == LIMIT else "o-", color=colour, label=who)
    axes.set_xlabel("size")
    axes.set_ylabel(table.unit)
    axes.legend(fontsize=8)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=110, bbox_inches="tight", metadata={"Software": None})
    pyplot.close(figure)
    return stream.getvalue()


def heading(runs: list[Run]) -> list[str]:
    """What the numbers are, of which machine, and which scripts are not among them."""
    left_out = sorted({path.stem for path in scripts()} - {run.name for run in runs})
    which = "All benchmarks" if not left_out else f"Benchmarks (without {', '.join(left_out)})"
    machine = (
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, NumPy {np.__version__}"
    )
    return [
        f"{which}, each script in a process of its own, on {time.strftime('%Y-%m-%d')}: {machine}. One thread each.",
        "A ratio above 1 says how many times what we take a peer takes; peers that are not installed are left out."
        " The limit is what this core allows: the time of a float64 matrix product of the same work or of one pass over"
        " the bytes that must be read, or the memory of the output.",
    ]


def failed(run: Run) -> str:
    return f"The script ended with code {run.code}: {run.last}"


def markdown(runs: list[Run], pictures: dict[tuple[str, str], str]) -> str:
    """The page in Markdown; ``pictures`` are the names of the plots."""
    lines = ["# Benchmarks", "", "This page is written by `make bench`; do not edit it.", ""]
    for text in heading(runs):
        lines += [textwrap.fill(text, WIDTH), ""]
    for run in runs:
        size = "full size" if run.is_full else "quick size"
        title = f"{run.title} `python benchmarks/{run.name}.py`, {size}, {run.seconds:.0f} CPU s."
        lines += [f"## {run.name}", "", textwrap.fill(title, WIDTH), ""]
        if run.code:
            lines += [textwrap.fill(f"**{failed(run)}**", WIDTH), ""]
        for table in tables(run.records):
            lines += [f"### {table.title}", "", *text_of(table), ""]
            picture = pictures.get((run.name, table.title))
            lines += [f"![{table.title}]({picture})", ""] if picture else []
    return "\n".join(lines).rstrip() + "\n"


def merge(page: str, fresh: str) -> str:
    """The page with the sections of some scripts in the place of their former ones; all others stay, and the heading.

    >>> merge("# Benchmarks\\n\\n## a\\n\\n1\\n\\n## c\\n\\n3\\n", "# Benchmarks\\n\\n## b\\n\\n2\\n").split("\\n\\n")
    ['# Benchmarks', '## a', '1', '## b', '2', '## c', '3\\n']
    """
    (heading, *sections), (_, *others) = page.split("\n## "), fresh.split("\n## ")
    kept = {section.partition("\n")[0]: section.strip() for section in (*sections, *others)}
    return "\n\n## ".join([heading.strip(), *(kept[name] for name in sorted(kept))]) + "\n"


def web_page(runs: list[Run]) -> str:
    """The page as one HTML file, plots included."""
    parts = ["<!doctype html><meta charset='utf-8'><title>attngeom: benchmarks</title><style>"]
    parts.append(
        "body{font:15px/1.5 system-ui;max-width:64rem;margin:2rem auto;padding:0 1rem}td,th{padding:.2rem .7rem;"
    )
    parts.append("text-align:right;border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}")
    parts.append("table{display:block;overflow-x:auto}img{max-width:100%}</style>")
    parts.append("<meta name='viewport' content='width=device-width'>")
    parts.append("<h1>Benchmarks</h1>" + "".join(f"<p>{html.escape(line)}</p>" for line in heading(runs)))
    for run in runs:
        parts.append(f"<h2>{html.escape(run.name)}</h2><p>{html.escape(run.title)} {run.seconds:.0f} CPU s.</p>")
        if run.code:
            parts.append(f"<p><b>{html.escape(failed(run))}</b></p>")
        for table in tables(run.records):
            heads, rows = cells(table)
            parts.append(f"<h3>{html.escape(table.title)}</h3><table><tr>")
            parts.append("".join(f"<th>{html.escape(text)}</th>" for text in heads) + "</tr>")
            for row in rows:
                parts.append("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>")
            parts.append("</table>")
            picture = draw(table)
            if picture is not None:
                parts.append(f"<img alt='' src='data:image/png;base64,{base64.b64encode(picture).decode()}'>")
    return "\n".join(parts)


def write_plots(runs: list[Run], folder: Path, prefix: str) -> dict[tuple[str, str], str]:
    """The plots as files, and their names as the Markdown page refers to them."""
    folder.mkdir(parents=True, exist_ok=True)
    known, fresh = {path.stem for path in scripts()}, {run.name for run in runs}
    for old in folder.glob("*.png"):
        name = old.stem.rpartition("-")[0]
        if name in fresh or name not in known:
            old.unlink()
    names = {}
    for run in runs:
        for place, table in enumerate(tables(run.records)):
            picture = draw(table)
            if picture is not None:
                name = f"{run.name}-{place + 1}.png"
                (folder / name).write_bytes(picture)
                names[run.name, table.title] = prefix + name
    return names


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", nargs="*", help="full sizes, for hours: of these scripts, or of all if none is named")
    parser.add_argument("--seconds", type=float, default=7200, help="wall time that a script may take")
    parser.add_argument("--out", type=Path, default=Path("out/bench"), help="folder for page, plots and records")
    parser.add_argument("--only", nargs="*", default=[], help="these scripts alone")
    parser.add_argument("--docs", type=Path, help="write the Markdown page to this file too, plots beside it")
    options = parser.parse_args()
    known = {path.stem for path in scripts()}
    full = known if options.full == [] else set(options.full or ())
    unknown = (full | set(options.only)) - known
    if unknown:
        parser.error(f"no benchmark is called {min(unknown)}")
    runs = []
    for path in scripts():
        if not options.only or path.stem in options.only:
            runs.append(run_script(path, path.stem in full, options.seconds))
            state = f"{len(runs[-1].records)} measurements" if not runs[-1].code else failed(runs[-1])
            print(f"{path.stem:20} {runs[-1].seconds:8.1f} CPU s  {state}", flush=True)
    pictures = write_plots(runs, options.out / "plots", "plots/")
    (options.out / "benchmarks.md").write_text(markdown(runs, pictures), encoding="utf-8")
    (options.out / "benchmarks.html").write_text(web_page(runs), encoding="utf-8")
    print(f"page: {options.out / 'benchmarks.html'} and {options.out / 'benchmarks.md'}")
    if options.docs:
        name = f"{options.docs.stem}-plots"
        pictures = write_plots(runs, options.docs.parent / name, f"{name}/")
        page = markdown(runs, pictures)
        if options.only and options.docs.exists():
            page = merge(options.docs.read_text(encoding="utf-8"), page)
        options.docs.write_text(page, encoding="utf-8")
    return int(any(run.code for run in runs))


if __name__ == "__main__":
    sys.exit(main())
