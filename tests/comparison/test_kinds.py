"""Comparison, canonical form, teleport and laws of the kinds beyond the papers, by one table of networks."""

from random import Random

import numpy as np
import pytest

from attngeom.canonical import canonicalize, teleport
from attngeom.comparison import compare
from attngeom.errors import DomainError, InputError
from attngeom.exact.domains import QQ, RR, Balls
from attngeom.learning.laws import conserved_quantities
from attngeom.network import Architecture, Weights, forward, random_symmetry, random_weights
from tests.network.modern_cases import CASES, label

SHAPES = [dict(widths=(3, 2)), dict(widths=(3, 3, 3), heads=2, value_width=2, residual=True)]
UNSEEN = ("bK",)
"""Of normalised attention without rotary embeddings."""


def networks(case):
    kind, options = case
    return [Architecture(attention=2, tokens=3, kind=kind, **shape, **options) for shape in SHAPES]


@pytest.mark.parametrize("domain", [QQ, RR], ids=["exact", "float"])
@pytest.mark.parametrize("case", CASES, ids=label)
def test_what_a_symmetry_moves_is_the_same(case, domain):
    rng = Random(label(case))
    for network in networks(case):
        weights = random_weights(network, domain, rng.randrange(10**6))
        moved = random_symmetry(network, domain, rng.randrange(10**6)).apply(weights)
        result = compare(weights, moved)
        assert result.same_function is True, result.reason
        assert result.standing == ("proven" if domain.is_exact else "estimate")
        assert result.to_json()["same_function"] is True


@pytest.mark.parametrize("domain", [QQ, RR], ids=["exact", "float"])
@pytest.mark.parametrize("case", CASES, ids=label)
def test_every_tensor_that_is_changed_is_told(case, domain):
    """One entry of each tensor in turn; the biases of keys that cancel leave the function as it is."""
    rng = Random(label(case) + "changed")
    kind, options = case
    for network in networks(case):
        drawn = random_weights(network, domain, rng.randrange(10**6))
        # Integers up to 9 saturate the gates of a second layer beyond the precision of balls.
        weights = Weights.from_vector(network, drawn.vector() / 8, domain)
        for name, place in network.slots().items():
            vector = weights.vector().copy()
            entry = rng.randrange(place.start, place.stop)
            step = QQ.convert(["1/50"])[0] if domain.is_exact else 0.02
            vector[entry] = vector[entry] + step
            changed = Weights.from_vector(network, vector, domain)
            unseen = kind == "softmax" and name.endswith(UNSEEN) and not options.get("rope")
            result = compare(weights, changed)
            assert result.same_function is unseen, (name, result.reason)
            if result.separation is not None and domain.is_exact:
                balls = Balls(4096)
                X = balls.convert(result.separation.X)
                assert not balls.equal(*(forward(w.to(balls), X) for w in (weights, changed)))


def test_heads_with_fixed_numbers_do_not_change_places():
    network = Architecture((3, 2), 2, kind="retnet", heads=2, value_width=1)
    weights = random_weights(network, QQ, 0)
    swapped = Weights(network, QQ, (weights.layers[0][::-1],))
    assert compare(weights, swapped).same_function is False
    learned = Architecture((3, 2), 2, kind="retnet", heads=2, value_width=1, decay="learned")
    weights = random_weights(learned, QQ, 0)
    assert compare(weights, Weights(learned, QQ, (weights.layers[0][::-1],))).same_function is True


def test_the_two_maps_of_differential_attention_change_places():
    network = Architecture((3, 2), 2, kind="differential")
    own = random_weights(network, QQ, 3).layers[0][0].tensors
    factor = own["lambda"]
    moved = {"Q": own["Q2"], "K": own["K2"], "Q2": own["Q"], "K2": own["K"], "V": -factor * own["V"]}
    tensors = {f"layers.0.{letter}": array for letter, array in {**moved, "lambda": 1 / factor}.items()}
    assert compare(random_weights(network, QQ, 3), Weights.from_tensors(network, tensors, QQ)).same_function is True


@pytest.mark.parametrize("shape", [((3, 3, 2), 1, None), ((2, 3, 2), 1, None), ((3, 2, 2, 2), 2, 1)], ids=str)
@pytest.mark.parametrize("case", CASES, ids=label)
def test_bases_between_layers_are_divided_out(case, shape):
    """Stacks without skip connections, also with hidden widths beyond the ranks before them; one entry is seen."""
    kind, options = case
    widths, heads, value_width = shape
    residual = bool(options.get("memory"))
    widths = (2,) * len(widths) if residual else widths
    network = Architecture(widths, 2, kind=kind, heads=heads, value_width=value_width, residual=residual, **options)
    rng = Random(f"{label(case)}{shape}")
    domain = rng.choice([QQ, RR])
    weights = random_weights(network, domain, rng.randrange(10**6))
    moved = random_symmetry(network, domain, rng.randrange(10**6)).apply(weights)
    assert compare(weights, moved).same_function is True
    vector = moved.vector()
    place = rng.randrange(len(vector))
    vector[place] = vector[place] * 2 + 1
    seen = compare(weights, Weights.from_vector(network, vector, domain)).same_function is not True
    assert seen or unseen(network, place)


def unseen(network, place):
    """Whether functions may not depend on an entry: biases of keys that cancel, weights on coordinates that are 0."""
    name = next(name for name, slot in network.slots().items() if slot.start <= place < slot.stop)
    wide = network.widths[0] < network.widths[1] and name.startswith("layers.1.")
    cancels = network.kind == "softmax" and not network.options.get("rope")
    return (name.endswith("bK") and cancels) or wide


def test_values_that_are_no_linear_functions_are_not_multiplied():
    """O φ(V x) with V → B V, O → O B⁻¹ is another function: its products were called the same once."""
    network = Architecture((3, 2), 2, kind="linear", feature="silu", unnormalised=True, value_width=2)
    tensors = dict(random_weights(network, QQ, 0).tensors())
    changed = dict(tensors)
    changed["layers.0.heads.0.V"] = QQ.convert([[1, 1], [0, 1]]) @ tensors["layers.0.heads.0.V"]
    changed["layers.0.heads.0.O"] = tensors["layers.0.heads.0.O"] @ QQ.convert([[1, -1], [0, 1]])
    first, second = (Weights.from_tensors(network, x, QQ) for x in (tensors, changed))
    assert compare(first, second).same_function is False
    order = {"V": np.s_[::-1], "O": np.s_[:, ::-1]}
    changed = {name: array[order.get(name[-1], np.s_[:])] for name, array in tensors.items()}
    assert compare(first, Weights.from_tensors(network, changed, QQ)).same_function is True


def test_inputs_at_which_exponentials_overflow_tell_nothing_and_smaller_ones_do():
    network = Architecture((2, 2, 2), 2, kind="softmax", alibi="learned", rope=True, residual=True)
    tensors = {x: 40 * array for x, array in random_weights(network, RR, 0).tensors()}
    changed = tensors | {"layers.0.V": tensors["layers.0.V"] + 1}
    weights = [Weights.from_tensors(network, x, RR) for x in (tensors, changed)]
    with np.errstate(all="ignore"):
        assert not np.all(np.isfinite(forward(weights[0], np.random.default_rng(0).standard_normal((2, 3)))))
    assert compare(*weights).same_function is False


@pytest.mark.parametrize("domain", [QQ, RR], ids=["exact", "float"])
def test_scores_of_one_token_of_memory_are_not_seen(domain):
    for memory, same in ((1, True), (2, False)):
        network = Architecture((3, 2), 2, kind="softmax", memory=memory, bias=True)
        tensors = dict(random_weights(network, domain, 0).tensors())
        changed = tensors | {x: domain.add(tensors[x], tensors[x]) for x in ("layers.0.Q", "layers.0.bQ")}
        changed = [Weights.from_tensors(network, x, domain) for x in (tensors, changed)]
        assert compare(*changed).same_function is same


def test_outputs_that_change_places_are_told():
    """Rows of V are outputs where values are no linear functions and have no O: their order was not seen once."""
    network = Architecture((3, 2), 2, kind="linear", feature="silu", unnormalised=True)
    tensors = dict(random_weights(network, QQ, 0).tensors())
    changed = tensors | {"layers.0.V": tensors["layers.0.V"][::-1].copy()}
    assert compare(*(Weights.from_tensors(network, x, QQ) for x in (tensors, changed))).same_function is False


@pytest.mark.parametrize("domain", [QQ, RR], ids=["exact", "float"])
@pytest.mark.parametrize("case", CASES, ids=label)
def test_canonical_weights_do_not_depend_on_the_point_of_the_orbit(case, domain):
    rng = Random(label(case) + "canonical")
    for network in networks(case):
        weights = random_weights(network, domain, rng.randrange(10**6))
        if domain.is_exact and "query-key-rotation" in network.mechanism.symmetries():
            with pytest.raises(DomainError, match="give floats"):
                canonicalize(weights)
            continue
        found = canonicalize(weights)
        assert compare(weights, found.weights).same_function is True
        for seed in (1, 2):
            other = canonicalize(teleport(weights, seed=seed).weights).weights
            if domain.is_exact:
                assert other.equals(found.weights)
            else:
                assert found.is_canonical
                np.testing.assert_allclose(other.vector(), found.weights.vector(), atol=1e-6, rtol=1e-6)


def test_moves_that_are_not_known_are_refused():
    weights = random_weights(Architecture((3, 2), 2, kind="gla"), RR, 0)
    with pytest.raises(InputError, match="objective norm given"):
        teleport(weights, "norm")
    with pytest.raises(InputError, match="balanced is known"):
        canonicalize(weights, "echelon")


@pytest.mark.parametrize("case", CASES, ids=label)
def test_laws_are_conserved_and_no_more_are_listed_than_exist(case):
    """dh annihilates every gradient: the differentials of the laws lie in the kernel of the Jacobian."""
    from attngeom.learning.laws import differentials
    from attngeom.network.programs import program_of
    from attngeom.programs.domains import arithmetic_of
    from attngeom.programs.operations import Point
    from attngeom.programs.passes import push, run

    kind, options = case
    network = Architecture((3, 2), 2, tokens=3, kind=kind, **options)
    laws = conserved_quantities(network, prove=True)
    assert laws.most is not None and laws.count is not None and laws.count <= laws.most
    if not laws.quantities:
        return
    weights = random_weights(network, RR, 4)
    program = program_of(network, 3)
    X = np.random.default_rng(5).standard_normal((1, 3, 3))
    traces = run(program, Point(arithmetic_of(RR), {**{n: a[None] for n, a in weights.tensors()}, "X": X}))
    moved = push(program, traces, program.split(differentials(weights, laws.quantities)))[program.output]
    assert moved is None or np.abs(moved).max() < 1e-9


@pytest.mark.parametrize("kind, complete", [("gla", True), ("kda", True), ("deltanet", False)])
def test_laws_are_complete_where_they_fill_the_fiber(kind, complete):
    assert conserved_quantities(Architecture((3, 2), 2, kind=kind)).is_complete is complete
