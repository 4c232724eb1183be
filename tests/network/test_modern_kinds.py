"""Kinds of attention and options beyond the papers: functions, exact evaluation, symmetries, files."""

from itertools import product

import numpy as np
import pytest

from attngeom.errors import InputError
from attngeom.exact.domains import GF, QQ, RR, Balls
from attngeom.interop.weights import read_weights, write_weights
from attngeom.network import Architecture, Weights, forward, random_symmetry, random_weights
from attngeom.network.attention import KINDS, RULES
from attngeom.network.options import OPTIONS
from attngeom.network.programs import is_rational, program_of, run_network
from attngeom.network.symmetry import count_generators, infinitesimal_action
from attngeom.programs.domains import arithmetic_of
from attngeom.programs.operations import Point
from attngeom.programs.passes import push, run
from tests.network.modern_cases import CASES, label, reference

SHAPES = [
    dict(widths=(3, 2)),
    dict(widths=(3, 3, 3), heads=2, value_width=2, residual=True),
    dict(widths=(3, 4, 2), heads=2, value_width=2),
    dict(widths=(2, 3, 2)),
]


def networks(case, tokens=4, attention=2, causal=False):
    kind, options = case
    for shape in SHAPES:
        if options.get("memory") and len(shape["widths"]) > 2 and not shape.get("residual"):
            continue
        yield Architecture(attention=attention, tokens=tokens, kind=kind, causal=causal, **shape, **options)


def test_the_table_has_every_kind_and_every_option():
    assert {kind for kind, _ in CASES} == set(KINDS)
    assert {name for _, options in CASES for name in options} == set(OPTIONS)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", RULES)
def test_programs_of_the_kinds_of_the_papers_compute_what_passes_do(kind, causal):
    network = Architecture((3, 4, 3), 2, kind=kind, heads=2, value_width=2, causal=causal, tokens=4)
    weights, X = random_weights(network, RR, 1), np.random.default_rng(0).standard_normal((5, 3, 4))
    np.testing.assert_allclose(run_network(weights, X), forward(weights, X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("case", CASES, ids=label)
def test_a_head_computes_its_definition(case, causal):
    kind, options = case
    rng = np.random.default_rng(7)
    for network in networks(case, causal=causal):
        weights, X = random_weights(network, RR, int(rng.integers(10**6))), rng.standard_normal((network.widths[0], 4))
        Y = X
        for index, heads in enumerate(weights.layers):
            total = Y if network.residual else 0
            for place, head in enumerate(heads):
                mixed = reference(kind, options, head, Y, network.causal, place)
                total = total + (mixed if head.O is None else head.O @ mixed)
            Y = total + (weights.shared[index]["bO"] if weights.shared else 0)
        np.testing.assert_allclose(forward(weights, X), Y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("case", CASES, ids=label)
def test_symmetries_keep_the_function_and_are_a_group(case):
    rng = np.random.default_rng(11)
    for network in networks(case):
        weights, X = random_weights(network, RR, 3), rng.standard_normal((3, network.widths[0], 4))
        g, h = (random_symmetry(network, RR, int(rng.integers(10**6))) for _ in range(2))
        Y = forward(weights, X)
        np.testing.assert_allclose(forward(g.apply(weights), X), Y, rtol=1e-6, atol=1e-7 * np.abs(Y).max())
        once, twice = h.compose(g).apply(weights).vector(), h.apply(g.apply(weights)).vector()
        np.testing.assert_allclose(once, twice, rtol=1e-6, atol=1e-6 * np.abs(twice).max())
        back = g.inverse().apply(g.apply(weights)).vector()
        np.testing.assert_allclose(back, weights.vector(), atol=1e-6 * np.abs(weights.vector()).max())


@pytest.mark.parametrize("case", CASES, ids=label)
def test_tangent_vectors_of_the_group_do_not_change_the_function(case):
    for network in networks(case):
        weights = random_weights(network, RR, 5)
        rows = infinitesimal_action(weights)
        assert len(rows) == sum(count_generators(network).values())
        program = program_of(network, 3 if network.options.get("memory") else 2)
        X = np.random.default_rng(1).standard_normal((1, *program.inputs["X"]))
        tensors = {name: array[None] for name, array in weights.tensors()}
        traces = run(program, Point(arithmetic_of(RR), {**tensors, "X": X}))
        if len(rows):
            moved = push(program, traces, program.split(rows))[program.output]
            assert moved is None or np.abs(moved).max() < 1e-9


@pytest.mark.parametrize("case", CASES, ids=label)
def test_exact_weights_are_evaluated_exactly_or_enclosed(case):
    for network in networks(case):
        weights = random_weights(network, QQ, 2)
        small = Weights.from_vector(network, weights.vector() / 16, QQ)
        X = QQ.convert(np.random.default_rng(2).integers(1, 9, size=(network.widths[0], 4))) / 8
        floats = forward(small.to(RR), RR.convert(X))
        balls = Balls(128)
        enclosed = forward(small.to(balls), balls.convert(X))
        for ball, number in zip(enclosed.ravel(), floats.ravel()):
            assert abs(float(ball.mid()) - number) < 1e-9
        if is_rational(network):
            exact = forward(small, X)
            assert balls.equal(enclosed, balls.convert(exact))
            p = 1000003
            residues = forward(small.to(GF(p)), GF(p).convert(X))
            assert GF(p).equal(residues, GF(p).convert(exact))


@pytest.mark.parametrize("case", CASES, ids=label)
def test_files_read_back(case, tmp_path):
    for number, network in enumerate(networks(case)):
        assert Architecture.from_json(network.to_json()) == network
        for domain, suffix in ((RR, "safetensors"), (QQ, "json")):
            weights, path = random_weights(network, domain, 1), tmp_path / f"{number}.{suffix}"
            write_weights(weights, path)
            assert read_weights(path).equals(weights)


def test_files_of_plain_networks_are_as_they_were():
    record = Architecture((3, 2), 2).to_json()
    assert record == {
        "widths": [3, 2],
        "attention": [2],
        "tokens": 3,
        "kind": "lightning",
        "heads": 1,
        "value_width": None,
        "residual": False,
        "causal": False,
    }


@pytest.mark.parametrize(
    "arguments, words",
    [
        (dict(kind="gla", alibi="fixed"), "alibi given for gla attention; it takes the options bias"),
        (dict(kind="lightning", alibi="steep"), "one of fixed, learned"),
        (dict(kind="lightning", rope=True, attention=3), "planes need an even one"),
        (dict(kind="lightning", window=0), "positive integer"),
        (dict(kind="lightning", memory=3), "fewer are required"),
        (dict(kind="lightning", bias=1), "true or false"),
        (dict(kind="lightning", speed=1), "known options are bias"),
        (dict(kind="kda", temperature="1/2"), "divide Q by it"),
    ],
)
def test_bad_options_are_refused_in_one_line(arguments, words):
    with pytest.raises(InputError, match=words) as caught:
        Architecture(**{"widths": (3, 3), "attention": 2, **arguments})
    assert "\n" not in str(caught.value) and len(str(caught.value)) <= 200


@pytest.mark.parametrize("kind, options", [("gla", {}), ("lightning", {"bias": True})])
def test_what_is_known_of_scores_alone_is_refused_for_other_kinds(kind, options):
    with pytest.raises(InputError, match="answered for lightning, softmax and sigmoid without options"):
        _ = Architecture((2, 2), 1, kind=kind, **options).rule


def test_recurrences_see_earlier_tokens_only():
    rng = np.random.default_rng(0)
    for (kind, options), residual in product(CASES, (False, True)):
        network = Architecture((3, 3), 2, kind=kind, residual=residual, tokens=4, causal=True, **options)
        weights, X = random_weights(network, RR, 1), rng.standard_normal((3, 4))
        changed = X.copy()
        changed[:, 3] += 1
        np.testing.assert_allclose(forward(weights, changed)[:, :3], forward(weights, X)[:, :3], rtol=1e-12)
