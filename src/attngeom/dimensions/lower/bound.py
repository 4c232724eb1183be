"""The record of a proven lower bound, and how many samples and tokens all methods use."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from attngeom.exact.domains import Array
from attngeom.limits.trials import JACOBIAN_TOKENS
from attngeom.network.architecture import Architecture
from attngeom.results import Result


@dataclass(frozen=True, eq=False)
class Transcript:
    """What a matrix-free proof computed, for a recheck that repeats a few hundredths of it.

    ``free`` lists, for each tensor, the column from which its corner block is free and how many first entries are not;
    ``pivots`` the tokens that clear the last linear map. ``blocks`` are W_0, …, W_c with W_{i+1} = B^step W_i, and
    ``sequence`` the matrices Uᵀ B^k W_0, k ≥ 1, as residues from 0 on: bytes for p < 2^8, else four bytes each.
    """

    free: tuple[tuple[int, int], ...]
    pivots: tuple[int, ...]
    left: int
    right: int
    step: int
    blocks: Array
    sequence: Array

    def to_json(self) -> dict[str, Any]:
        record = {"free": [list(pair) for pair in self.free], "pivots": list(self.pivots)}
        sizes = {"left": self.left, "right": self.right, "step": self.step}
        arrays = {"blocks": self.blocks, "sequence": self.sequence}
        return record | sizes | {name: base64.b64encode(x.tobytes()).decode() for name, x in arrays.items()}


Method = Literal["minor", "schur", "krylov", "balls"]


@dataclass(frozen=True, kw_only=True, eq=False)
class LowerBound(Result):
    """A proven lower bound for the dimension: the rank of a Jacobian at one point, which the seed determines.

    ``point`` is the name of that point (:mod:`attngeom.exact.points`) where the method is minor. ``minor_rows``
    (samples) and ``minor_columns`` (weights) hold a nonzero minor of that size; only the methods minor and balls give
    them; ``transcript`` is what krylov gives. ``tokens`` counts distinct tokens of a sample.
    """

    value: int
    method: Method
    prime: int | None
    tokens: int
    samples: int
    point: str | None = None
    minor_rows: tuple[int, ...] = ()
    minor_columns: tuple[int, ...] = ()
    transcript: Transcript | None = None

    def to_json(self) -> dict[str, Any]:
        return self.select("value", "method", "prime", "seed", "tokens", "samples")

    def rows(self) -> Mapping[str, Any]:
        how = self.method if self.prime is None else f"{self.method} mod {self.prime}"
        return {"lower bound": self.value, "method": f"{how}, seed {self.seed}", "why": self.reason}


def sample_tokens(architecture: Architecture, most: int = JACOBIAN_TOKENS) -> int:
    """How many distinct tokens samples have: at most ``most``, which loses nothing that is true for t tokens.

    A function of t tokens restricts to fewer: zero tokens change nothing for polynomial attention, later tokens change
    nothing for masked attention, and formal attention to further tokens may be specialised to zero (where it is drawn
    symmetric, the last token stands for its copies). So a rank with fewer tokens is a lower bound for t tokens.
    """
    return min(architecture.tokens, most)
