"""The shape of an attention network, validated once and then frozen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from typing import Any

from attngeom.errors import InputError, SizeError, check_positive
from attngeom.exact.numbers import as_fmpq
from attngeom.limits.memory import STORED_PARAMETERS, STORED_TENSORS
from attngeom.limits.sizes import MAX_HEADS, MAX_LAYERS, MAX_TOKENS, MAX_WIDTH, TEMPERATURE_PART
from attngeom.network.attention import Attention, Kind, find_kind
from attngeom.network.attention.kind import View
from attngeom.network.mask import Mask
from attngeom.network.options import OPTIONS, PLAIN, Options, Shape

FLAGS = ("residual", "causal")
"""The fields that are true or false."""
DRAWN_FROM = ("widths", "attention", "tokens", "kind", "heads", "value_width", *FLAGS, "temperature")
"""What random choices are drawn from; a field that architectures gain later does not change answers of others."""


@dataclass(frozen=True)
class LayerShape:
    """Sizes of one layer: d_in → d_out with attention width a, ``heads`` heads of value width v.

    ``value_width`` is None when the value map is one d_out×d_in matrix instead of a product O V. ``extra`` lists the
    tensors that the kind of attention and its options add to each head, ``shared`` those that they add to the layer.
    """

    d_in: int
    d_out: int
    attention: int
    heads: int
    value_width: int | None
    extra: tuple[tuple[str, Shape], ...] = field(default=(), kw_only=True)
    shared: tuple[tuple[str, Shape], ...] = field(default=(), kw_only=True)

    @property
    def tensor_shapes(self) -> dict[str, Shape]:
        """The tensors of one head in storage order."""
        if self.value_width is None:
            values = {"V": (self.d_out, self.d_in)}
        else:
            values = {"V": (self.value_width, self.d_in), "O": (self.d_out, self.value_width)}
        return {"Q": (self.attention, self.d_in), "K": (self.attention, self.d_in), **values, **dict(self.extra)}

    @property
    def num_parameters(self) -> int:
        own = sum(rows * columns for rows, columns in self.tensor_shapes.values())
        return self.heads * own + sum(rows * columns for _, (rows, columns) in self.shared)

    @property
    def value_rank(self) -> int:
        """The largest rank ν of the value map of one head."""
        return min(self.d_in, self.d_out, self.value_width or self.d_out)

    @property
    def num_features(self) -> int:
        """How many numbers the last linear map reads: the columns of V, or of the O of all heads side by side."""
        return self.d_in if self.value_width is None else self.heads * self.value_width


@dataclass(frozen=True)
class Architecture:
    """Widths d_0..d_l, attention widths a_1..a_l, tokens t and the variant of attention.

    Layer i maps d_{i-1}×t to d_i×t. One head has V of shape d_i×d_{i-1}; several heads, or a given ``value_width`` v,
    have V (v×d_{i-1}) and O (d_i×v) each, summed over the heads, with v = d_i / heads unless it is given.
    ``residual`` adds the input of each layer to its output and needs equal widths; ``causal`` lets token i see j ≤ i;
    scores are divided by the ``temperature``, a positive rational. Options of attention (:mod:`network.options`) are
    given by name.

    >>> Architecture((3, 2), 2, tokens=4).num_parameters, Architecture((3, 2), 2, bias=True).num_parameters
    (18, 24)
    """

    widths: tuple[int, ...]
    attention: tuple[int, ...]
    tokens: int = 3
    kind: str = "lightning"
    heads: int = 1
    value_width: int | None = None
    residual: bool = False
    causal: bool = False
    temperature: Fraction = Fraction(1)
    options: Options = PLAIN

    def __init__(
        self,
        widths: Sequence[int],
        attention: int | Sequence[int],
        tokens: int = 3,
        kind: str = "lightning",
        heads: int = 1,
        value_width: int | None = None,
        residual: bool = False,
        causal: bool = False,
        temperature: Fraction | float | str = 1,
        options: Options = PLAIN,
        **given: Any,
    ) -> None:
        widths = _sizes("widths", widths, MAX_WIDTH, least=2)
        layers = len(widths) - 1
        if layers > MAX_LAYERS:
            raise SizeError(f"{layers} layers given; at most {MAX_LAYERS} are supported")
        if isinstance(attention, int):
            attention = (attention,)
        attention = _sizes("attention", attention, MAX_WIDTH, least=1)
        if len(attention) == 1:
            attention = attention * layers
        if len(attention) != layers:
            raise InputError(
                f"{len(attention)} attention widths given for {layers} layers; give one, or one for each layer"
            )
        temperature = _temperature(temperature, find_kind(kind))
        for name, flag in zip(FLAGS, (residual, causal)):
            if not isinstance(flag, bool):
                raise InputError(f"{name} = {flag!r} given; true or false is required")
        _size("tokens", tokens, MAX_TOKENS)
        for width in widths[1:]:
            head_width(width, heads, value_width)
        if residual and len(set(widths)) > 1:
            raise InputError(f"residual given with widths {list(widths)}; a skip connection needs equal widths")
        causal = causal or find_kind(kind).is_recurrent
        options = Options.read({**options.to_json(), **given})
        values = (widths, attention, tokens, kind, heads, value_width, residual, causal, temperature, options)
        for part, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, part.name, value)
        self._check_options()

    def _check_options(self) -> None:
        taken = find_kind(self.kind).takes
        for option in self.options:
            if option.name not in taken:
                known = f"the options {', '.join(taken)}" if taken else "no options"
                raise InputError(f"{option.name} given for {self.kind} attention; it takes {known}")
            option.check(self.attention, self.tokens)
        if self.options.get("memory") and not self.residual and self.num_layers > 1:
            raise InputError("memory given with several layers; skip connections carry it along: --residual")

    @property
    def num_layers(self) -> int:
        return len(self.attention)

    @property
    def mechanism(self) -> Kind:
        """The kind of attention with its mask, temperature and options."""
        return find_kind(self.kind)(mask=self.mask, temperature=self.temperature, options=self.options)

    @property
    def mask(self) -> Mask:
        """Which tokens a token sees."""
        return Mask(self.causal)

    @property
    def is_plain(self) -> bool:
        """Whether the weights of attention are a function of x_jᵀ A x_i alone: a kind of the papers, no options."""
        return issubclass(find_kind(self.kind), Attention) and not self.options

    @property
    def rule(self) -> Attention:
        """What the kind of attention does to scores, with its mask and temperature; InputError for other kinds.

        >>> Architecture((2, 2), 1, kind="softmax").rule.has_scale
        False
        """
        kind = self.mechanism
        if not isinstance(kind, Attention) or self.options:
            what = f"{self.kind} attention" + "".join(f" with {name}" for name, _ in self.options.given)
            raise InputError(
                f"{what} given; this is answered for lightning, softmax and sigmoid without options: type attngeom"
                " inspect, compare or dim"
            )
        return kind

    @property
    def view(self) -> View:
        """What the heads of a layer show of their A."""
        return self.rule.view(self.tokens)

    @property
    def is_cubic(self) -> bool:
        """Whether the network is one layer whose outputs, but for a skip connection, are cubic forms."""
        return self.num_layers == 1 and self.rule.is_polynomial

    @property
    def is_factored(self) -> bool:
        """Whether each head carries its value map as a product O V."""
        return self.heads > 1 or self.value_width is not None

    @property
    def bottleneck(self) -> int | None:
        """The width δ of all hidden layers, if they are equal and δ ≤ d_0, d_l; None without such layers."""
        first, *hidden, last = self.widths
        return hidden[0] if len(set(hidden)) == 1 and hidden[0] <= min(first, last) else None

    @property
    def is_homogeneous(self) -> bool:
        """Whether the size of the input is nothing but a factor of the output."""
        return self.is_plain and self.rule.is_polynomial and not self.residual

    @property
    def has_virtual_weights(self) -> bool:
        """Whether the function depends on (M_1..M_l, L) only: one head and no skip connection, without options."""
        return self.heads == 1 and not self.residual and self.is_plain

    def layer(self, index: int) -> LayerShape:
        """The sizes of layer ``index``, counted from 0."""
        d_out = self.widths[index + 1]
        value_width = head_width(d_out, self.heads, self.value_width)
        sizes = (self.widths[index], d_out, self.attention[index], self.heads, value_width)
        if self.is_plain:
            return LayerShape(*sizes)
        added = self.mechanism.tensors(sizes[0], sizes[2], value_width or d_out).items()
        shared = {} if value_width is None else {k: x for o in self.options for k, x in o.shared(d_out).items()}
        return LayerShape(*sizes, extra=tuple(added), shared=tuple(shared.items()))

    @cached_property
    def layers(self) -> tuple[LayerShape, ...]:
        return tuple(self.layer(index) for index in range(self.num_layers))

    @cached_property
    def num_parameters(self) -> int:
        return sum(layer.num_parameters for layer in self.layers)

    def tensor_shapes(self) -> Iterator[tuple[str, Shape]]:
        """Names and shapes of all tensors, in the order in which :meth:`Weights.vector` lists them.

        >>> [name for name, _ in Architecture((2, 2), 1).tensor_shapes()]
        ['layers.0.Q', 'layers.0.K', 'layers.0.V']
        """
        return iter(self._shapes)

    @cached_property
    def _shapes(self) -> tuple[tuple[str, Shape], ...]:
        shapes: list[tuple[str, Shape]] = []
        for index, layer in enumerate(self.layers):
            for head in range(self.heads):
                shapes += ((self.tensor_name(index, head, x), shape) for x, shape in layer.tensor_shapes.items())
            shapes += ((self.tensor_name(index, None, letter), shape) for letter, shape in layer.shared)
        return tuple(shapes)

    def tensor_name(self, layer: int, head: int | None, letter: str) -> str:
        """The name of a tensor in files, layer and head counted from 0; without a head, of one that all share.

        >>> Architecture((2, 2), 1, heads=2).tensor_name(0, 1, "O")
        'layers.0.heads.1.O'
        """
        own = self.is_factored and head is not None
        return f"layers.{layer}.heads.{head}.{letter}" if own else f"layers.{layer}.{letter}"

    def slots(self) -> dict[str, slice]:
        """Where the entries of each tensor lie in :meth:`Weights.vector`, row by row."""
        slots, start = {}, 0
        for name, (rows, columns) in self.tensor_shapes():
            slots[name] = slice(start, start + rows * columns)
            start += rows * columns
        return slots

    def check_storable(self) -> None:
        """Refuse to allocate weights of absurd size, or to list as many tensors."""
        if self.num_parameters > STORED_PARAMETERS:
            raise SizeError(
                f"{self.num_parameters:,} parameters given; at most {STORED_PARAMETERS:,} can be held in memory"
            )
        first = self.layer(0)
        tensors = self.num_layers * (self.heads * len(first.tensor_shapes) + len(first.shared))
        if tensors > STORED_TENSORS:
            raise SizeError(f"{tensors:,} tensors given; at most {STORED_TENSORS:,} can be held in memory")

    def to_json(self) -> dict[str, Any]:
        """The JSON object of the file formats."""
        record = {part.name: getattr(self, part.name) for part in fields(self)}
        record |= {"widths": list(self.widths), "attention": list(self.attention)}
        # Files of temperature 1 and without options are as they were before there were any.
        temperature, options = record.pop("temperature"), record.pop("options").to_json()
        return {**record, **({} if temperature == 1 else {"temperature": str(temperature)}), **options}

    @classmethod
    def from_json(cls, record: Any) -> Architecture:
        """Read the JSON object of the file formats; unknown keys are an error.

        >>> Architecture.from_json({"widths": [3, 2], "attention": [2], "tokens": 3}).layer(0).d_out
        2
        """
        if not isinstance(record, Mapping):
            raise InputError(f"architecture of type {type(record).__name__} given; a JSON object is required")
        known = [part.name for part in fields(cls) if part.name != "options"] + list(OPTIONS)
        unknown = sorted(str(key) for key in record if key not in known)
        if unknown:
            raise InputError(f"architecture key {unknown[0][:40]!r} given; known keys are {', '.join(known)}")
        missing = [key for key in ("widths", "attention") if key not in record]
        if missing:
            raise InputError(f"architecture without {missing[0]!r} given; widths and attention are required")
        return cls(**record)


def _size(name: str, value: Any, largest: int) -> int:
    check_positive(name, value)
    if value > largest:
        raise SizeError(f"{name} = {str(value)[:40]} given; at most {largest:,} is supported")
    return int(value)


def _sizes(name: str, values: Any, largest: int, least: int) -> tuple[int, ...]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise InputError(f"{name} = {str(values)[:40]!r} given; a list of positive integers is required")
    if len(values) < least:
        raise InputError(f"{len(values)} {name} given; at least {least} required")
    return tuple(_size(f"{name}[{index}]", value, largest) for index, value in enumerate(values))


def head_width(d_out: int, heads: int, value_width: int | None) -> int | None:
    """The value width of each head: the given one, or d_out / heads; None for one head with a whole matrix V.

    >>> head_width(6, 2, None), head_width(6, 2, 5), head_width(6, 1, None)
    (3, 5, None)
    """
    _size("heads", heads, MAX_HEADS)
    if value_width is not None:
        return _size("value_width", value_width, MAX_WIDTH)
    if d_out % heads:
        raise InputError(
            f"{heads} heads given for output width {d_out}; give value_width, or a width that heads divides"
        )
    return d_out // heads if heads > 1 else None


def default_attention(widths: Sequence[int], heads: int) -> list[int]:
    """Attention widths d_{i-1} / heads, as in standard transformers.

    >>> default_attention([768, 768], 12)
    [64]
    """
    _size("heads", heads, MAX_HEADS)
    for width in widths[:-1]:
        if width % heads:
            raise InputError(
                f"{heads} heads given for width {width}; give attention widths, or a width that heads divides"
            )
    return [width // heads for width in widths[:-1]]


def _temperature(value: Any, kind: type[Kind]) -> Fraction:
    """The temperature that a number or a string such as "1/2" states, exactly; polynomial kinds have 1 only.

    >>> _temperature("0.5", find_kind("softmax"))
    Fraction(1, 2)
    """
    try:
        rational = as_fmpq(value)
    except InputError:
        rational = as_fmpq(0)
    numerator, denominator = int(rational.p), int(rational.q)
    if not 0 < numerator <= TEMPERATURE_PART or denominator > TEMPERATURE_PART:
        raise InputError(f"temperature {str(value)[:40]!r} given; a positive rational such as 1/2 is required")
    if not kind.has_temperature and rational != 1:
        raise InputError(f"temperature {str(value)[:40]} given for {kind.name} attention; divide Q by it instead")
    return Fraction(numerator, denominator)
