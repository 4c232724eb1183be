"""A config.json as checked values: every key is read through a typed getter that bounds it or says what is wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from attngeom.errors import InputError
from attngeom.limits.sizes import CONFIGURED_NUMBER, CONFIGURED_SIZE, CONFIGURED_SIZES, ROTARY_FREQUENCIES
from attngeom.models.specification import Activation, Layout, Norm, Rotary

ACTIVATIONS: Mapping[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "quick_gelu": "quick_gelu",
    "silu": "silu",
    "swish": "silu",
    "relu": "relu",
    "relu2": "relu2",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
}


class Config:
    """Typed access to a configuration; ``read`` remembers which keys took part in the description.

    >>> Config({"n_embd": 8}).integer("hidden_size", "n_embd")
    8
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        if not isinstance(values, Mapping):
            raise InputError(f"config of type {type(values).__name__} given; a JSON object is required")
        self.values = values
        self.read: set[str] = set()

    def with_defaults(self, values: Mapping[str, Any]) -> Config:
        """The same configuration with values for keys that are absent or null."""
        full = Config({**self.values, **{key: value for key, value in values.items() if self.raw(key) is None}})
        full.read = self.read
        return full

    def raw(self, *keys: str) -> Any:
        """The first of the keys that is present and not null, else None."""
        self.read.update(keys)
        return next((self.values[key] for key in keys if self.values.get(key) is not None), None)

    def integer(self, *keys: str, default: int | None = None, least: int = 1) -> int:
        value = self.raw(*keys)
        if value is None:
            if default is None:
                raise InputError(f"config without {' or '.join(keys)} given; add the key to config.json")
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= CONFIGURED_SIZE:
            raise InputError(
                f"config {keys[0]} = {str(value)[:40]!r} given; an integer from {least} to {CONFIGURED_SIZE} needed"
            )
        return value

    def layers(self, *keys: str, default: int | None = None) -> int:
        """A number of layers, small enough to list them."""
        number = self.integer(*keys, default=default)
        if number > CONFIGURED_SIZES["layers"]:
            raise InputError(f"config {keys[0]} = {number} given; at most {CONFIGURED_SIZES['layers']} layers are read")
        return number

    def optional_integer(self, *keys: str, absent: int | None = None) -> int | None:
        """An integer, None where it is null; ``absent``: what a config means that lacks the keys."""
        if self.raw(*keys) is None:
            return None if any(key in self.values for key in keys) else absent
        return self.integer(*keys)

    def number(self, *keys: str, default: float | None = None) -> float:
        value = self.raw(*keys)
        if value is None:
            if default is None:
                raise InputError(f"config without {' or '.join(keys)} given; add the key to config.json")
            return default
        return as_number(value, keys[0])

    def positive(self, key: str, *, default: float) -> float:
        number = self.number(key, default=default)
        if number <= 0:
            raise InputError(f"config {key} = {number} given; a positive number is required")
        return number

    def optional_number(self, *keys: str) -> float | None:
        return None if self.raw(*keys) is None else self.number(*keys)

    def flag(self, *keys: str, default: bool) -> bool:
        value = self.raw(*keys)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise InputError(f"config {keys[0]} = {str(value)[:40]!r} given; true or false is required")
        return value

    def activation(self, *keys: str, default: str) -> Activation:
        name = self.raw(*keys) or default
        if not isinstance(name, str) or name not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise InputError(f"config {keys[0]} = {str(name)[:40]!r} given; known activations: {known}")
        return ACTIVATIONS[name]

    def refuse(self, key: str, *allowed: Any) -> None:
        """Refuse a setting that would change the function in a way that is not described."""
        value = self.raw(key)
        if value is not None and value not in allowed:
            raise InputError(f"config {key} = {str(value)[:40]!r} given; this variant of the family is not known")

    def refuse_null(self, *keys: str) -> None:
        """Refuse null for keys that may be absent: transformers then has no value in place of its default."""
        for key in keys:
            if key in self.values and self.values[key] is None:
                raise InputError(f"config {key} = null given; transformers cannot run it, drop the key or give a value")

    def rms(self, *, default: float, offset: float = 0.0) -> Norm:
        eps = self.number("rms_norm_eps", "layer_norm_epsilon", default=default)
        return Norm(kind="rms", eps=eps, offset=offset)

    def layer_norm(self, *, default: float, bias: bool = True) -> Norm:
        return Norm(kind="layer", eps=self.number("layer_norm_eps", "layer_norm_epsilon", default=default), bias=bias)

    def layer_types(self, default: list[str]) -> list[str]:
        """``layer_types``, of each layer full_attention or sliding_attention."""
        given, known = self.raw("layer_types"), ("full_attention", "sliding_attention")
        types = default if given is None else given
        named = isinstance(types, list) and all(isinstance(name, str) and name in known for name in types)
        if not named or len(types) != len(default):
            raise InputError(f"config layer_types given; {len(default)} of {' or '.join(known)} are required")
        return list(types)

    def windows(self, window: int | None, default: list[str]) -> list[int | None]:
        """The window of each layer, by their types."""
        return [window if kind == "sliding_attention" else None for kind in self.layer_types(default)]

    def rotary(
        self, head_dim: int, layout: Layout, *, theta: float = 10000.0, share: float | None = None
    ) -> Rotary | None:
        """The rotary description; ``theta`` and ``share`` (of rotated coordinates) are the defaults of the family.

        A family without ``share`` rotates all coordinates, whatever its config says; another share is refused.
        """
        nested = self.raw("rope_parameters", "rope_scaling") or {}
        if not isinstance(nested, dict) or any(isinstance(value, dict) for value in nested.values()):
            raise InputError("config rope_parameters given per layer type or not as an object; one set is required")
        values = {"rope_theta": self.number("rope_theta", "rotary_emb_base", default=theta), **nested}
        given = self.number("partial_rotary_factor", "rotary_pct", default=1.0 if share is None else share)
        given = as_number(values.get("partial_rotary_factor", given), "partial_rotary_factor")
        if share is None and given != 1:
            raise InputError(f"config partial_rotary_factor = {given} given; this family rotates all coordinates")
        dims = int(head_dim * given)
        if not 0 <= dims <= head_dim or dims % 2:
            raise InputError(f"{dims} of {head_dim} coordinates rotated by the config; an even part is required")
        if not dims:
            return None
        return rotary_of(values, dims, layout, self.optional_integer("max_position_embeddings"), self)


def as_number(value: Any, name: str) -> float:
    """A number of a config, small enough to be reckoned with."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= CONFIGURED_NUMBER:
        raise InputError(
            f"config {name} = {str(value)[:40]!r} given; a finite number up to {CONFIGURED_NUMBER:g} is required"
        )
    return float(value)


def rotary_of(values: Mapping[str, Any], dims: int, layout: Layout, context: int | None, config: Config) -> Rotary:
    """Frequencies θ_f of the named rope types: default, linear, dynamic, llama3, yarn, longrope."""
    if dims > 2 * ROTARY_FREQUENCIES:
        raise InputError(f"{dims} rotated coordinates of a head given; at most {2 * ROTARY_FREQUENCIES} are read")
    kind = values.get("rope_type") or values.get("type") or "default"
    base = as_number(values["rope_theta"], "rope_theta")
    if base <= 0:
        raise InputError(f"config rope_theta = {base} given; a positive base is required")
    plain = [base ** (-2 * f / dims) for f in range(dims // 2)]

    def value(name: str, default: float | None = None) -> float:
        given = values.get(name)
        if given is None:
            if default is None:
                raise InputError(f"config rope type {kind} without {name} given; add it to rope_parameters")
            return default
        number = as_number(given, name)
        if number <= 0:
            raise InputError(f"config {name} = {number} given; a positive number is required")
        return number

    if kind == "default":
        return Rotary(layout=layout, dims=dims, frequencies=tuple(plain))
    if kind == "linear":
        factor = value("factor")
        return Rotary(layout=layout, dims=dims, frequencies=tuple(f / factor for f in plain))
    if kind == "dynamic":
        longer = (float(context or 0), value("factor"), base)
        return Rotary(layout=layout, dims=dims, frequencies=tuple(plain), lengthening=longer)
    original = value("original_max_position_embeddings", _original(config, context))
    if kind == "llama3":
        low, high, factor = value("low_freq_factor"), value("high_freq_factor"), value("factor")
        return Rotary(layout=layout, dims=dims, frequencies=_llama3(plain, factor, low, high, original))
    if kind == "yarn":
        if base == 1:
            raise InputError("config rope type yarn with rope_theta 1 given; another base is required")
        factor = value("factor", (context or original) / original)
        ramp = _ramp(dims, base, original, value("beta_fast", 32.0), value("beta_slow", 1.0), values)
        frequencies = tuple(f * (1 - r + r / factor) for f, r in zip(plain, ramp))
        return Rotary(layout=layout, dims=dims, frequencies=frequencies, amplitude=_amplitude(values, factor))
    if kind in ("longrope", "su"):
        short, long = (_factors(values, name, dims // 2) for name in ("short_factor", "long_factor"))
        factor = value("factor", (context or original) / original)
        amplitude = value(
            "attention_factor", 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(original))
        )
        frequencies = tuple(f / s for f, s in zip(plain, short))
        return Rotary(
            layout=layout, dims=dims, frequencies=frequencies, amplitude=amplitude, lengthening=(original, *long)
        )
    raise InputError(
        f"config rope type {str(kind)[:40]!r} given; default, linear, dynamic, llama3, yarn, longrope known"
    )


def _factors(values: Mapping[str, Any], name: str, count: int) -> list[float]:
    given = values.get(name)
    if not isinstance(given, list) or len(given) != count:
        raise InputError(f"config rope type longrope given; {name} must be a list of {count} numbers")
    factors = [as_number(factor, name) for factor in given]
    if min(factors) <= 0:
        raise InputError(f"config {name} with {min(factors)} given; positive numbers are required")
    return factors


def _original(config: Config, context: int | None) -> float | None:
    given = config.optional_integer("original_max_position_embeddings")
    return float(given) if given is not None else None if context is None else float(context)


def _llama3(plain: list[float], factor: float, low: float, high: float, original: float) -> tuple[float, ...]:
    """Long waves are slowed by ``factor``, short ones kept, with a linear passage in between."""
    frequencies = []
    for frequency in plain:
        turns = original * frequency / (2 * math.pi)
        if turns < low:
            frequencies.append(frequency / factor)
        elif turns > high:
            frequencies.append(frequency)
        else:
            smooth = (turns - low) / (high - low)
            frequencies.append((1 - smooth) * frequency / factor + smooth * frequency)
    return tuple(frequencies)


def _ramp(dims: int, base: float, original: float, fast: float, slow: float, values: Mapping[str, Any]) -> list[float]:
    """Share of interpolation of each pair in YaRN: 0 for fast pairs, 1 for slow ones."""

    def place(turns: float) -> float:
        return dims * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = place(fast), place(slow)
    if values.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dims - 1)
    if low == high:
        high += 0.001
    return [min(max((f - low) / (high - low), 0.0), 1.0) for f in range(dims // 2)]


def yarn_scale(factor: float, weight: float = 1.0) -> float:
    """YaRN's growth of scores with the stretching of the context: 1 + 0.1 weight ln factor."""
    return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0


def _amplitude(values: Mapping[str, Any], factor: float) -> float:
    if values.get("attention_factor") is not None:
        return as_number(values["attention_factor"], "attention_factor")
    one, every = values.get("mscale"), values.get("mscale_all_dim")
    if one and every:
        return yarn_scale(factor, as_number(one, "mscale")) / yarn_scale(factor, as_number(every, "mscale_all_dim"))
    return yarn_scale(factor)
