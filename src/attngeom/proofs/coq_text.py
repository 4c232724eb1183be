"""How numbers, vectors, matrices and terms are written in Coq."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

# Goals that are computations. The kernel does each once, at Qed; the tactic vm_compute would do it before, too.
IS_TRUE, IS_FALSE = "vm_cast_no_check (eq_refl true)", "vm_cast_no_check (eq_refl false)"
IS_NEGATIVE = "vm_cast_no_check (eq_refl Lt)"
DIFFERS = f"apply Z.eqb_neq; {IS_FALSE}"
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
