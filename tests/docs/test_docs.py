"""What README.md and docs show is what runs."""

import re
from pathlib import Path

import pytest

from attngeom.models import FAMILIES
from tests.docs.blocks import ROOT, find_blocks, matches, pages
from tests.docs.runner import check_page

LONGEST = 120
MEASURED = re.compile(r"\d CPU s\b|CPU seconds|times (?:as )?(?:fast|slow)\w*|(?:took|takes) \d[\d.]* s\b|\d× faster")
FAMILIES_SAID = re.compile(r"more\s+than\s+(\d+)\s+families")
LINK = re.compile(r"(?<!\\)\]\(([^)#\s]+)(#[^)\s]*)?\)")


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_page_shows_what_runs(page: Path) -> None:
    wrong = check_page(page.read_text(encoding="utf-8"))
    assert not wrong, "\n\n".join(wrong)


def test_pages_are_wrapped_and_their_links_lead_somewhere() -> None:
    for page in pages():
        text = page.read_text(encoding="utf-8")
        shown = {n for block in find_blocks(text) for n in range(block.number, block.number + block.text.count("\n"))}
        long = [number for number, line in enumerate(text.splitlines(), 1) if len(line) > LONGEST]
        assert set(long) <= shown, page
        for target, _ in LINK.findall(text):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page}: {target} is not there"


def test_measured_times_are_on_the_page_of_benchmarks_alone() -> None:
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for block in find_blocks(text):
            text = text.replace(block.text, "")
        assert page.name == "benchmarks.md" or not MEASURED.findall(text), page


def test_counts_of_families_come_from_the_code() -> None:
    """A page that says "more than N families" of models says the tens of what there is."""
    said = [(page, int(count)) for page in pages() for count in FAMILIES_SAID.findall(page.read_text("utf-8"))]
    assert said
    assert {(page, count) for page, count in said if count != (len(FAMILIES) - 1) // 10 * 10} == set()


def test_differences_are_found() -> None:
    assert check_page("```console\n$ attngeom dim --widths 2,2 --attention 1 --prove\n…\ndimension          7\n```\n")
    assert check_page("```console\n$ attngeom dim --widths 2,2\n```\n")
    assert check_page("```console\n$ attngeom dim --widths 2,2 --json  # exit 1\n…\n```\n")
    assert check_page("```console\n$ rm -r x\n```\n")
    assert check_page("```\n$ attngeom info\n```\n")
    assert check_page("```python\n1 + 1  # → 3\n```\n")
    assert check_page("```python\nimport attngeom.nothing\n```\n")
    assert check_page("```python\n>>> 1 + 1\n3\n```\n") and not check_page("```python\n>>> 1 + 1\n2\n```\n")
    assert not check_page("```python\nx = 1\n```\n```python\nx + 1  # → 2\nprint(x)  # → 1\n```\n")


def test_cuts() -> None:
    assert matches(["…", "b", "…"], ["a", "b", "c"])
    assert not matches(["…", "c", "…", "b", "…"], ["a", "b", "c"])
    assert not matches(["a", "…", "a"], ["a"])
    assert matches(["ab …"], ["ab cd"]) and not matches(["ab …"], ["abc"])
    assert matches(["took 0.1 s"], ["took 22.5 s"]) and not matches(["22.5"], ["22.6"])
