"""The sources of the package, as statements: what tests of its structure look at."""

import ast
from collections.abc import Iterator
from functools import cache
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


@cache
def import_statements(path: Path) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The modules that a file imports, however deep the statement stands, each with the names taken from it.

    >>> import_statements(Path(__file__))[-2:]
    (('collections.abc', ('Iterator',)), ('ast', ()))
    """
    found: list[tuple[str, tuple[str, ...]]] = []
    for node in statements(path):
        if isinstance(node, ast.Import):
            found += [(alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.append((str(node.module), tuple(alias.name for alias in node.names)))
    return tuple(found)
