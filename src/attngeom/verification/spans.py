"""How many dimensions the inputs of each layer can span, from the sizes alone."""

from __future__ import annotations

from math import comb

from attngeom.network.architecture import Architecture


def count_cubics(d: int, parallel: bool) -> int:
    """Cubics of one output row: quadratic in one token and linear in another, or of a single token."""
    return comb(d + 2, 3) if parallel else d * comb(d + 1, 2)


def reached_widths(architecture: Architecture) -> list[int]:
    """How many dimensions the inputs of each layer, and the outputs of the last one, can span.

    >>> reached_widths(Architecture((2, 5, 3), 2))
    [2, 2, 2]
    """
    spans = [architecture.widths[0]]
    for layer in architecture.layers:
        d = spans[-1]
        if architecture.residual:
            spans.append(layer.d_out)
            continue
        reach = d if layer.value_width is None else layer.heads * min(layer.value_width, d)
        if architecture.rule.is_polynomial:
            reach = min(reach, count_cubics(d, architecture.tokens == 1))
        elif architecture.tokens == 1 and architecture.rule.is_normalised:
            reach = min(reach, d)
        spans.append(min(layer.d_out, reach))
    return spans
