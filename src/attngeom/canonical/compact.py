"""Canonical coordinates: the free entries of a canonical form, as a vector, and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from attngeom.canonical.echelon import free_columns
from attngeom.canonical.form import CanonicalForm, CanonicalHead
from attngeom.errors import FormatError
from attngeom.exact.domains import Array


def _free_entries(form: CanonicalForm) -> Iterator[tuple[int, int, str, Array]]:
    """For each tensor (layer, head, letter) the boolean mask of its free entries."""
    last = len(form.layers) - 1
    for index, layer in enumerate(form.layers):
        widths = [head.O.shape[1] for head in layer.heads]
        starts = np.cumsum([0, *widths])
        for place, head in enumerate(layer.heads):
            keys = np.ones(head.K.shape, dtype=bool)
            if head.scale_pivot is not None:
                keys[head.scale_pivot] = False
            yield index, place, "K", keys
            yield index, place, "Q", _outside(head.Q.shape, head.query_pivots)
            yield index, place, "V", _outside(head.V.shape, head.value_pivots)
            if layer.stack_pivots is None:
                outputs = np.ones(head.O.shape, dtype=bool)
                if form.log_scale is not None and index == last and place == largest_output(form)[0]:
                    outputs[largest_output(form)[1]] = False
            else:
                inside = [p - int(starts[place]) for p in layer.stack_pivots if starts[place] <= p < starts[place + 1]]
                outputs = _outside(head.O.shape, tuple(inside))
            if not head.query_pivots:
                outputs[...] = False
            yield index, place, "O", outputs


def _outside(shape: tuple[int, ...], pivots: tuple[int, ...]) -> Array:
    mask = np.zeros(shape, dtype=bool)
    mask[:, free_columns(shape[1], pivots)] = True
    return mask


def largest_output(form: CanonicalForm) -> tuple[int, tuple[int, int]]:
    """Head and place of the entry ±1 of the last outputs of a float form."""
    heads = form.layers[-1].heads
    sizes = [np.abs(head.O).max(initial=0.0) for head in heads]
    place = int(np.argmax(sizes))
    flat = int(np.argmax(np.abs(heads[place].O)))
    width = heads[place].O.shape[1]
    return place, (flat // width, flat % width)


def coordinates(form: CanonicalForm) -> Array:
    """The free entries of a canonical form; their number is the dimension of the function space at generic weights.

    >>> from attngeom.exact import QQ
    >>> from attngeom.canonical.form import canonical_form
    >>> from attngeom.network import Architecture, random_weights
    >>> len(coordinates(canonical_form(random_weights(Architecture((2, 2), 2), QQ, seed=0))))
    7
    """
    parts = []
    for index, place, letter, mask in _free_entries(form):
        parts.append(getattr(form.layers[index].heads[place], letter)[mask])
    if form.log_scale is not None:
        parts.append(np.array([form.log_scale]))
    return np.concatenate(parts)


def with_coordinates(form: CanonicalForm, vector: Array) -> CanonicalForm:
    """The form with the same pivots and other free entries."""
    needed = sum(int(mask.sum()) for *_, mask in _free_entries(form)) + (form.log_scale is not None)
    if vector.shape != (needed,):
        raise FormatError(f"{vector.size} canonical coordinates given; {needed} are required for these pivots")
    heads: list[list[CanonicalHead]] = [list(layer.heads) for layer in form.layers]
    start = 0
    for index, place, letter, mask in _free_entries(form):
        count = int(mask.sum())
        array = getattr(form.layers[index].heads[place], letter).copy()
        array[mask] = vector[start : start + count]
        heads[index][place] = replace(heads[index][place], **{letter: array})
        start += count
    layers = tuple(replace(layer, heads=tuple(found)) for layer, found in zip(form.layers, heads))
    return replace(form, layers=layers, log_scale=None if form.log_scale is None else float(vector[-1]))
