"""The maps that a block adds to its stream, and what each reads of the stream and shows of what it writes.

A reader is a matrix W (with or without bias) applied to u = gain ∘ n(x) + bias. For RMS norms the entries of
W diag(gain) are visible; for LayerNorm n(x) is orthogonal to 1, so W diag(gain) is seen on 1^⊥ only, d − 1 entries
per row, and the constant W·bias + b (Lemma 4 of docs/theorems/models.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from attngeom.models.specification import (
    MLP,
    PLACES,
    Experts,
    GroupedAttention,
    Norm,
    Norms,
    RecurrentMixer,
    TransformerBlock,
)


@dataclass(frozen=True)
class Stream:
    """Vectors u of a stream of width d that span ``seen`` dimensions, plus a constant vector if ``constant``.

    ``is_round``: they lie on one ellipsoid, behind a norm with eps = 0.
    """

    width: int
    seen: int
    constant: bool
    is_round: bool = False

    def rows(self, rows: int, bias: bool, visible: bool) -> int:
        """Redundant entries of a reader with that many rows that are due to the norm, not to an invisible bias.

        A row has width + bias entries; it shows ``seen`` of them, and one constant if there is one (an own bias or
        the norm's) and if the function shows it (``visible``). An own bias that is never shown is counted elsewhere.
        """
        shown = visible and self.has_constant(bias)
        return rows * (self.width - self.seen + bias - shown - (bias and not visible))

    def has_constant(self, bias: bool) -> bool:
        """Whether a reader with or without own bias adds a constant."""
        return bias or self.constant

    def columns(self, bias: bool) -> int:
        """Columns that a reader shows: those of the stream, and one for its constant if it has one."""
        return self.seen + self.has_constant(bias)


def stream(width: int, norm: Norm | None) -> Stream:
    """The stream behind a norm (None: the residual stream itself, an arbitrary vector).

    >>> stream(768, Norm(kind="layer", eps=1e-5, bias=True)).rows(2304, bias=True, visible=True)
    2304
    """
    if norm is None:
        return Stream(width, width, False)
    is_layer = norm.kind == "layer"
    return Stream(width, width - is_layer, is_layer and norm.bias, norm.eps == 0)


@dataclass(frozen=True, kw_only=True)
class Sublayer:
    """A map that is added to the stream, and its norms; cross-attention reads keys and values from another stream.

    ``before`` is the norm behind which it reads: its own, or in a parallel block one that it shares. ``place`` is the
    name of its field in a block.
    """

    place: str
    map: RecurrentMixer | GroupedAttention | MLP | Experts
    norms: Norms
    before: Norm | None

    @property
    def is_cross(self) -> bool:
        return self.place == "cross"

    @property
    def label(self) -> str:
        if isinstance(self.map, GroupedAttention):
            return "cross-attention" if self.is_cross else "attention"
        if isinstance(self.map, RecurrentMixer):
            return "mixer"
        return "MLP" if isinstance(self.map, MLP) else "experts"

    @property
    def writer(self) -> tuple[int, bool] | None:
        """The number of columns of the matrix that writes, and whether it adds a bias; None for experts."""
        if isinstance(self.map, GroupedAttention | RecurrentMixer):
            return self.map.heads * self.map.value_dim, self.map.output_bias
        return (self.map.width, self.map.down_bias) if isinstance(self.map, MLP) else None


def sublayers(block: TransformerBlock) -> list[Sublayer]:
    """Mixer, attention, cross-attention and MLP, as far as the block has them.

    >>> mlp = MLP(width=4, activation="silu", gated=True)
    >>> [part.label for part in sublayers(TransformerBlock(attention=None, mlp=mlp))]
    ['MLP']
    """
    parts = []
    for place, norms in zip(PLACES, block.norms):
        own = getattr(block, place)
        before = block.attention_norms.input if place in shared_places(block) else norms.input
        if own is not None:
            parts.append(Sublayer(place=place, map=own, norms=norms, before=before))
    return parts


def shared_places(block: TransformerBlock) -> tuple[str, ...]:
    """The sublayers that read the norm of attention beside it."""
    return ("mlp",) * block.shared_norm + ("mixer",) * block.beside


def mlps(part: MLP | Experts) -> list[MLP]:
    """The kinds of hidden layers of a sublayer: itself, or an expert and the shared one."""
    if isinstance(part, MLP):
        return [part]
    return [part.expert] + ([] if part.shared is None else [part.shared])


@dataclass(frozen=True, kw_only=True)
class PlacedSublayer:
    """A sublayer with the streams that it reads, ``source`` for keys and values, and what is read of its output.

    Of every vector that it writes ``written`` dimensions are seen: d, or d − 1 where only LayerNorms read the sum.
    ``incoming`` is the norm behind which a post-norm sublayer finds the stream.
    """

    sublayer: Sublayer
    own: Stream
    source: Stream
    written: int
    incoming: Norm | None


@dataclass(frozen=True)
class Surroundings:
    """A block in its place: one reading for each sublayer, by the names of their fields.

    ``mean_seen`` False: nothing that reads the output of the block sees its mean (whole models with LayerNorm).
    """

    width: int
    mean_seen: bool
    readings: dict[str, PlacedSublayer]


def surroundings(
    block: TransformerBlock,
    width: int,
    *,
    incoming: Norm | None = None,
    source: Norm | None = None,
    mean_seen: bool = True,
) -> Surroundings:
    """A block whose input is an arbitrary stream, or one behind the norm ``incoming`` (post-LN).

    ``source`` is the norm behind which cross-attention finds the encoder's stream; None: arbitrary vectors.
    """
    readings = {}
    for sublayer in sublayers(block):
        after = sublayer.norms.stream
        hidden = not mean_seen and sublayer.norms.output is None if after is None else after.kind == "layer"
        own = stream(width, sublayer.before if after is None else incoming)
        other = stream(width, source) if sublayer.is_cross else own
        readings[sublayer.place] = PlacedSublayer(
            sublayer=sublayer, own=own, source=other, written=width - hidden, incoming=incoming
        )
        incoming = incoming if after is None else after
    return Surroundings(width, mean_seen, readings)
