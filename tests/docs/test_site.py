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
    code = "\n\n```text\na_b\n```\n\n    k_l = 1\n\n`c_d` "
    source = [f"(x)_j, or (y)_j{code}[e_f](g_h.md) $i_j$\n"]
    extension("indices").escape(None, "page", source)
    assert source == [f"(x)\\_j, or (y)\\_j{code}[e\\_f](g_h.md) $i_j$\n"]


def test_files_have_their_name():
    source = ["```json tiny.json\n{}\n```\n```json\n{}\n```\n"]
    extension("files").name_files(None, "page", source)
    assert source == ["```{code-block} json\n:caption: tiny.json\n\n{}\n```\n```json\n{}\n```\n"]


def test_words_are_entries_of_the_glossary():
    entries = (ROOT / "docs" / "explanation" / "glossary.md").read_text(encoding="utf-8").splitlines()
    assert set(extension("terms").WORDS) <= set(entries)


def test_versions_are_listed_newest_first_and_lead_to_the_newest_release():
    spec = importlib.util.spec_from_file_location("versions", ROOT / "docs" / "versions.py")
    versions = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(versions)
    assert versions.releases(["v0.9.0", "v1.10.1", "v1.9.0", "v1.10", "w1.2.3"]) == ["1.10.1", "1.9.0", "0.9.0"]
    assert "url=1.10.1/index.html" in versions.start_page(["dev", "1.10.1", "0.9.0"])
    assert "url=dev/index.html" in versions.start_page(["dev"])


def test_the_list_of_versions_links_the_others():
    jinja = pytest.importorskip("jinja2")
    text = (ROOT / "docs" / "_templates" / "sidebar" / "versions.html").read_text(encoding="utf-8")

    def draw(versions):
        return jinja.Template(text).render(
            versions=versions, here="1.0.0", release="1.0.0", pathto=lambda path, _: "../" + path
        )

    drawn = draw(["dev", "1.0.0", "0.9.0"])
    assert 'href="../../dev/index.html"' in drawn and 'href="../../0.9.0/index.html"' in drawn
    assert "<strong>1.0.0</strong>" in drawn and "1.0.0/index" not in drawn.replace("0.9.0", "")
    assert draw([]) == ""
