"""Queries and keys that are divided by their norms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attngeom.network.options.option import Option

if TYPE_CHECKING:
    from attngeom.programs.builder import Builder


class NormalisedKeys(Option):
    """k/|k| and q/|q|: the sizes of K and Q are not seen; of the common scale of Q and V its sign is left."""

    name = "normalised_keys"
    help = "Divide queries and keys by their norms."

    def orient(self, b: Builder, y: int) -> int:
        norms = b.root(b.sum(b.multiply(y, y), [0], keepdims=True))
        return b.divide(y, norms)

    def symmetries(self, names: tuple[str, ...], is_normalised: bool) -> tuple[str, ...]:
        kept = tuple("scale-sign" if name == "scale" else name for name in names)
        return (*kept, "key-scale", "query-scale")
