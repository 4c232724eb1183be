"""The view of the atlas: filters, pivots, plots and facts of a store, as the commands give them."""

import csv
import io
import json
import shlex
import shutil
from pathlib import Path

import pytest

import attngeom
from attngeom.atlas import FactStore
from attngeom.cli.app import run
from attngeom.errors import AttnGeomError
from attngeom.explore.controls import read_state
from attngeom.explore.shelf import Shelf
from attngeom.explore.views import find_view
from attngeom.explore.views.atlas import chosen, pivot, points_of
from tests.explore.conftest import INPUTS

VIEW = find_view("atlas")


@pytest.fixture
def store(tmp_path):
    """A copy of a store with facts of four questions: reading may leave a log beside it."""
    return Path(shutil.copy(INPUTS / "store.sqlite", tmp_path / "a.db"))


def state_of(store, **query):
    return read_state(VIEW.controls, {"file": "1", **query}, Shelf.of_paths([store]))


@pytest.mark.parametrize("where", ["", "question=dimension", "question=dimension, tokens>=2"])
def test_filters_are_those_of_the_command(store, where, capsys):
    state = state_of(store, where=where, sort="-dimension")
    assert run([*shlex.split(VIEW.module.command(state))[1:], "--json"]) == 0
    expected = [fact["key"] for fact in json.loads(capsys.readouterr().out)["facts"]]
    assert [fact.task.key for fact, _ in chosen(state)] == expected
    rows = list(csv.DictReader(io.StringIO(VIEW.module.DOWNLOADS["csv"](state)[1].decode())))
    assert [row["key"] for row in rows] == expected
    assert f"{len(expected):,} facts" in VIEW.show(state)


def test_pivot_and_plot_hold_every_fact(store):
    state = state_of(store, where="question=dimension")
    found = chosen(state)
    head, body = pivot([row for _, row in found], "widths", "tokens", "dimension")
    assert head[0] == "dimension by widths \\ tokens" and len(body) == len({row["widths"] for _, row in found})
    points = points_of(found, "tokens", "dimension")
    assert len(points) == len(found) and {point[1] for point in points} == {row["dimension"] for _, row in found}
    page = VIEW.show(state_of(store, where="question=dimension", x="tokens", y="dimension"))
    assert page.count("<g>") == len(points)


def test_facts_are_opened_with_their_certificate(store):
    with FactStore(store, read_only=True) as opened:
        facts = list(opened.facts())
    for fact in facts[:5]:
        page = VIEW.show(state_of(store, fact=fact.task.key))
        assert fact.task.key in page
        assert ("it proves its claim" in page) is (fact.result.certificate is not None)
        if fact.result.certificate is not None:
            record = VIEW.module.DOWNLOADS["certificate"](state_of(store, fact=fact.task.key))[1]
            assert attngeom.verify(json.loads(record)).valid is True


@pytest.mark.parametrize(
    "query",
    [{"where": "nonsense"}, {"sort": "nothing"}, {"x": "nothing", "y": "tokens"}, {"fact": "<b>"}, {"down": "key"}],
)
def test_what_is_not_there_is_refused(store, query):
    with pytest.raises(AttnGeomError) as refused:
        VIEW.show(state_of(store, **query))
    assert len(str(refused.value)) <= 200


def test_other_files_are_refused():
    with pytest.raises(AttnGeomError):
        VIEW.show(state_of(INPUTS / "deep.json"))


def test_browser_browses(visit, assert_that, store):
    page = visit("atlas")
    page.get_by_label("open a file: Store").set_input_files([store])
    with FactStore(store, read_only=True) as opened:
        total = opened.count()
    assert_that(page.locator("#count")).to_contain_text(f"{total:,} facts")
    page.get_by_label("Where").fill("question=dimension")
    page.get_by_label("Plot: across").fill("tokens")
    page.get_by_label("Plot: up").fill("dimension")
    assert_that(page.locator("#plot svg").first).to_be_visible()
    page.locator("#facts button").first.click()
    assert_that(page.locator("#fact")).to_be_visible()
    page.get_by_label("open a file: Store").set_input_files([INPUTS / "deep.json"])
    assert_that(page.locator("#answer .refusal")).to_be_visible()
