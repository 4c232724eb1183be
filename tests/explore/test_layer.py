"""Is this an attention layer? The verdict of the page is that of the library, and its certificate verifies."""

import json
from fractions import Fraction

import pytest

import attngeom
from attngeom.errors import AttnGeomError
from attngeom.exact import QQ, RR
from attngeom.explore.controls import read_state
from attngeom.explore.formulas import expand
from attngeom.explore.shelf import Shelf
from attngeom.explore.views import find_view
from attngeom.explore.views.layer import EXAMPLES, coefficients_of_table, decide, draw, given
from attngeom.layer.files import coefficients_to_json

VIEW = find_view("layer")
VERDICTS = {
    "a layer": "realizable",
    "two weights": "realizable",
    "the closure only": "closure_only",
    "no layer": "not_realizable",
}


def state_of(query, shelf=None):
    return read_state(VIEW.controls, {"source": "table", **query}, shelf or Shelf())


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_what_they_say_and_certificates_verify(name):
    state = state_of(VIEW.module.ACTIONS[name](state_of({})))
    assert decide(state).verdict == VERDICTS[name]
    assert f'data-verdict="{VERDICTS[name]}"' in VIEW.show(state)
    record = json.loads(VIEW.module.DOWNLOADS["certificate"](state)[1])
    assert attngeom.verify(record).valid is True and record["claim"]["verdict"] == VERDICTS[name]


@pytest.mark.parametrize("sizes", [("1", "1"), ("2", "2"), ("3", "1"), ("4", "2")])
def test_random_layers_are_layers(sizes):
    texts = {"d": sizes[0], "d_out": sizes[1]}
    state = state_of({**texts, **draw(state_of(texts))})
    assert decide(state).verdict == "realizable"


@pytest.mark.parametrize(
    ("table", "d", "d_out", "attention"),
    [
        (EXAMPLES["no layer"], 2, 1, None),
        (EXAMPLES["a layer"], 2, 1, 1),
        ("1 0\n0 1\n1 1\n0 1\n2 2\n1 0", 2, 2, None),
        ("1 2 0\n0 1 3\n1 1 1\n2 0 1\n0 0 5\n1 1 4", 3, 1, None),
    ],
)
def test_the_formula_has_the_value_that_is_claimed_at_the_entries_that_are_listed(table, d, d_out, attention):
    rows = [[Fraction(word) for word in line.split()] for line in table.splitlines()]
    coefficients = coefficients_of_table(rows, d, d_out)
    violated = attngeom.certify(coefficients, attention).violated
    broken = expand(violated, coefficients)
    values = dict(zip(broken.names, (entry.value for entry in broken.entries), strict=True))
    point = QQ.convert([values[name] for name in broken.polynomial.variables])
    assert str(broken.polynomial.to_flint()(*point)) == violated.value != "0"


@pytest.mark.parametrize(
    "query",
    [
        *({"table": table} for table in ("1 2\n3", "a b\n1 2\n3 4", "1/0 2\n1 2\n3 4", "9" * 50, "1 " * 3000)),
        *({"d": "9"}, {"attention": "x"}, {"source": "file"}),
    ],
)
def test_bad_tables_are_refused_with_one_line(query):
    with pytest.raises(AttnGeomError) as refused:
        VIEW.show(state_of(query))
    assert len(str(refused.value)) <= 200


def test_larger_files_are_decided_by_a_job(tmp_path):
    layer = attngeom.random_weights(attngeom.Architecture((9, 2), 2, tokens=3), QQ, 0)
    attngeom.write_coefficients(attngeom.coefficients(layer), tmp_path / "large.json")
    state = state_of({"source": "file", "file": "1"}, Shelf.of_paths([tmp_path / "large.json"]))
    assert 'data-job="decide"' in VIEW.show(state) and 'data-verdict="realizable"' not in VIEW.show(state)
    assert 'data-verdict="realizable"' in VIEW.work("decide", state, print)


def test_browser_decides_at_once_and_refuses_bad_files(visit, assert_that, tmp_path):
    page = visit("layer")
    verdict = page.locator("#verdict")
    assert_that(verdict).to_have_attribute("data-verdict", "not_realizable")
    assert_that(page.locator("#value")).to_be_visible()
    assert page.locator("#value").inner_text() == decide(state_of({})).violated.value
    assert page.locator(".formula").inner_text().endswith("= 0") and page.locator(".broken").count() == 6
    page.get_by_label("Table", exact=True).fill(EXAMPLES["two weights"])
    assert_that(verdict).to_have_attribute("data-verdict", "realizable")
    assert_that(page.get_by_text("point 2 of 2")).to_be_visible()
    page.get_by_role("button", name="the closure only").click()
    assert_that(verdict).to_have_attribute("data-verdict", "closure_only")
    with page.expect_download() as download:
        page.get_by_text("Take the certificate").click()
    download.value.save_as(tmp_path / "c.json")
    assert attngeom.verify(tmp_path / "c.json").valid is True
    page.get_by_label("Coefficients", exact=True).select_option("file")
    drop = page.get_by_label("open a file")
    for content in (b"\x00\xff", b"[1, 2", b'{"format": "attngeom/coefficients", "version": 1, "d": 1e999}'):
        drop.set_input_files([{"name": "bad<b>.json", "mimeType": "application/json", "buffer": content}])
        page.locator("#answer .refusal").wait_for()
    layer = attngeom.random_weights(attngeom.Architecture((3, 2), 1, tokens=2), RR, 0)
    good = json.dumps(coefficients_to_json(attngeom.coefficients(layer))).encode()
    drop.set_input_files([{"name": "good.json", "mimeType": "application/json", "buffer": good}])
    assert_that(verdict).to_have_attribute("data-verdict", "realizable")


def test_tables_and_files_are_the_same_map(tmp_path):
    name, content = VIEW.module.DOWNLOADS["coefficients"](state_of({}))
    (tmp_path / name).write_bytes(content)
    shelf = Shelf.of_paths([tmp_path / name])
    again = given(state_of({"source": "file", "file": "1"}, shelf))
    assert coefficients_to_json(again) == coefficients_to_json(given(state_of({})))
