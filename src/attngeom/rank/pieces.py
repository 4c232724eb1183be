"""The pieces of a program with signs and orders: on each, patterns are constants.

What is related on one piece need not be so on another: log((x² + 1)² + relu(−x)) is 2 log(x² + 1) for x > 0 alone. So
hypotheses on values are tested on every piece that the samples of a rank lie in.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from attngeom.errors import SizeError
from attngeom.exact.arrays import Array
from attngeom.limits.work import TESTED_PIECES
from attngeom.programs.points import NamedPoint, Sample
from attngeom.programs.program import Node, Program


def pieces_of(point: NamedPoint, samples: Sequence[Sample], places: Sequence[int]) -> dict[bytes, NamedPoint]:
    """The point of each program that has constants in the place of the patterns at some samples, by its signs.

    Patterns on which the arguments of the nodes ``places`` do not rest make no pieces of their own. SizeError where the
    pieces are more than are tested.

    >>> from attngeom.programs import trace
    >>> program = trace(lambda w, x: np.log(w["a"] ** 2 + np.maximum(x, 0)), (), weights={"a": ()})
    >>> point = NamedPoint(program, "doc")
    >>> pieces = pieces_of(point, point.draw(20), list(program.places("formal")))
    >>> len(pieces), [any(piece.program.places("pattern")) for piece in pieces.values()]
    (2, [False, False])
    """
    program = point.program
    if not _telling(program, places):
        return {b"": point}
    first: dict[bytes, dict[int, Array]] = {}
    for signs, patterns in _signs(point, samples, places):
        first.setdefault(signs, patterns)
    size = sum(node.size for node in program.nodes)
    if len(first) * size > TESTED_PIECES:
        raise SizeError(f"{len(first):,} pieces, too many to test for relations")
    return {signs: _fix(point, patterns) for signs, patterns in first.items()}


def lie_in(pieces: Container[bytes], point: NamedPoint, samples: Sequence[Sample], places: Sequence[int]) -> list[bool]:
    """For each sample whether it lies in one of these pieces, given by their signs."""
    return [signs in pieces for signs, _ in _signs(point, samples, places)]


def _telling(program: Program, places: Sequence[int]) -> list[int]:
    """The patterns on which the arguments of these nodes rest."""
    return sorted(program.ancestors(places).intersection(program.places("pattern")))


def _signs(
    point: NamedPoint, samples: Sequence[Sample], places: Sequence[int]
) -> Iterator[tuple[bytes, dict[int, Array]]]:
    """For each sample the signs that tell its piece, and all patterns."""
    telling = _telling(point.program, places)
    for start in range(0, len(samples), point.batch):
        part = samples[start : start + point.batch]
        patterns, _ = point.patterns(part)
        wide = {k: np.broadcast_to(x, (len(part), *x.shape[1:])) for k, x in patterns.items()}
        for row in range(len(part)):
            signs = b"".join(np.packbits(wide[k][row] > 0).tobytes() for k in telling)
            yield signs, {k: x[row] for k, x in wide.items()}


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
