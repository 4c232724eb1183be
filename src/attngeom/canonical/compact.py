"""Canonical coordinates: the free entries of a canonical form, as a vector, and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from attngeom.canonical.form import CanonicalForm, CanonicalTerm
from attngeom.errors import FormatError, InputError
from attngeom.exact.domains import Array


def _free_entries(form: CanonicalForm) -> Iterator[tuple[int, int, str, Array]]:
    """For each tensor (layer, term, letter) the boolean mask of its free entries."""
    last = len(form.layers) - 1
    for index, layer in enumerate(form.layers):
        starts = np.cumsum([0, *(term.O.shape[1] for term in layer.terms)])
        for place, term in enumerate(layer.terms):
            keys = np.ones(term.K.shape, dtype=bool)
            if term.scale_pivot is not None:
                keys[term.scale_pivot] = False
            yield index, place, "K", keys
            yield index, place, "Q", _outside(term.Q.shape, term.query_pivots)
            yield index, place, "V", _outside(term.V.shape, term.value_pivots)
            if layer.stack_pivots is None:
                outputs = np.ones(term.O.shape, dtype=bool)
                if form.log_scale is not None and index == last and place == largest_output(form)[0]:
                    outputs[largest_output(form)[1]] = False
            else:
                inside = [p - int(starts[place]) for p in layer.stack_pivots if starts[place] <= p < starts[place + 1]]
                outputs = _outside(term.O.shape, tuple(inside))
            yield index, place, "O", outputs


def _outside(shape: tuple[int, ...], pivots: tuple[int, ...]) -> Array:
    mask = np.ones(shape, dtype=bool)
    mask[:, list(pivots)] = False
    return mask


def largest_output(form: CanonicalForm) -> tuple[int, tuple[int, int]]:
    """Term and place of the entry ±1 of the last outputs of a float form that is not zero."""
    terms = form.layers[-1].terms
    sizes = [np.abs(term.O).max(initial=0.0) for term in terms]
    place = int(np.argmax(sizes))
    flat = int(np.argmax(np.abs(terms[place].O)))
    width = terms[place].O.shape[1]
    return place, (flat // width, flat % width)


def without_exponents(form: CanonicalForm) -> CanonicalForm:
    """The form with every power of two multiplied out; InputError if an entry leaves the range of floats."""
    layers = (replace(layer, terms=tuple(map(_multiplied_out, layer.terms))) for layer in form.layers)
    return replace(form, layers=tuple(layers))


def _multiplied_out(term: CanonicalTerm) -> CanonicalTerm:
    K, O = term.keys, term.outputs
    if not (K.exponent or O.exponent):
        return term
    if not (K.fits and O.fits):
        raise InputError("weights with coordinates beyond the range of floats given; rescale them")
    return replace(term, K=K.join(), O=O.join(), key_exponent=0, output_exponent=0)


def coordinates(form: CanonicalForm) -> Array:
    """The free entries of a canonical form; their number is the dimension of the function space at generic weights.

    >>> from attngeom.exact import QQ
    >>> from attngeom.canonical.form import canonical_form
    >>> from attngeom.network import Architecture, random_weights
    >>> len(coordinates(canonical_form(random_weights(Architecture((2, 2), 2), QQ, seed=0))))
    7
    """
    form = without_exponents(form)
    parts = [form.domain.zeros((0,))]
    for index, place, letter, mask in _free_entries(form):
        parts.append(getattr(form.layers[index].terms[place], letter)[mask])
    if form.log_scale is not None:
        parts.append(np.array([form.log_scale]))
    return np.concatenate(parts)


def with_coordinates(form: CanonicalForm, vector: Array) -> CanonicalForm:
    """The form with the same pivots and other free entries."""
    form = without_exponents(form)
    needed = sum(int(mask.sum()) for *_, mask in _free_entries(form)) + (form.log_scale is not None)
    if vector.shape != (needed,):
        raise FormatError(f"{vector.size} canonical coordinates given; {needed} are required for these pivots")
    terms: list[list[CanonicalTerm]] = [list(layer.terms) for layer in form.layers]
    start = 0
    for index, place, letter, mask in _free_entries(form):
        count = int(mask.sum())
        array = getattr(form.layers[index].terms[place], letter).copy()
        array[mask] = vector[start : start + count]
        terms[index][place] = replace(terms[index][place], **{letter: array})
        start += count
    layers = tuple(replace(layer, terms=tuple(moved)) for layer, moved in zip(form.layers, terms))
    return replace(form, layers=layers, log_scale=None if form.log_scale is None else float(vector[-1]))
