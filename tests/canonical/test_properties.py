"""Canonical forms at generic, degenerate and extreme weights: constant on orbits, idempotent, faithful, or refused."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from attngeom.canonical import canonicalize, teleport
from attngeom.errors import InputError
from attngeom.exact import QQ, RR
from attngeom.exact.domains import GF, Balls
from attngeom.network import Architecture, Weights, forward, random_symmetry, random_weights
from tests.canonical.strategies import degenerate_weights, extreme_weights, gentle_symmetry, networks
from tests.effort import examples

SEEDS = st.integers(0, 10**6)


def distance(first, second):
    """The largest difference of an entry, relative to its tensor."""
    worst = 0.0
    for (_, a), (_, b) in zip(first.tensors(), second.tensors()):
        size = max(np.abs(a).max(), np.abs(b).max())
        worst = max(worst, np.abs(a - b).max() / size if size else 0.0)
    return worst


def outputs_agree(first, second, seed, size=1, tolerance=1e-6):
    """Evaluation in balls of high precision at a rational input, by whole outputs: independent of what writers check.

    Outputs below 1e-200 are zero: exact zeros of softmax networks are known to the precision of the balls.
    """
    architecture = first.architecture
    shape = (architecture.widths[0], max(2, architecture.tokens))
    X = QQ.convert(np.random.default_rng(seed).integers(-99, 100, size=shape)) / 64 * size
    for precision in (1500, 12_000, 100_000):
        balls = Balls(precision)
        with balls.working():
            one, two = (forward(weights.to(balls), balls.convert(X)).ravel() for weights in (first, second))
            if all(y.is_finite() and y.rad() <= 1e-9 * abs(y).upper() + 1e-250 for y in (*one, *two)):
                largest = max(abs(y).upper() for y in (*one, *two))
                return largest < 1e-200 or max(abs(y - z).upper() for y, z in zip(one, two)) <= tolerance * largest
    raise AssertionError("100,000 bits do not tell the outputs of these weights")


@examples(40)
@given(architecture=networks(), seed=SEEDS, generic=st.booleans())
def test_exact_forms_are_constant_on_orbits_idempotent_and_faithful(architecture, seed, generic):
    make = random_weights if generic else lambda a, domain, seed: degenerate_weights(a, seed)
    weights = make(architecture, QQ, seed)
    found = canonicalize(weights)
    assert found.is_canonical and found.standing == "proven"
    assert canonicalize(random_symmetry(architecture, QQ, seed + 1).apply(weights)).weights.equals(found.weights)
    assert canonicalize(found.weights).weights.equals(found.weights)
    if architecture.rule.is_polynomial:
        X = QQ.random((architecture.widths[0], max(2, architecture.tokens)), np.random.default_rng(seed))
        assert QQ.equal(forward(found.weights, X), forward(weights, X))
    else:
        assert outputs_agree(weights, found.weights, seed, tolerance=1e-100)


@examples(25)
@given(architecture=networks(kinds=("lightning",)), seed=SEEDS)
def test_forms_over_a_finite_field_are_constant_on_orbits(architecture, seed):
    field = GF(5)
    weights = random_weights(architecture, field, seed)
    found = canonicalize(weights).weights
    assert canonicalize(random_symmetry(architecture, field, seed + 1).apply(weights)).weights.equals(found)
    X = field.random((architecture.widths[0], 2), np.random.default_rng(seed))
    assert field.equal(forward(found, X), forward(weights, X))


@examples(30)
@given(architecture=networks(), seed=SEEDS, gauge=st.sampled_from(["balanced", "echelon"]), generic=st.booleans())
def test_float_forms_are_constant_on_orbits_idempotent_and_faithful(architecture, seed, gauge, generic):
    weights = random_weights(architecture, RR, seed) if generic else degenerate_weights(architecture, seed).to(RR)
    found = canonicalize(weights, gauge)
    assert outputs_agree(weights, found.weights, seed)
    if not found.is_canonical:
        return
    assert distance(canonicalize(found.weights, gauge).weights, found.weights) < 1e-7
    moved = gentle_symmetry(architecture, seed + 1).apply(weights)
    try:
        other = canonicalize(moved, gauge)
    except InputError:
        # A function that is zero up to rounding errors is not replaced by zero.
        return
    if other.is_canonical:
        assert distance(other.weights, found.weights) < 1e-7


@examples(30)
@given(architecture=networks(), seed=SEEDS, gauge=st.sampled_from(["balanced", "echelon"]))
def test_extreme_weights_are_written_faithfully_or_refused(architecture, seed, gauge):
    weights = extreme_weights(architecture, seed)
    try:
        found = canonicalize(weights, gauge)
    except InputError as error:
        assert len(str(error)) <= 200
        return
    assert np.all(np.isfinite(found.weights.vector()))
    assert outputs_agree(weights, found.weights, seed)
    if found.is_canonical:
        assert distance(canonicalize(found.weights, gauge).weights, found.weights) < 1e-6


@examples(25)
@given(architecture=networks(), seed=SEEDS, objective=st.sampled_from(["random", "norm"]), extreme=st.booleans())
def test_teleports_are_faithful_or_refused(architecture, seed, objective, extreme):
    weights = extreme_weights(architecture, seed) if extreme else random_weights(architecture, RR, seed)
    try:
        found = teleport(weights, objective, seed)
    except InputError as error:
        assert extreme and len(str(error)) <= 200
        return
    assert np.all(np.isfinite(found.weights.vector()))
    assert outputs_agree(weights, found.weights, seed)


def softmax(Q, O, heads=2):
    architecture = Architecture((2, 2), 1, kind="softmax", heads=heads, value_width=1)
    tensors = {}
    for head in range(heads):
        tensors |= {f"layers.0.heads.{head}.K": [[1, 2]], f"layers.0.heads.{head}.V": [[1, head]]}
        tensors |= {f"layers.0.heads.{head}.Q": Q[head], f"layers.0.heads.{head}.O": O[head]}
    return Weights.from_tensors(architecture, tensors, QQ)


def test_a_softmax_head_without_scores_keeps_its_values():
    weights = softmax([[[0, 0]], [[1, 0]]], [[[1], [1]], [[1], [2]]])
    found = canonicalize(weights).weights
    assert QQ.is_zero(found.layers[0][0].Q) and not QQ.is_zero(found.layers[0][0].V)
    assert outputs_agree(weights, found, 0, tolerance=1e-100)


def test_heads_of_one_attention_matrix_are_one_term():
    # Both heads have the same scores: the sum of their value maps has rank one, so one head is enough.
    weights = softmax([[[1, 1]], [[1, 1]]], [[[1], [1]], [[0], [0]]])
    found = canonicalize(weights).weights
    assert not QQ.is_zero(found.layers[0][0].O) and QQ.is_zero(found.layers[0][1].O)
    assert outputs_agree(weights, found, 0, tolerance=1e-100)
    cancelling = softmax([[[1, 1]], [[1, 1]]], [[[1], [1]], [[-1], [-1]]])
    tensors = dict(cancelling.tensors()) | {"layers.0.heads.1.V": QQ.convert([[1, 0]])}
    cancelling = Weights.from_tensors(cancelling.architecture, tensors, QQ)
    assert QQ.is_zero(canonicalize(cancelling).weights.vector())
