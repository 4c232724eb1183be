"""Recurrent mixers in float64, token after token, and the functions of single vectors: a part of `evaluation`."""

from __future__ import annotations

import math

import numpy as np
import scipy  # its parts are loaded when they are first named

from attngeom.exact.arrays import Array
from attngeom.models.layer import RecurrentWeights
from attngeom.models.mixers import DAMPING, LENGTH_EPS, RecurrentMixer
from attngeom.models.sublayers import Norm


def normalise(x: Array, norm: Norm) -> Array:
    """n(x) of every row: divided by its root mean square, for ``layer`` after subtraction of its mean."""
    if norm.kind == "layer":
        x = x - x.mean(axis=-1, keepdims=True)
    scaled: Array = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + norm.eps)
    return scaled


def activate(x: Array, name: str) -> Array:
    """The activation functions by name."""
    if name == "gelu":
        return np.asarray(0.5 * x * (1 + scipy.special.erf(x / math.sqrt(2))))
    if name == "gelu_tanh":
        return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
    if name == "quick_gelu":
        return np.asarray(x * scipy.special.expit(1.702 * x))
    if name == "silu":
        return np.asarray(x * scipy.special.expit(x))
    if name == "relu":
        return np.maximum(x, 0)
    if name == "relu2":
        return np.maximum(x, 0) ** 2
    return np.asarray(np.tanh(x) if name == "tanh" else scipy.special.expit(x))


def apply_recurrence(x: Array, spec: RecurrentMixer, weights: RecurrentWeights) -> Array:
    """A recurrent mixer, token after token."""
    count, v = len(x), _convolved(weights, "value", x)
    y = _states(x, v, spec, weights) if spec.has_keys else _damped(v, weights)
    if weights.skip is not None:
        y = y + weights.skip[:, None] * activate(v, "silu").transpose(2, 0, 1)
    gate = activate(weights.output_gate(x.T), spec.gating).transpose(2, 0, 1)
    y = y * gate if spec.gates_first else y
    if spec.norm is not None:
        y = normalise(y.reshape(count, -1, spec.normed), spec.norm).reshape(y.shape)
    y = y * weights.gain
    y = y if spec.gates_first else y * gate
    return np.asarray(np.einsum("thv,hdv->td", y, weights.output, optimize=True) + weights.output_bias)


def _damped(v: Array, weights: RecurrentWeights) -> Array:
    """States of values (H, v, t), channel by channel: (t, H, v)."""
    assert weights.input_gate is not None and weights.recurrence_gate is not None and weights.damping is not None
    speed = DAMPING * np.logaddexp(0, weights.damping)[..., None]
    logarithms = -speed * scipy.special.expit(weights.recurrence_gate(v))
    written = np.sqrt(-np.expm1(2 * logarithms))
    written[..., 0] = 1
    written, decays = written * scipy.special.expit(weights.input_gate(v)) * v, np.exp(logarithms)
    y, state = np.zeros((v.shape[2], *v.shape[:2])), np.zeros(v.shape[:2])
    for t in range(len(y)):
        state = decays[..., t] * state + written[..., t]
        y[t] = state
    return y


def _states(x: Array, v: Array, spec: RecurrentMixer, weights: RecurrentWeights) -> Array:
    """What queries read of the states of heads, (t, H, v)."""
    share, count = spec.heads // spec.groups, len(x)
    q, k, v = (activate(rows, "silu") for rows in (*(_convolved(weights, name, x) for name in ("query", "key")), v))
    q, k = (np.repeat(rows, share, axis=0) for rows in (q, k))
    if spec.decays is not None:
        decays, strengths = np.repeat(spec.decays[:, None], count, axis=1), np.ones((spec.heads, count))
    else:
        assert weights.step is not None and weights.step_shift is not None and weights.decay is not None
        steps = np.maximum(np.logaddexp(0, weights.step(x.T) + weights.step_shift[:, None]), spec.least_step)
        decays, strengths = np.exp(-np.exp(weights.decay)[:, None] * steps), steps
    if weights.strength is not None:
        q, k = (rows / np.sqrt((rows**2).sum(axis=1, keepdims=True) + LENGTH_EPS) for rows in (q, k))
        q, strengths = q / math.sqrt(spec.head_dim), scipy.special.expit(weights.strength(x.T))
        strengths = strengths * (1 + spec.reflects)
    state = np.zeros((spec.heads, spec.head_dim, spec.value_dim))
    y = np.zeros((count, spec.heads, spec.value_dim))
    for t in range(count):
        state = state * decays[:, t, None, None]
        new = v[:, :, t] - (np.einsum("ha,hav->hv", k[:, :, t], state) if spec.corrects else 0)
        state = state + strengths[:, t, None, None] * k[:, :, t, None] * new[:, None]
        y[t] = np.einsum("ha,hav->hv", q[:, :, t], state)
    return y


def _convolved(weights: RecurrentWeights, name: str, x: Array) -> Array:
    """The convolution of a map, (heads, channels, tokens); zeros stand before the first token."""
    taps = getattr(weights, f"{name}_taps")
    rows: Array = getattr(weights, name)(x.T)
    if taps is None:
        return rows
    padded = np.pad(rows, ((0, 0), (0, 0), (taps.shape[-1] - 1, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, taps.shape[-1], axis=-1)
    return np.asarray(np.einsum("hctk,hck->hct", windows, taps) + getattr(weights, f"{name}_shift")[..., None])
