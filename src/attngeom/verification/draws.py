"""Samples of a program at which all that outputs need exists, drawn prime by prime from the innermost exponentials out.

Inputs at different levels are independent, so that the tries for the roots of each level add up.
"""

from __future__ import annotations

from collections.abc import Sequence

from attngeom.exact.arrays import Array
from attngeom.limits.recheck import DRAWN_SAMPLES
from attngeom.verification.interpreter import Interpreter, Values


def draw_sample(
    interpreter: Interpreter, needed: Sequence[Array], start: int, lowest: int
) -> tuple[Values | None, int, int]:
    """The values of the level ``lowest`` at the first such sample from an index on, the next index, and the tries.

    None where one level took too many tries, or where a number that rests on no input is missing.
    """
    program = interpreter.program
    varies, patterns = program.reached("input"), interpreter.patterns(start)
    flags = {
        place: needed[place].reshape(node.shape)
        for place, node in enumerate(program.nodes)
        if node.operation in ("root", "inverse", "formal")
    }
    below: Values = []
    last, tries = start, 0
    for level in range(interpreter.levels, lowest - 1, -1):
        for index in range(start, start + DRAWN_SAMPLES):
            values = interpreter.run_level(level, index, below, patterns, flags)
            tries += 1
            gone = [k for k, x in enumerate(values) if x is not None and k in flags and x[1][flags[k]].any()]
            if not gone:
                break
            if not varies[gone[0]]:
                return None, last + 1, tries
        else:
            return None, last + 1, tries
        below, last = values, max(last, index)
    return below, last + 1, tries
