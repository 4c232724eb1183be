"""One vocabulary for all answers: the value, how strong it is, what it rests on. A leaf, it knows no attention.

Every answer of the package is a frozen keyword-only dataclass that inherits :class:`Result` and adds its own value.
"""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from secrets import randbits
from typing import Any, Literal, get_args

from attngeom.digits import number

Standing = Literal["theorem", "proven", "certified", "probabilistic", "estimate", "undecided"]
"""How strong a claim is.

``theorem``: a proof at every size covers it, and its hypotheses were checked. ``proven``: bounds met, or an exact
witness was checked. ``certified``: proven, and the certificate was rechecked. ``probabilistic``: true up to a stated
error probability. ``estimate``: floats. ``undecided``: cannot be told; ``reason`` says why.
"""
STANDINGS: tuple[Standing, ...] = get_args(Standing)
"""From the strongest to the weakest."""
BADGES: Mapping[Standing, str] = {
    "theorem": "#1b5e20",
    "proven": "#2e7d32",
    "certified": "#2e7d32",
    "probabilistic": "#8a5a00",
    "estimate": "#8a5a00",
    "undecided": "#616161",
}
"""Colours of the badges: dark enough for white letters on light and dark pages."""
CELL = "text-align:left;padding:.1em .6em .1em 0;vertical-align:top"


def draw_entropy() -> int:
    """128 random bits of this run, for choices on which a verdict rests: no file can be made to fit them."""
    return randbits(128)


@dataclass(frozen=True)
class Proof:
    """Why a claim is true, and how strongly: a conclusion is as strong as the weakest of its parts.

    >>> minor, transcript = Proof("certified", "a minor"), Proof("probabilistic", "a transcript")
    >>> Proof.from_parts("both bounds meet", minor, transcript).standing
    'probabilistic'
    """

    standing: Standing
    reason: str
    parts: tuple[Proof, ...] = ()

    def __post_init__(self) -> None:
        if self.parts and self.standing != weakest(*(part.standing for part in self.parts)):
            raise ValueError(f"{self.standing} found; the weakest of the parts of a proof is required")

    @classmethod
    def from_parts(cls, reason: str, *parts: Proof) -> Proof:
        """The conclusion from all these parts."""
        return cls(weakest(*(part.standing for part in parts)), reason, parts)


def weakest(*standings: Standing) -> Standing:
    """The standing of what rests on claims of all these standings.

    >>> weakest("theorem", "estimate", "proven")
    'estimate'
    """
    return max(standings, key=STANDINGS.index)


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

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__repr__ = Result.__repr__  # type: ignore[method-assign]  # dataclasses keep one that is there

    def __repr__(self) -> str:
        """What the command prints, for those who type at a prompt."""
        return str(self)

    @property
    def is_proven(self) -> bool:
        """Whether the answer is a theorem or rests on a witness that was checked."""
        return self.standing in ("theorem", "proven", "certified")

    @property
    def is_positive(self) -> bool | None:
        """Yes or no, which the exit code of a command says; None where it cannot be told, or is not the question."""
        return None

    def select(self, *names: str) -> dict[str, Any]:
        """The named fields, for :meth:`to_json`."""
        return {name: getattr(self, name) for name in names}

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The JSON object of the command line."""

    @abstractmethod
    def rows(self) -> Mapping[str, Any]:
        """The labels and values that the command prints, in order; the first label is the title."""

    def __str__(self) -> str:
        shown = {label: number(value) for label, value in self.rows().items()}
        width = max((len(label) for label in shown), default=0)
        return "\n".join(f"{label:{width}}  {value}".rstrip() for label, value in shown.items())

    @property
    def recheck(self) -> str | None:
        """How somebody else checks the answer, in one line; None where there is nothing to check."""
        return None

    def _repr_html_(self) -> str:
        return card(self.standing, self.reason, self.rows(), self.recheck)


def card(standing: Standing, reason: str, rows: Mapping[str, Any], recheck: str | None = None) -> str:
    """A card for notebooks: the standing as a badge, the reason, the rows as a table, how to check it.

    What repeats the badge or the reason is left out, a row or the end of one; a label without a value is a heading.

    >>> "proven</span> the bounds meet</div>" in card("proven", "the bounds meet", {"standing": "proven"})
    True
    >>> card("theorem", "by A1", {"λ": "3 (theorem)"}).count("theorem")
    1
    """
    shown = {
        x: number(y).removesuffix(f" ({standing})").removesuffix(f": {reason}")
        for x, y in rows.items()
        if y != reason and (x, y) != ("standing", standing)
    }
    badge = (
        f"<span style='background:{BADGES[standing]};color:#fff;border-radius:4px;padding:.1em .5em'>"
        f"{html.escape(standing)}</span>"
    )
    return plain_card(f"{badge} {html.escape(reason)}", shown, recheck)


def plain_card(head: str, rows: Mapping[str, Any], recheck: str | None = None) -> str:
    """A card of what is no answer: its first line, in HTML, and rows as a table.

    >>> plain_card("a layer", {"tokens": 3}).count("<td")
    1
    """
    cells = "".join(
        f"<tr><th colspan={1 if value else 2} style='{CELL};font-weight:600;white-space:pre'>{html.escape(label)}</th>"
        + (f"<td style='{CELL}'>{html.escape(value)}</td></tr>" if value else "</tr>")
        for label, value in ((label, number(value)) for label, value in rows.items())
    )
    check = "" if recheck is None else f"<div style='opacity:.75'>check it: {html.escape(recheck)}</div>"
    return (
        "<div style='border:1px solid #8886;border-radius:6px;padding:.6em .9em;display:inline-block;"
        f"max-width:100%;overflow-x:auto'><div>{head}</div>"
        f"<table style='border-collapse:collapse;margin:.4em 0'>{cells}</table>{check}</div>"
    )
