"""The attention variety of one layer: its sizes, its coordinates, and points of its ambient space over any domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from math import comb
from typing import Any

from attngeom.errors import InputError
from attngeom.limits.sizes import DEEP_LAYERS, VARIETY_SIZE
from attngeom.network import Architecture
from attngeom.network.mask import Mask


@dataclass(frozen=True)
class Variety:
    """The Zariski closure of the scaled coefficients of Σ_h V_h X Xᵀ A_h X, X of size d×t, rank A_h ≤ a.

    ``tokens`` None means t ≥ 2 modulo the linear relations: the coordinates are y_{(k,l),m} of one target column and
    one context column alone, and A may have any number of ``targets`` columns (d in a network). With t tokens all
    coefficients are coordinates. V_h has d_out rows; several heads bound its rank by ``value_width``. ``residual`` adds
    one homogenising coordinate, the coefficient of x itself. ``hidden`` widths make a network of several layers of one
    head: all its functions for one token, or, with ``tokens`` None, for t ≥ d tokens.

    >>> Variety(3, 2).num_coordinates, Variety(3, 2, tokens=2).num_coordinates, Variety(3, 5).rank_bound
    (18, 56, 3)
    """

    d: int
    a: int
    tokens: int | None = None
    d_out: int = 1
    targets: int | None = None
    heads: int = 1
    value_width: int | None = None
    causal: bool = False
    residual: bool = False
    hidden: tuple[int, ...] = ()

    def __repr__(self) -> str:
        """The call that makes it, without what is as usual.

        >>> Variety(3, 2, tokens=2)
        Variety(d=3, a=2, tokens=2)
        """
        said = ((field.name, getattr(self, field.name), field.default) for field in fields(self))
        return f"Variety({', '.join(f'{name}={value}' for name, value, usual in said if value != usual)})"

    def __post_init__(self) -> None:
        for name in ("d", "a", "tokens", "d_out", "targets", "heads", "value_width"):
            value = getattr(self, name)
            if value is None and name in ("tokens", "targets", "value_width"):
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= VARIETY_SIZE:
                raise InputError(f"{name} = {str(value)[:40]} given; an integer between 1 and 10^6 is required")
        self._check_hidden()
        if self.tokens is None and self.is_special:
            raise InputError("causal or residual layer given without tokens; the number of tokens is required")
        if self.residual and self.d_out != self.d:
            raise InputError(f"d_out = {self.d_out} given with d = {self.d}; a residual stream needs equal widths")
        # The value width of heads follows the rule of every network.
        shape = Architecture((self.d, self.d_out), self.a, heads=self.heads, value_width=self.value_width).layer(0)
        object.__setattr__(self, "value_width", shape.value_width)

    def _check_hidden(self) -> None:
        for width in self.hidden:
            if isinstance(width, bool) or not isinstance(width, int) or not 1 <= width <= VARIETY_SIZE:
                raise InputError(f"hidden width {str(width)[:40]} given; an integer between 1 and 10^6 is required")
        special = self.heads > 1 or self.value_width is not None or self.is_special
        if self.hidden and (special or self.targets not in (None, self.d)):
            raise InputError("a deep network with heads, targets, mask or skip given; one plain head is required")
        if self.hidden and self.tokens not in (None, 1):
            raise InputError(
                f"{self.tokens} tokens of a deep network given; take 1, or no number, which stands for d or more"
            )
        if self.layers > DEEP_LAYERS:
            raise InputError(f"{self.layers} layers given; at most {DEEP_LAYERS} are expanded")

    @property
    def mask(self) -> Mask:
        """Which tokens a token sees."""
        return Mask(self.causal)

    @property
    def is_special(self) -> bool:
        """Whether there is a mask or a skip connection."""
        return self.causal or self.residual

    @property
    def layers(self) -> int:
        return len(self.hidden) + 1

    @property
    def degree(self) -> int:
        """The degree 3^l of the functions in the entries of X."""
        return int(3**self.layers)

    @property
    def num_targets(self) -> int:
        return self.d if self.targets is None else self.targets

    @property
    def num_pairs(self) -> int:
        """D = C(d+1, 2), the pairs of context rows."""
        return comb(self.d + 1, 2)

    @property
    def rank_bound(self) -> int:
        """The largest rank of A: min(a, d, targets)."""
        return min(self.a, self.d, self.num_targets)

    @property
    def value_rank(self) -> int:
        """The largest rank of V: min(value width, d, d_out)."""
        return min(self.d, self.d_out, self.value_width or self.d)

    @property
    def has_cross(self) -> bool:
        return self.tokens is None or self.tokens >= 2

    @property
    def has_single(self) -> bool:
        return self.tokens is not None and self.num_targets == self.d

    @property
    def is_plain(self) -> bool:
        """One head without mask or skip: the families of equations are about these."""
        special = self.is_special or self.hidden
        return self.heads == 1 and self.value_rank == min(self.d, self.d_out) and not special

    @property
    def is_sum(self) -> bool:
        """Several heads without mask or skip."""
        return self.heads > 1 and not self.is_special

    @property
    def model(self) -> str:
        """The name of the coordinates in files: cross-column ones, or all coefficients of a layer."""
        if self.hidden:
            return "DeepNetwork"
        return "CrossColumn" if self.tokens is None else "LayerCoefficients"

    @property
    def groups(self) -> tuple[int, ...]:
        """The sizes of the general linear groups that act: rows (if several), context, targets (if independent)."""
        inner = (self.d, self.num_targets) if self.tokens is None and not self.hidden else (self.d,)
        return inner if self.d_out == 1 else (self.d_out, *inner)

    @property
    def degree_in_parameters(self) -> int:
        """The degree of the parametrization by (K, Q, O, W), or (A, V) where the ranks are free."""
        is_low = self.rank_bound < min(self.d, self.num_targets)
        own, degree = 2 + int(is_low) + int(self.value_width is not None), 0
        for _ in range(self.layers):
            degree = 3 * degree + own
        return degree

    @property
    def num_coordinates(self) -> int:
        block = self.num_pairs * self.num_targets
        if self.hidden:
            inner = (self.degree - 1) // 2
            single = comb(self.d + self.degree - 1, self.degree)
            return self.d_out * (single if self.tokens == 1 else self.d * comb(self.num_pairs + inner - 1, inner))
        if self.tokens is None:
            return self.d_out * block
        visible = self.mask.count(self.tokens * (self.tokens - 1))
        single = self.tokens * comb(self.d + 2, 3) if self.has_single else 0
        return self.d_out * (single + visible * block) + int(self.residual)

    def describe(self) -> dict[str, Any]:
        """The sizes as JSON values; what follows from others is filled in."""
        names = ["d", "a", "targets", "d_out", "heads", "value_width"]
        if self.tokens is not None:
            names = ["d", "a", "tokens", "d_out", "heads", "value_width", "causal", "residual"]
        if self.hidden:
            names = ["d", "hidden", "d_out", "a", "tokens"]
        values = {**asdict(self), "targets": self.num_targets, "hidden": list(self.hidden)}
        return {name: values[name] for name in names}

    def restrict(self, sizes: Sequence[int]) -> Variety:
        """The same variety for smaller groups: its coordinates are those whose indices are below the sizes.

        A polynomial in these coordinates vanishes on one variety if and only if it does on the other, because the upper
        left blocks of V and A are those of a layer of the smaller size.

        >>> Variety(9, 2).restrict((3, 2)).groups
        (3, 2)
        """
        if self.residual or self.hidden:
            return self
        # With one row there would be no group for the rows any more.
        d_out = 1 if self.d_out == 1 else min(self.d_out, max(2, sizes[0]))
        inner = sizes if self.d_out == 1 else sizes[1:]
        targets = self.targets if self.tokens is not None else min(self.num_targets, inner[1])
        return replace(self, d=min(self.d, inner[0]), targets=targets, d_out=d_out)


def coordinate_name(variety: Variety, row: int, columns: tuple[int, ...], indices: Sequence[int]) -> str:
    """The name of y_R of an output row and target column (j,), or of y_{S,m} of target and context columns (j, n).

    The letter s or y, the row if there are several, the columns if they are not the first ones, the indices.

    >>> [coordinate_name(Variety(2, 1, tokens=2), 0, columns, (0, 0, 1)) for columns in ((1,), (0, 1))]
    ['sc_1_0_0_1', 'y_0_0_1']
    """
    letter, first = ("s", (0,)) if len(columns) == 1 else ("y", (0, 1))
    kind, place = (letter, ()) if columns == first else (f"{letter}c", columns)
    return "_".join(map(str, (kind, *([row] if variety.d_out > 1 else []), *place, *indices)))
