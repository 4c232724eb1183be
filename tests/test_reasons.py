"""A reason is a sentence for people: no code reads it, and no text is a type."""

import ast

import pytest

from tests.sources import SOURCE

TEXTS = ("reason", "why", "sentence")
READING = ("startswith", "endswith", "split", "partition", "rpartition", "removeprefix", "removesuffix")
NO_SENTENCE = {
    "results.py": "a card shows the standing as a badge and does not repeat the word; nothing is decided by it",
    "atlas/store.py": "the reason of a task that failed is one of a list: TaskFailure.reason",
}


def is_text(node: ast.AST) -> bool:
    return getattr(node, "attr", getattr(node, "id", None)) in TEXTS


def parsed(text: str) -> list[int]:
    """Lines in which the text of a reason is taken apart, searched or compared with a literal.

    >>> parsed("if why.startswith('outside'): pass\\nx = 'known' in x.reason\\ny = why == 'no'\\nz = f'{why}'")
    [1, 2, 3]
    """
    lines = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in READING and is_text(value):
                lines.append(node.lineno)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re")), args=given) if any(map(is_text, given)):
                lines.append(node.lineno)
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[where]) if is_text(where):
                lines.append(node.lineno)
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
                literal = any(isinstance(x, ast.Constant | ast.JoinedStr) for x in (left, right))
                lines += [node.lineno] if literal and (is_text(left) or is_text(right)) else []
            case ast.Subscript(value=value, slice=ast.Constant()) if is_text(value):
                lines.append(node.lineno)
    return sorted(lines)


def classes_of_text(text: str) -> list[str]:
    """Classes that are strings; enumerations are types of their own."""
    classes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
    return [x.name for x in classes if [base.id for base in x.bases if isinstance(base, ast.Name)][:1] == ["str"]]


def test_no_reason_is_parsed():
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name, text = path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8")
        found[name] = parsed(text) if name not in NO_SENTENCE else []
        assert classes_of_text(text) == [], name
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "text", ["reason.split(':')[0]", "'x' in why", "re.match('a', answer.reason)", "'no' == reason", "reason[0]"]
)
def test_a_parsed_reason_is_seen(text):
    assert parsed(text) == [1]
    assert classes_of_text("class Outside(str): pass") == ["Outside"]
