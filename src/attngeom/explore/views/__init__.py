"""The views, in the order of the start page: one module each, loaded when it is first opened."""

from __future__ import annotations

import importlib
from functools import cache
from typing import NamedTuple

from attngeom.errors import InputError
from attngeom.explore.view import View


class Card(NamedTuple):
    """A view on the start page: title, one line, and the kinds of files that it opens."""

    title: str
    summary: str
    kinds: tuple[str, ...] = ()


VIEWS = {
    "dimension": Card("Architecture and dimension", "How many dimensions the functions have, and where parameters go."),
    "network": Card("Your network", "The dimension and symmetries of a network that you wrote.", ("program",)),
    "fiber": Card("Fiber walker", "Weights move, the function stays: drag symmetries of a network.", ("weights",)),
    "manifold": Card("Neuromanifold", "A slice of all functions of a layer in space: sheets, singular line, boundary."),
    "layer": Card("Is this an attention layer?", "Verdict, violated equation and distance.", ("coefficients",)),
    "equations": Card("Equations", "What holds on all layers: families, the ideal.", ("coefficients", "weights")),
    "certificate": Card("Certificate viewer", "Each step of its recheck, with the result.", ("certificate",)),
    "checkpoint": Card("Checkpoint", "Weights or a model folder: heads, stratum; two compared.", ("weights", "model")),
    "atlas": Card("Atlas", "A store of facts: filter, pivot, plot, open a fact and its evidence.", ("store",)),
}
"""By name in the address."""


@cache
def find_view(name: str) -> View:
    """The view of a name.

    >>> find_view("dimension").name
    'dimension'
    """
    if name not in VIEWS:
        raise InputError(f"view {name[:40]!r} asked for; there are {', '.join(VIEWS)}")
    return View(name, importlib.import_module(f"attngeom.explore.views.{name}"))
