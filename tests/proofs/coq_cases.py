"""Maps of every verdict and family at a given width, for exports to Coq."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attngeom.exact import QQ
from attngeom.layer.coefficients import Coefficients
from tests.certification.cases import cubics, from_matrices, from_table, table


def larger_cases(d: int) -> Iterator[tuple[str, Coefficients, int | None]]:
    """Name, coefficients, attention width."""
    rng = np.random.default_rng(d)
    full = QQ.convert(rng.integers(-3, 4, (d, d)) + 5 * np.eye(d, dtype=int))
    V = QQ.convert(rng.integers(-3, 4, (2, d)))
    yield "realizable", from_matrices(full, V, 2), None
    yield "attention-rank", from_matrices(full, V, 2), d // 2
    yield "real quadratic", from_table(table(d, 1, {(0, 0, 0, 0): 1, (0, d - 1, d - 1, 0): -2}), 2), None
    yield "closure", from_table(table(d, 1, {(0, 0, 0, 0): 1, (0, d - 1, d - 1, 0): 2}), 2), None
    rows = {(0, 0, 0, 0): 1, (0, 0, d - 1, 1): 1, (1, 0, d - 1, 0): 1, (1, 0, 0, 1): 1}
    yield "segre", from_table(table(d, 2, rows), 2), None
    yield "resultant", from_table(table(d, 2, {(0, 0, 0, 0): 1, (1, d - 1, d - 1, 0): 1}), 2), None
    if d >= 3:
        yield "pencil", from_table(table(d, 1, {(0, 0, 0, 0): 1, (0, 1, 1, 1): 1, (0, d - 1, d - 1, 2): 1}), 2), None
        yield "line", from_table(table(d, 1, {(0, 0, 0, 0): 1, (0, 0, 1, 1): 1, (0, 1, 1, 2): 1}), 2), None
        yield "shared", cubics(d, [{(0, 1, 2): 1}, {(0, 0, 1): 1}, {(0, 0, 2): 1}]), None
    broken = from_matrices(full, V, 2)
    single = broken.single.copy()
    single[0, 1, 0] += 1
    yield "copy", Coefficients(d, 2, 2, single, broken.cross, QQ), None
