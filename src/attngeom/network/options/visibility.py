"""Which tokens are seen: a sliding window, and cross-attention to the first tokens."""

from __future__ import annotations

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.network.options.option import Option


class Window(Option):
    """Token i sees tokens at a distance below the width of the window."""

    name = "window"
    is_size = True
    help = "Token i sees tokens at a distance below this number."

    def hide(self, visible: Array) -> Array:
        t = len(visible)
        distance = np.abs(np.arange(t)[:, None] - np.arange(t)[None, :])
        return np.asarray(visible & (distance < self.value))


class Memory(Option):
    """Cross-attention: the first tokens are memory, which the others attend to; the output at memory is zero.

    With skip connections the memory stays as it is from layer to layer.
    """

    name = "memory"
    is_size = True
    help = "Cross-attention: so many first tokens are memory that the others attend to."

    def check(self, attention: tuple[int, ...], tokens: int) -> None:
        if self.value >= tokens:
            raise InputError(f"memory {self.value} given for {tokens} tokens; some token must ask: fewer are required")

    def hide(self, visible: Array) -> Array:
        places = np.arange(len(visible))
        return np.asarray(visible & (places[:, None] < self.value) & (places[None, :] >= self.value))
