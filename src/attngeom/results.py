"""One vocabulary for all answers: the value, how strong it is, what it rests on. A leaf, it knows no attention.

Every answer of the package is a frozen keyword-only dataclass that inherits :class:`Result` and adds its own value.
"""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

Standing = Literal["theorem", "proven", "certified", "probabilistic", "estimate", "undecided"]
"""How strong a claim is.

``theorem``: a proof at every size covers it, and its hypotheses were checked. ``proven``: bounds met, or an exact
witness was checked. ``certified``: proven, and the certificate was rechecked. ``probabilistic``: true up to a stated
error probability. ``estimate``: floats. ``undecided``: cannot be told; ``reason`` says why.
"""
STANDINGS: tuple[Standing, ...] = get_args(Standing)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a search ended without what it looked for: at which stage, and one sentence.

    ``is_hypothesis``: a hypothesis of the method fails, so that what was given does not determine the answer.
    """

    stage: str
    reason: str
    is_hypothesis: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Result(ABC):
    """What every answer says of itself: its standing, one sentence of reason, the seed of every random choice."""

    standing: Standing
    reason: str
    seed: int | None = None

    @property
    def is_proven(self) -> bool:
        """Whether the answer is a theorem or rests on a witness that was checked."""
        return self.standing in ("theorem", "proven", "certified")

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The JSON object of the command line."""

    @abstractmethod
    def rows(self) -> Mapping[str, Any]:
        """The labels and values that the command prints, in order; the first label is the title."""

    def __str__(self) -> str:
        shown = {label: str(value) for label, value in self.rows().items()}
        width = max((len(label) for label in shown), default=0)
        return "\n".join(f"{label:{width}}  {value}".rstrip() for label, value in shown.items())

    def _repr_html_(self) -> str:
        """A card for notebooks: the rows as a table, the standing as a badge."""
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(label)}</th>"
            f"<td style='text-align:left'>{html.escape(str(value))}</td></tr>"
            for label, value in self.rows().items()
        )
        badge = (
            "<span style='border:1px solid currentColor;border-radius:4px;padding:0 .4em'>"
            f"{html.escape(self.standing)}</span>"
        )
        return f"<div><div>{badge} {html.escape(self.reason)}</div><table>{cells}</table></div>"
