"""Examples of properties are the same in every run, whatever was loaded before."""

import importlib.util
import sys

from hypothesis import given
from hypothesis import strategies as st


def drawn():
    seen = []

    @given(st.lists(st.integers(0, 10**6)), st.floats(), st.text())
    def draw(numbers, number, text):
        seen.append(repr((numbers, number, text)))

    draw()
    return seen


def test_modules_that_are_loaded_change_no_example(tmp_path, monkeypatch):
    before = drawn()
    path = tmp_path / "loaded_meanwhile.py"
    path.write_text(f"NUMBERS = {list(range(700_000, 700_500))}\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    monkeypatch.setitem(sys.modules, path.stem, module := importlib.util.module_from_spec(spec))
    spec.loader.exec_module(module)
    assert len(before) > 5 and drawn() == before
