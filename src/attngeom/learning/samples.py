"""How many samples determine a function: one more than the dimension, whatever the number of parameters is."""

from __future__ import annotations

from attngeom.dimensions import dimension
from attngeom.errors import InputError
from attngeom.network.architecture import Architecture


def samples_needed(architecture: Architecture, *, seed: int = 0) -> tuple[int, int]:
    """(D, D + 1) for the dimension D: random numbers ⟨C_n, φ(X_n)⟩ that leave finitely many functions, and only one.

    Theorem N of docs/theorems/training.md. For samples (X_n, C_n) from a density on an open set D + 1 of them determine
    every function of the architecture, almost surely; D leave finitely many; D − 1 leave infinitely many for a
    generic function. 2D + 1 do for all functions at once. The numbers are as strong as the dimension is.

    >>> samples_needed(Architecture((2, 2), 1, tokens=2))
    (6, 7)
    """
    answer = dimension(architecture, seed=seed)
    if answer.samples is None:
        raise InputError(f"an architecture without a known dimension given ({answer.reason}); try attngeom dim --prove")
    return answer.samples
