"""The sources of the package, as statements: what tests of its structure look at."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "attngeom"
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def statements(path: Path) -> Iterator[ast.AST]:
    """Every statement of a file, however deep it stands. Expressions hold none, so they are not walked.

    >>> names = [node.names[0].name for node in statements(Path(__file__)) if isinstance(node, ast.Import)]
    >>> names
    ['ast']
    """
    left: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while left:
        node = left.pop()
        yield node
        for block in BLOCKS:
            left += getattr(node, block, ())
