"""How numbers, vectors, matrices and terms are written in Coq."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

CHECK = "vm_compute; reflexivity"
DIFFERS = "vm_compute; discriminate"
Vector = Sequence[int]
Matrix = Sequence[Sequence[int]]


def integer(x: int) -> str:
    """An integer inside of a list of integers.

    >>> integer(-3), integer(4)
    ('(-3)', '4')
    """
    return f"({x})" if x < 0 else str(x)


def integers(values: Iterable[int]) -> str:
    return f"[{';'.join(map(integer, values))}]%Z"


def vector(values: Vector) -> str:
    """A function from indices to integers.

    >>> vector([1, 0])
    '(vec [1;0]%Z)'
    """
    return f"(vec {integers(values)})"


def rows(values: Matrix) -> str:
    return f"[{';'.join('[' + ';'.join(map(integer, row)) + ']' for row in values)}]%Z"


def matrix(values: Matrix) -> str:
    return f"(matz {rows(values)})"


def listed(items: Iterable[str], separator: str = ";\n  ") -> str:
    return f"[{separator.join(items)}]"


def theorem(statement: str, proof: str) -> str:
    """The theorem of a file; all are called ``certified``."""
    return f"Theorem certified : {statement}.\nProof.\n  {proof}\nQed.\n"
