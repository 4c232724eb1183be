"""What the site makes of a page before it is drawn: indices, names of files, words of the glossary."""

import importlib.util
import itertools
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def extension(name):
    pytest.importorskip("sphinx")
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(x_jᵀ M x_k)_j", [("x", "j"), ("x", "k"), (")", "j")]),
        ("S_222 ⊗ S_λV", [("S", "222"), ("S", "λ")]),
        ("M'_i, B_0A_0", [("'", "i"), ("B", "0"), ("A", "0")]),
        ("C^d, 2^61, q^{3^{l-i}}", [("C", "d"), ("2", "61"), ("q", "3l-i")]),
        ("not_realizable, A_0a, is_proven, two_points", []),
    ],
)
def test_indices_are_found_and_names_stay(text, found):
    indices = extension("indices")
    pieces = indices.split(text)
    marks = [(before.astext()[-1], mark.astext()) for before, mark in itertools.pairwise(pieces) if mark.children]
    assert marks == found
    assert "".join(piece.astext() for piece in pieces) == text or found


def test_underscores_of_text_are_no_emphasis():
    source = ["(x)_j, or (y)_j\n\n```text\na_b\n```\n\n`c_d` [e_f](g_h.md) $i_j$\n"]
    extension("indices").escape(None, "page", source)
    assert source == ["(x)\\_j, or (y)\\_j\n\n```text\na_b\n```\n\n`c_d` [e\\_f](g_h.md) $i_j$\n"]


def test_files_have_their_name():
    source = ["```json tiny.json\n{}\n```\n```json\n{}\n```\n"]
    extension("files").name_files(None, "page", source)
    assert source == ["```{code-block} json\n:caption: tiny.json\n\n{}\n```\n```json\n{}\n```\n"]


def test_words_are_entries_of_the_glossary():
    entries = (ROOT / "docs" / "explanation" / "glossary.md").read_text(encoding="utf-8").splitlines()
    assert set(extension("terms").WORDS) <= set(entries)
