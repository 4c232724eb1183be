"""What is free to fuse: exact changes of coordinates that a quantiser, a converter or a merger may multiply in.

Each line is a factor of the symmetry group of a layer (docs/theorems/models.md): every element of it leaves the
function unchanged, for all weights and inputs. What is not listed is not free: by Theorem 1' the factors are all there
is for generic weights of the layers that it covers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from attngeom.models.counts.residual import rotation_term
from attngeom.models.specification import TransformerSpec
from attngeom.models.symmetry.block import factors
from attngeom.models.symmetry.factor import Freedom


@dataclass(frozen=True)
class FreeHere:
    """A freedom and the layers of a stack that have it; no layers: the stream of the whole model."""

    freedom: Freedom
    stack: str = ""
    layers: tuple[int, ...] = ()
    everywhere: bool = True

    def to_json(self) -> dict[str, Any]:
        return {"stack": self.stack, "layers": list(self.layers), **self.freedom.to_json()}

    def __str__(self) -> str:
        """One line; layers are named where not all of the stack have the freedom."""
        where = "" if self.everywhere else f", {_ranges(self.layers)}"
        stack = f" of {self.stack}" if self.stack else ""
        free = self.freedom
        told = "" if free.rotations is None else f"; rotations: {free.rotations}"
        return f"{free.tensors}{stack}{where}: {free.matrices}{told}"


def free_to_fuse(spec: TransformerSpec) -> tuple[FreeHere, ...]:
    """The freedoms of every layer, from the configuration alone, and that of the residual stream.

    >>> from attngeom.models.presets import published
    >>> for free in free_to_fuse(published("qwen3-8b")):
    ...     print(free.freedom.tensors, "|", free.freedom.rotations)
    norm attention.input | None
    norm mlp.input | None
    q, k of attention | none
    v, o of attention | all
    heads of attention | None
    hidden units of the MLP | none
    residual stream | all
    """
    return (*_of_layers(spec), FreeHere(_of_stream(spec)))


def _of_layers(spec: TransformerSpec) -> Iterator[FreeHere]:
    for stack in spec.stacks:
        layers: dict[Freedom, dict[int, None]] = {}
        for number, block in enumerate(stack.blocks):
            for factor in factors(block, bool(stack.relative_buckets)):
                for freedom in factor.freedoms():
                    # Experts have the same one each.
                    layers.setdefault(freedom, {})[number] = None
        name = stack.name if len(spec.stacks) > 1 else ""
        for freedom, numbers in layers.items():
            yield FreeHere(freedom, name, tuple(numbers), len(numbers) == len(stack))


def _of_stream(spec: TransformerSpec) -> Freedom:
    term = rotation_term(spec)
    if term.count:
        return Freedom("residual stream", f"{term.group}, once the gains of the norms are in what reads them", "all")
    tied = " (head and token table are one: a rotation needs an untied head)" if spec.head and spec.head.tied else ""
    return Freedom("residual stream", f"signed permutations at most{tied}", "none")


def _ranges(numbers: tuple[int, ...]) -> str:
    """Numbers in order, runs joined, at most six of them.

    >>> _ranges((0, 1, 2, 4, 6))
    'layers 0–2, 4, 6'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [str(a) if a == b else f"{a}–{b}" for a, b in runs]
    return f"layer{'s' if len(numbers) > 1 else ''} " + ", ".join(
        shown if len(shown) <= 6 else [*shown[:3], "…", shown[-1]]
    )
