"""The certificate viewer: its steps end as ``verify`` does, for good, forged and damaged certificates."""

import json

import pytest

from attngeom import verify
from attngeom.explore.controls import read_state
from attngeom.explore.shelf import Shelf
from attngeom.explore.views import find_view
from attngeom.explore.views.certificate import recheck
from tests.explore.conftest import INPUTS

VIEW = find_view("certificate")
FILES = sorted(path.name for path in INPUTS.glob("certificate_*.json"))


def state_of(path):
    return read_state(VIEW.controls, {"file": "1"}, Shelf.of_paths([path]))


@pytest.mark.parametrize("name", [*FILES, "deep.json", "broken_nan.json", "broken_header.safetensors"])
def test_steps_end_as_verify_does(name):
    state = state_of(INPUTS / name)
    verdict = verify(INPUTS / name)
    steps, _ = recheck(state["file"], verdict)
    assert all(step.passed for step in steps[:-1])
    assert (len(steps) == 5 and steps[-1].passed is True) is (verdict.valid is True)
    if verdict.valid:
        assert steps[-1].found == verdict.reason and steps[-2].found == verdict.claim
    marked = {True: "valid", False: "invalid", None: "undecided"}[verdict.valid]
    assert f'data-verdict="{marked}"' in VIEW.show(state)


def test_large_ones_are_rechecked_by_a_job(tmp_path):
    padded = (INPUTS / "certificate_layer.json").read_text() + " " * 2**18
    (tmp_path / "large.json").write_text(padded)
    assert 'data-job="recheck"' in VIEW.show(state_of(tmp_path / "large.json"))
    assert 'data-verdict="valid"' in VIEW.work("recheck", state_of(tmp_path / "large.json"), print)


def test_browser_shows_each_step(visit, assert_that):
    page = visit("certificate")
    page.get_by_label("Certificate", exact=True).select_option("1")
    assert_that(page.locator("#verdict")).to_have_attribute("data-verdict", "valid")
    assert page.locator("#steps tbody tr").count() == 5
    record = json.loads((INPUTS / "certificate_layer.json").read_text())
    record["provenance"]["note<b>"] = "<script>alert(1)</script>"
    drop = page.get_by_label("open a file")
    content = json.dumps(record).encode()
    drop.set_input_files([{"name": "<u>x</u>.json", "mimeType": "application/json", "buffer": content}])
    assert_that(page.locator("#verdict")).to_have_attribute("data-verdict", "invalid")
    assert_that(page.locator("#steps tbody tr").last).to_contain_text("digest")
    assert_that(page.locator("code").first).to_contain_text("<u>x</u>.json")


DROP = """(place, [name, text]) => {
  const held = new DataTransfer();
  held.items.add(new File([text], name));
  place.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: held }));
}"""


def test_browser_takes_files_that_are_dropped_anywhere(visit, assert_that):
    page = visit("certificate")
    text = (INPUTS / "certificate_closure.json").read_text()
    page.locator("h1").evaluate(DROP, ["dropped.json", text])
    assert_that(page.locator("#verdict")).to_have_attribute("data-verdict", "valid")
    page.locator("h1").evaluate(DROP, ["other.json", "[" * 5000])
    assert_that(page.locator("#verdict")).to_have_attribute("data-verdict", "invalid")
