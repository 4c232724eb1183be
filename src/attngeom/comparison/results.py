"""What a comparison answers: same function or not, how sure that is, and the witness."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from attngeom import digits
from attngeom.exact.domains import QQ, Array, Domain
from attngeom.inspection.fibers import VirtualFiber, virtual_fiber
from attngeom.limits.shown import SIGNIFICANT_DIGITS
from attngeom.network import Symmetry, Weights
from attngeom.network.symmetry.element import matrix_to_json, symmetry_to_json
from attngeom.results import Result

Report = Callable[[str, int, int | None], None]
"""Called with what is done, how much of it is done, and how much there is (None: that is not known before)."""
VERDICTS = {True: "same function", False: "different functions", None: "cannot be told"}


def ignore(what: str, done: int, total: int | None) -> None:
    """Tell nobody of the work."""


@dataclass(frozen=True, eq=False)
class Separation:
    """An input on which two networks differ, with both outputs over ``domain``.

    Over GF(p) the outputs are residues: different residues prove that the rational outputs differ.
    """

    X: Array
    outputs: tuple[Array, Array]
    domain: Domain

    def to_json(self) -> dict[str, Any]:
        """Input and outputs; balls are written as midpoint and radius."""
        inputs: Domain = self.domain if self.domain.rounds else QQ
        record: dict[str, Any] = {
            "separating_input": matrix_to_json(self.X, inputs),
            "outputs": [matrix_to_json(output, self.domain) for output in self.outputs],
            "outputs_domain": self.domain.name,
        }
        if self.domain.characteristic:
            record["outputs_prime"] = self.domain.characteristic
        return record

    def rows(self) -> dict[str, str]:
        """Input and outputs for people: six digits of floats and balls."""
        record = self.to_json()
        outputs = record["outputs"]
        if self.domain.encloses:
            outputs = [[[x.str(SIGNIFICANT_DIGITS) for x in row] for row in output] for output in self.outputs]
        shown = {f"output of {name}": digits.matrix(output) for name, output in zip("AB", outputs)}
        return {"separating input": digits.matrix(record["separating_input"]), **shown}


@dataclass(frozen=True)
class Ruling:
    """Whether two networks are one function (None: not told by this test), and why."""

    same: bool | None
    reason: str = ""


UNTOLD = Ruling(None)


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison(Result):
    """The answer to "same function?": True, False or None (cannot be told), and what it rests on.

    ``symmetry`` carries the first weights to the second; over Q it is checked first and written out by ``carrier`` when
    it is asked for. ``separation`` is an input with different outputs.
    ``error_probability`` bounds the chance of a wrong True that rests on evaluation modulo ``primes``. Inputs and
    primes on which a True rests alone are drawn from ``entropy`` of the run, not from a seed that a file could know.
    ``failed_hypotheses`` says which hypotheses of the theorems on fibers do not hold, when no symmetry was found.
    ``mixings`` holds, for each layer, the matrix that mixes heads. ``fiber`` is the fiber in (M, L) of the weights
    ``virtual``, the first ones, where theorems on these were asked; it is found when it is asked for. ``residual`` is
    what floats miss after alignment, ``difference`` what the outputs differ by, and ``noise`` what weights known to
    ``tolerance`` would explain of it.
    """

    same_function: bool | None
    carrier: Symmetry | Callable[[], Symmetry] | None = None
    separation: Separation | None = None
    error_probability: float | None = None
    primes: tuple[int, ...] = ()
    entropy: int | None = None
    failed_hypotheses: tuple[str, ...] = ()
    mixings: tuple[Array | None, ...] = ()
    virtual: Weights | None = None
    residual: float | None = None
    difference: float | None = None
    noise: float | None = None
    tolerance: float | None = None

    @cached_property
    def symmetry(self) -> Symmetry | None:
        """The group element that carries the first weights to the second, or None."""
        return self.carrier() if callable(self.carrier) else self.carrier

    @cached_property
    def fiber(self) -> VirtualFiber | None:
        """The fiber of the first weights in (M, L), or None."""
        return None if self.virtual is None else virtual_fiber(self.virtual)

    @classmethod
    def proven(cls, same: bool, reason: str, **found: Any) -> Comparison:
        """An answer that rests on a witness or on an exact computation."""
        return cls(same_function=same, standing="proven", reason=reason, **found)

    @property
    def is_positive(self) -> bool | None:
        return self.same_function

    def to_json(self) -> dict[str, Any]:
        """The JSON object that ``attngeom compare`` prints."""
        record: dict[str, Any] = {
            "same_function": self.same_function,
            "reason": self.reason,
            "proven": self.is_proven,
            "symmetry": None if self.symmetry is None else symmetry_to_json(self.symmetry),
            "separating_input": None,
            "error_probability": self.error_probability,
            "failed_hypotheses": list(self.failed_hypotheses),
            "seed": self.seed,
            "standing": self.standing,
        }
        if self.entropy is not None:
            record["entropy"] = str(self.entropy)
        if self.primes:
            record["primes"] = list(self.primes)
        if self.fiber is not None:
            record["virtual_fiber"] = self.fiber.to_json()
        if self.separation is not None:
            record |= self.separation.to_json()
        if self.mixings:
            record["head_mixings"] = [None if G is None else matrix_to_json(G, QQ) for G in self.mixings]
        measured = {
            "residual": self.residual,
            "difference": self.difference,
            "noise": self.noise,
            "tolerance": self.tolerance,
        }
        for name, value in measured.items():
            if value is not None:
                record[name] = value if np.isfinite(value) else None
        return record

    def rows(self) -> Mapping[str, Any]:
        lines: dict[str, Any] = {
            VERDICTS[self.same_function]: "",
            "reason": self.reason,
            "standing": self.standing,
        }
        if self.error_probability is not None:
            lines["error probability"] = f"at most {self.error_probability:.1e}"
        if self.failed_hypotheses:
            lines["hypotheses that fail"] = "; ".join(self.failed_hypotheses)
        if self.fiber is not None:
            lines["fiber in (M, L)"] = self.fiber.words
        if self.residual is not None:
            lines["residual after alignment"] = digits.error(self.residual)
        if self.separation is not None:
            lines |= self.separation.rows()
        return lines
