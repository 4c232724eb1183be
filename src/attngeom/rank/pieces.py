"""The pieces of a program with signs and orders: on each, patterns are constants.

What is related on one piece need not be so on another: log((x² + 1)² + relu(−x)) is 2 log(x² + 1) for x > 0 alone. So
hypotheses on values are tested on every piece that the samples of a rank lie in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from attngeom.errors import SizeError
from attngeom.exact.arrays import Array
from attngeom.limits.work import TESTED_PIECES
from attngeom.programs.points import NamedPoint, Sample
from attngeom.programs.program import Node, Program


def pieces_of(point: NamedPoint, samples: Sequence[Sample], places: Sequence[int]) -> list[NamedPoint]:
    """The point of each program that has constants in the place of the patterns at some samples.

    Patterns on which the arguments of the nodes ``places`` do not rest make no pieces of their own. SizeError where the
    pieces are more than are tested.

    >>> from attngeom.programs import trace
    >>> program = trace(lambda w, x: np.log(w["a"] ** 2 + np.maximum(x, 0)), (), weights={"a": ()})
    >>> point = NamedPoint(program, "doc")
    >>> pieces = pieces_of(point, point.draw(20), list(program.places("formal")))
    >>> len(pieces), [any(piece.program.places("pattern")) for piece in pieces]
    (2, [False, False])
    """
    program = point.program
    chosen = sorted(program.ancestors(places) & set(point.pattern_places))
    if not chosen:
        return [point]
    first: dict[bytes, dict[int, Array]] = {}
    for start in range(0, len(samples), point.batch):
        part = samples[start : start + point.batch]
        patterns, _ = point.patterns(part)
        wide = {k: np.broadcast_to(x, (len(part), *x.shape[1:])) for k, x in patterns.items()}
        for row in range(len(part)):
            key = b"".join(np.packbits(wide[k][row] > 0).tobytes() for k in chosen)
            first.setdefault(key, {k: x[row] for k, x in wide.items()})
    size = sum(node.size for node in program.nodes)
    if len(first) * size > TESTED_PIECES:
        raise SizeError(f"{len(first):,} pieces, too many to test for relations")
    return [_fix(point, patterns) for patterns in first.values()]


def _fix(point: NamedPoint, patterns: dict[int, Array]) -> NamedPoint:
    nodes = list(point.program.nodes)
    for place, pattern in patterns.items():
        entries = tuple(map(Fraction, pattern.astype(int).ravel().tolist()))
        nodes[place] = Node("constant", (), nodes[place].shape, {"entries": entries})
    return replace(point, program=Program(tuple(nodes), point.program.output))


def chosen_by_signs(whole: Program, piece: Program, places: Sequence[int]) -> bool:
    """Whether inputs reach some argument of the nodes ``places`` through signs alone: on the piece they do not.

    Such values of weights are others on other pieces, and may be related to those.
    """
    sources = [piece.nodes[place].inputs[0] for place in places]
    return any(whole.depends_on_input[k] and not piece.depends_on_input[k] for k in sources)
