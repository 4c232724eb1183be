"""K-quants of GGUF, written from the layout of their blocks: the package reads them and does not write them.

A block has 256 entries: in Q4_K and Q5_K eight parts of 32, each with a scale and a least value of six bits; in Q6_K
sixteen parts of 16 with a scale of eight bits. Scales are the plain ones, by the extreme entries of a part.
"""

from __future__ import annotations

import numpy as np

BLOCK = 256


def quantise(weights: np.ndarray, kind: str) -> np.ndarray:
    """The bytes of every row, its entries in blocks of 256."""
    blocks = weights.astype(np.float32).reshape(-1, BLOCK)
    packed = _signed(blocks) if kind == "Q6_K" else _shifted(blocks, {"Q4_K": 4, "Q5_K": 5}[kind])
    return packed.reshape(weights.shape[0], -1)


def _rounded(values: np.ndarray, units: np.ndarray, most: int) -> np.ndarray:
    return np.clip(np.rint(values / np.where(units > 0, units, 1)), 0, most).astype(np.uint8)


def _halves(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float16).view(np.uint8)


def _shifted(blocks: np.ndarray, bits: int) -> np.ndarray:
    """w = d s q − e m with codes q of some bits, s and m of six."""
    count, most = len(blocks), 2**bits - 1
    parts = blocks.reshape(count, 8, 32)
    least = np.maximum(0, -parts.min(axis=2))
    steps = (parts.max(axis=2) + least).clip(0) / most
    d, e = ((part.max(axis=1, keepdims=True) / 63).astype(np.float16) for part in (steps, least))
    scales, shifts = (_rounded(part, unit.astype(np.float32), 63) for part, unit in ((steps, d), (least, e)))
    unit, shift = d.astype(np.float32) * scales, e.astype(np.float32) * shifts
    codes = _rounded(parts + shift[..., None], np.broadcast_to(unit[..., None], parts.shape), most)
    low, high = scales[:, 4:], shifts[:, 4:]
    words = [
        scales[:, :4] | (low >> 4 << 6),
        shifts[:, :4] | (high >> 4 << 6),
        (low & 15) | (high & 15) << 4,
    ]
    nibbles = (codes & 15).reshape(count, 4, 2, 32)
    quarters = (nibbles[:, :, 0] | nibbles[:, :, 1] << 4).reshape(count, -1)
    fifths = [np.bitwise_or.reduce((codes >> 4) << np.arange(8, dtype=np.uint8)[:, None], axis=1)] if bits == 5 else []
    return np.concatenate([_halves(d), _halves(e), *words, *fifths, quarters], axis=1)


def _signed(blocks: np.ndarray) -> np.ndarray:
    """w = d s (q − 32) with codes q of six bits, s signed of eight."""
    count = len(blocks)
    parts = blocks.reshape(count, 16, 16)
    places = np.abs(parts).argmax(axis=2)[..., None]
    steps = np.take_along_axis(parts, places, axis=2)[..., 0] / -32
    d = (np.abs(steps).max(axis=1, keepdims=True) / 127).astype(np.float16)
    scales = np.clip(np.rint(steps / np.where(d > 0, d, 1).astype(np.float32)), -127, 127).astype(np.int8)
    unit = (d.astype(np.float32) * scales)[..., None]
    codes = np.clip(np.rint(parts / np.where(unit != 0, unit, 1)) + 32, 0, 63).astype(np.uint8).reshape(count, 2, 4, 32)
    nibbles = (codes & 15).reshape(count, 2, 2, 64)
    low = (nibbles[:, :, 0] | nibbles[:, :, 1] << 4).reshape(count, -1)
    shifts = np.array([0, 2, 4, 6], dtype=np.uint8)[:, None]
    high = np.bitwise_or.reduce((codes >> 4) << shifts, axis=2).reshape(count, -1)
    return np.concatenate([low, high, scales.view(np.uint8), _halves(d)], axis=1)
