"""Biases of queries, keys, values, gates and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attngeom.network.options.option import Nodes, Option, Shape

if TYPE_CHECKING:
    from attngeom.programs.builder import Builder


class Bias(Option):
    """W x + b for every W that reads the input, and one b for the output of a layer of factored heads.

    A polynomial kind reads (x, 1) for x: what held for width d holds for d + 1. In softmax attention the bias of the
    keys adds the same number to all scores of a query, so that nothing depends on it.
    """

    name = "bias"
    help = "Biases of queries, keys, values, gates and outputs."

    def tensors(self, read: Mapping[str, Shape]) -> dict[str, Shape]:
        # The scalar gate u has a form of its own with a bias.
        return {f"b{letter}": (rows, 1) for letter, (rows, _) in read.items() if letter != "u"}

    def shared(self, d_out: int) -> dict[str, Shape]:
        return {"bO": (d_out, 1)}

    def project(self, b: Builder, head: Nodes, letter: str, y: int) -> int:
        return b.add(y, head[f"b{letter}"]) if f"b{letter}" in head else y

    def output(self, b: Builder, shared: Nodes, y: int) -> int:
        return b.add(y, shared["bO"]) if shared else y

    def symmetries(self, names: tuple[str, ...], is_normalised: bool) -> tuple[str, ...]:
        if not is_normalised:
            return names
        return (*("query-key-beside-bias" if name == "query-key" else name for name in names), "key-bias")
