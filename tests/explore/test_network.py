"""The view "your network": what it shows is what ``analyze`` computes, and no code is run for a page."""

import json
import shlex

import pytest

import attngeom
from attngeom.cli.app import run
from attngeom.cli.net import trace_network
from attngeom.errors import AttnGeomError
from attngeom.explore.controls import read_state
from attngeom.explore.server import Explorer
from attngeom.explore.shelf import Shelf
from attngeom.explore.views import find_view
from tests.explore.asking import ask
from tests.explore.conftest import INPUTS

VIEW = find_view("network")
NETWORK = f"{INPUTS / 'network.py'}:attention"
UNDECIDED = """
import numpy as np
weights, inputs = {"a": (), "b": ()}, (1,)
def cubic(w, x):
    number = w["a"] + w["b"] ** 3
    return np.tanh(number * x) + np.tanh(number**2 * x * x)
"""
"""Along the fiber ∂/∂b − 3b² ∂/∂a, which is no linear field; and no count of coefficients shows it."""


@pytest.fixture
def state_of():
    """The state of the view with one network on the shelf, which holds its folder until the test ends."""
    shelf = Shelf()

    def keep(name, **texts):
        key = shelf.keep(name, trace_network(name).to_json()).key
        return read_state(VIEW.controls, {"file": key, **texts}, shelf)

    yield keep
    shelf.close()


def test_page_lines_and_library_agree(state_of, capsys):
    state = state_of(NETWORK, seed="3")
    expected = attngeom.analyze(trace_network(NETWORK), seed=3)
    shown, page = VIEW.show(state), VIEW.work("analyze", state, lambda done, total: None)
    assert expected.program.digest in shown and "<td>2×3</td>" in shown and 'data-job="analyze" data-auto' in shown
    assert f">{expected.dimension} <small>of {expected.parameters} weights" in page
    assert "4</b><span>gl(2) on K.0, Q.0" in page and expected.laws[0] in page and "badge proven" in page
    assert run([*shlex.split(VIEW.module.command(state))[1:], "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["dimension"] == expected.dimension and said["program"]["sha256"] == expected.program.digest
    exec(VIEW.module.python(state), {})
    assert f"dimension             {expected.dimension}\n" in capsys.readouterr().out


def test_bounds_that_do_not_meet_are_no_dimension(state_of, tmp_path):
    (tmp_path / "net.py").write_text(UNDECIDED)
    page = VIEW.work("analyze", state_of(f"{tmp_path / 'net.py'}:cubic"), lambda done, total: None)
    assert "badge undecided" in page and ">at least 1 <small>of 2 weights" in page and "rank mod p" in page
    assert "not explained by a symmetry" in page


@pytest.mark.parametrize("dropped", ["raise SystemExit", "{}", '{"format": "attngeom/program"}', "[" * 5000, ""])
@pytest.mark.parametrize("name", ["net.py", "net.json"])
def test_dropped_files_are_data_or_refused(dropped, name, tmp_path):
    (tmp_path / name).write_text(dropped)
    state = read_state(VIEW.controls, {"file": "1"}, Shelf.of_paths([tmp_path / name]))
    for ask_view in (VIEW.show, lambda given: VIEW.work("analyze", given, lambda done, total: None)):
        with pytest.raises(AttnGeomError) as refused:
            ask_view(state)
        assert len(str(refused.value)) <= 200 and "\n" not in str(refused.value)
        assert name == "net.json" or "never run" in str(refused.value)


def test_code_runs_once_when_the_server_starts_and_never_for_a_page(tmp_path):
    (tmp_path / "net.py").write_text(
        "from pathlib import Path\n"
        f"Path({str(tmp_path / 'runs')!r}).open('a').write('x')\n"
        "weights, inputs = {'W': (2, 2)}, [(2,)]\n"
        "def f(w, x): return w['W'] @ x\n"
    )
    name = f"{tmp_path / 'net.py'}:f"
    with Explorer(networks={name: trace_network(name)}) as server:
        state = read_state(VIEW.controls, {"file": "1"}, server.shelf)
        (tmp_path / "net.py").write_text("raise SystemExit")
        VIEW.show(state)
        page = VIEW.work("analyze", state, lambda done, total: None)
    assert ">4 <small>of 4 weights" in page and (tmp_path / "runs").read_text() == "x"


@pytest.mark.parametrize("bad", ["nothing.py:f", "network.py", "network.py:missing", "network.py:branch"])
def test_bad_networks_end_the_command_with_one_line(bad, capsys):
    assert run(["explore", "--no-browser", "--net", str(INPUTS / bad)]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1


def test_without_a_network_the_page_says_how_to_start(server):
    reply, page = ask(server, "POST", "network/answer", body=b"file=")
    assert reply.status == 200 and "attngeom explore --net FILE.py:NAME" in page


def test_browser_analyses_the_network_of_the_command_line(visit, assert_that):
    page = visit("")
    page.get_by_role("link", name="Your network").first.click()
    assert_that(page.get_by_label("Network", exact=True)).to_have_value("3")
    expected = attngeom.analyze(trace_network(NETWORK))
    assert_that(page.locator("#network .number")).to_have_text(f"{expected.dimension} of {expected.parameters} weights")
    assert_that(page.locator("#network .badge")).to_have_text("proven")
    assert_that(page.locator("#job .legend")).to_contain_text("gl(2) on K.0, Q.0")
    drop = page.get_by_label("open a file")
    drop.set_input_files([{"name": "evil.py", "mimeType": "text/x-python", "buffer": b"open('/tmp/x', 'w')"}])
    assert_that(page.locator("#answer .refusal")).to_contain_text("code is never run for a page")
    for width in (1280, 400):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
