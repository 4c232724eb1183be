"""Names in the sources are words that a reader can look up, and say what they hold."""

import ast
from pathlib import Path

import pytest

from tests.sources import SOURCE

PRIVATE = {"bend", "bends", "cool", "lively", "misfit", "misfits", "quiet", "settle", "settled", "turned"}
OPTIONS = {"quiet"}
"""An option of another library, which is given by its name."""


def variables(tree: ast.AST) -> set[str]:
    """Names that are assigned, and names of functions, classes and parameters.

    >>> sorted(variables(ast.parse("def f(a, *, b=1):\\n    found = a.c\\n    return found + x")))
    ['a', 'b', 'f', 'found']
    """
    names = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
    return names


def private(names: set[str]) -> set[str]:
    """Names that hold a private word.

    >>> sorted(private({"_is_lively", "settle", "cooler", "unsettled"}))
    ['_is_lively', 'settle']
    """
    return {name for name in names if PRIVATE & set(name.lower().split("_"))}


def sources() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def test_names_have_no_private_words():
    assert len(sources()) > 300
    for path in sources():
        assert private(variables(ast.parse(path.read_text(encoding="utf-8")))) - OPTIONS == set(), path


def test_no_local_variable_says_only_that_it_was_found():
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                stored = {x.id for x in ast.walk(node) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}
                assert "found" not in stored, f"{path}: {node.name}"


@pytest.mark.parametrize("text", ["def bend(): pass", "x_settled = 1", "class Settle: pass", "lambda turned: 1"])
def test_a_private_word_is_seen(text):
    assert private(variables(ast.parse(text)))
