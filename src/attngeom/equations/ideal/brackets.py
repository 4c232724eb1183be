"""Highest weight vectors in readable form: combinations of products of minors, as [11,12][12,22] - [11,22]^2."""

from __future__ import annotations

from collections import Counter

from attngeom.equations.ideal.highest_weights import HighestWeightEngine
from attngeom.exact.arrays import Array
from attngeom.exact.domains import matmul_mod
from attngeom.exact.lifting import reconstruct_array
from attngeom.exact.multisets import pairs
from attngeom.exact.partitions import Partition, column_lengths


def bracket_forms(engine: HighestWeightEngine, lam: Partition, mu: Partition, a: int) -> list[str]:
    """The highest weight vectors of weight (λ, μ) in the ideal as text; indices count from 1.

    [ij,kl,…] is the minor of Y (Y_ii = y_ii, Y_ij = 2 y_ij) with those rows and the first columns. The coefficients
    are lifted from one prime, which is a guess: for a proof use
    :func:`~attngeom.equations.ideal.generators.highest_weight_vectors`.

    >>> bracket_forms(HighestWeightEngine(2, 2), (4, 4), (2, 2), 2)
    ['-[11,12][12,22] + [11,22]^2']
    """
    space = engine.space(lam, mu)
    vectors = matmul_mod(engine.ideal(lam, mu, a), space.vectors, engine.prime)
    lifted = reconstruct_array(vectors, engine.prime)
    if lifted is None:
        raise ArithmeticError(f"coefficients of weight {lam}, {mu} are too large to lift from one prime")
    words = [_bracket_word(engine, mu, tableau) for tableau in space.tableaux]
    return [_format_sum(row, words) for row in lifted]


def _bracket_word(engine: HighestWeightEngine, mu: Partition, tableau: Array) -> str:
    names = [f"{i + 1}{j + 1}" for i, j in pairs(engine.d)]
    columns = [
        "[" + ",".join(names[row] for row in engine.basis.columns(length)[number]) + "]"
        for length, number in zip(column_lengths(mu), tableau)
    ]
    return "".join(word + (f"^{power}" if power > 1 else "") for word, power in Counter(columns).items())


def _format_sum(row: Array, words: list[str]) -> str:
    parts = []
    for c, word in zip(row, words):
        if c != 0:
            size = "" if abs(c) == 1 else f"{abs(c)} "
            parts.append(("- " if c < 0 else "+ ") + size + word)
    text = " ".join(parts)
    return text[2:] if text.startswith("+ ") else "-" + text[2:]
