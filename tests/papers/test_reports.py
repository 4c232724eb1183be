"""Reports are complete, self-contained, escaped, and free of the machine they were made on."""

import getpass
import platform
import re
import socket
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

from attngeom.papers import Check, Record
from attngeom.papers.reports import Figure, Report, math_html, summary_rows, to_html, to_markdown, write_report

PNG = b"\x89PNG\r\n\x1a\n"


def make_record(name="one", outcome="proven", expected=None, **more):
    fields = {
        "id": f"G-{name}", "paper": "G", "place": f"Lemma <{name}>", "statement": "a < b & c",
        "kind": "exact arithmetic", "strength": "proven", "proof": "docs/reference/papers.md, G-one",
        "expected": expected or outcome, "outcome": outcome, "evidence": "counted", "values": {"n": [1, 2]},
        "checks": (Check("x < y", True), Check("y < x", outcome == "proven"), Check("z", True, "correction")),
        "counterexample": "d = 1", "correction": "the other way", "primes": (7,), "error_bound": 1e-9, "seconds": 0.25,
    }  # fmt: skip
    return Record(**{**fields, **more})


@pytest.fixture
def report():
    records = [make_record(), make_record("two", "error"), make_record("three", "failed", "proven")]
    figure = Figure(
        "G-figure-1",
        "A figure",
        "what it shows",
        "what is to be known",
        PNG,
        ("figures/G-figure-1.png",),
        "plotly is missing.",
    )
    return Report(records, [figure], quick=True, seed=5)


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.sources, self.targets, self.ids = [], [], []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.sources += [found[name] for name in ("src",) if name in found]
        self.targets += [found["href"]] if "href" in found else []
        self.ids += [found["id"]] if "id" in found else []


def test_html_is_self_contained_and_links_resolve(report):
    links = Links()
    links.feed(to_html(report))
    assert all(source.startswith("data:image/png;base64,") for source in links.sources)
    anchors = [target[1:] for target in links.targets if target.startswith("#")]
    assert {record.id for record in report.records} <= set(anchors) <= set(links.ids)
    assert not [target for target in links.targets if "://" in target]


def test_filters_offer_what_the_records_have(report):
    page = to_html(report)
    assert page.count("<details class=claim") == len(report.records) and "<details open" not in page
    for record in report.records:
        assert f"<option value='{record.outcome}'>" in page and f"data-outcome='{record.outcome}'" in page


def test_indices_are_set_as_such():
    assert math_html("d_{i−1} ≤ <d_0>^2") == "d<sub>i−1</sub> ≤ &lt;d<sub>0</sub>&gt;^2"
    assert math_html("y_0_1 and lower_bound") == "y_0_1 and lower_bound"
    assert math_html("2a_i, GL_δ, A_KL, sφ_(A,V)") == (
        "2a<sub>i</sub>, GL<sub>δ</sub>, A<sub>KL</sub>, sφ<sub>A,V</sub>"
    )
    assert math_html("λ^(3^(l−i)), v^α") == "λ<sup>3<sup>l−i</sup></sup>, v<sup>α</sup>"


def test_rows_of_numbers_are_tables_and_closed_claims_say_their_statement():
    page = to_html(Report([make_record(values={"rows": [{"n": 1, "<m>": [2, 3]}], "k": "4"})]))
    assert "<tr><th>n<th>&lt;m&gt;<tr><td>1<td>[2,3]" in page.replace(", ", ",") and "<code>4</code>" in page
    assert "<span class=said>a &lt; b &amp; c</span></summary>" in page


def test_figures_have_the_width_they_were_drawn_for():
    figure = Figure("G-figure-1", "A figure", "what it shows", "what is to be known", PNG, ("a.png",), width=420)
    assert "<img alt='A figure' width=420 src=" in to_html(Report([], [figure]))


def test_text_is_escaped(report):
    page = to_html(report)
    assert "Lemma &lt;one&gt;" in page
    assert "<one>" not in page
    assert "a &lt; b &amp; c" in page


def test_reports_name_every_claim_seed_prime_and_unexpected_outcome(report):
    for text in (to_html(report), to_markdown(report)):
        assert "1 outcome differs" in text
        assert "seed 5" in text
        assert "plotly is missing." in text
        assert "2147483629" in text
        assert text.count("counted") == 3
    assert [record.id for record in report.unexpected] == ["G-three"]


def test_reports_say_nothing_of_the_machine(report, monkeypatch):
    """Its name and that of the user are such as no report holds by chance."""
    for module, name in ((platform, "node"), (socket, "gethostname"), (getpass, "getuser")):
        monkeypatch.setattr(module, name, lambda: "zebra7f3a")
    for name in ("HOME", "HOSTNAME", "LOGNAME", "USER"):
        monkeypatch.setenv(name, "/home/zebra7f3a")
    for text in (to_html(report), to_markdown(report)):
        assert "zebra7f3a" not in text


def test_what_is_not_as_printed_says_what_holds(report):
    for text in (to_html(report), to_markdown(report)):
        assert "error, corrected and proven" in text
        assert "docs/reference/papers.md, G-one" in text


def test_summary_counts(report):
    rows = dict(summary_rows(report))
    counts = {name: count for name, count in rows["both"].items() if count}
    assert counts == {"proven": 1, "error": 1, "failed": 1}
    assert sum(rows["[I]"].values()) == 0


def test_counterexample_is_shown_only_where_something_fails(report):
    text = to_markdown(Report([make_record()]))
    assert "smallest example" not in text
    assert "remark: the other way" in text
    assert "smallest example: d = 1" in to_markdown(report)


def test_pages_are_links_that_lead_to_them(report, tmp_path):
    page, text = write_report(report, tmp_path)
    links = Links()
    links.feed(page.read_text(encoding="utf-8"))
    pages = [target for target in links.targets if "papers" in target]
    assert len(pages) == 3 and all((tmp_path / unquote(target)).resolve().is_file() for target in pages)
    assert f"[docs/reference/papers.md]({pages[0]})" in text.read_text(encoding="utf-8")


def test_write_report_makes_both_files(report, tmp_path):
    page, text = write_report(report, tmp_path)
    assert re.sub(r"<a href='[^']*papers[^']*'>([^<]*)</a>", r"\1", page.read_text()) == to_html(report)
    assert re.sub(r"\[(docs[^]]*)\]\([^)]*\)", r"\1", text.read_text()) == to_markdown(report)
