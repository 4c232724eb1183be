"""Float verdicts: none wrong on pairs made to mislead, the same one for a swapped pair, few that cannot be told."""

from pathlib import Path

import numpy as np
import pytest

from attngeom.comparison import compare, float_decision
from attngeom.comparison.float_outputs import singular_inputs
from attngeom.comparison.samples import draw_copies
from attngeom.exact import RR
from attngeom.interop import read_weights
from attngeom.network import Architecture, Head, Symmetry, Weights, random_symmetry, random_weights
from attngeom.network.symmetry import Between
from tests.comparison.adversary_chains import make
from tests.comparison.adversary_extremes import EXTREMES, ties
from tests.comparison.adversary_floats import FLOATS, TOLERANCE, small_beside_large
from tests.comparison.adversary_heads import HEADS
from tests.comparison.adversary_more import MORE
from tests.comparison.test_decision import IDENTIFIABLE
from tests.comparison.test_floats import equal_pair, noisy
from tests.effort import choose

DATA = Path(__file__).parent / "data"
PAIRS = choose([1], [0, 1, 2])
"""The numbers of the pairs of each kind; benchmarks/reliability.py runs thousands."""


def verdict(first, second, **options):
    """The verdict, which must not depend on the order."""
    found, swapped = compare(first, second, **options), compare(second, first, **options)
    assert found.same_function is swapped.same_function
    return found.same_function


def layers(architecture, *heads):
    """A network from (Q, K, V) of each layer."""
    return Weights(architecture, RR, tuple((Head(*(np.array(x, dtype=float) for x in head)),) for head in heads))


@pytest.mark.parametrize("maker", FLOATS + EXTREMES + MORE + HEADS, ids=lambda maker: maker.__name__)
def test_no_float_verdict_is_wrong_and_few_are_missing(maker):
    missing = 0
    for index in PAIRS:
        pair = maker(np.random.default_rng([4, index]))
        found = verdict(pair.first, pair.second, tolerance=TOLERANCE)
        assert pair.same is None or found in (pair.same, None), pair
        missing += pair.same is not None and found is None
    assert missing <= len(PAIRS) // 2


SCALAR = Architecture((1, 1, 1), 1)
ONES = layers(SCALAR, ([[1]], [[1]], [[1]]), ([[1]], [[1]], [[1]]))


def test_zero_and_nonzero_differ_in_both_orders():
    zero = layers(SCALAR, ([[1]], [[1]], [[1e4]]), ([[1]], [[1]], [[0]]))
    assert verdict(zero, ONES) is False
    assert verdict(*(read_weights(DATA / f"zinit2_{name}.safetensors") for name in "ab")) is False


@pytest.mark.parametrize("kind", ["lightning", "softmax"])
@pytest.mark.parametrize("size", [1e-80, 1e-160, 1e80])
def test_size_of_the_weights_does_not_matter(kind, size):
    architecture = Architecture((2, 2, 2), 2, kind=kind)
    one, two = (random_weights(architecture, RR, seed).vector() * size for seed in (0, 1))
    first, second = (Weights.from_vector(architecture, x, RR) for x in (one, two))
    assert verdict(first, second) is False
    assert verdict(first, Weights.from_vector(architecture, one * (1 + 1e-11), RR)) is True


def test_tiny_queries_of_several_layers_do_not_vanish():
    architecture = Architecture((1, 3, 3), (1, 3), tokens=2)
    pair = []
    for seed in (0, 1):
        drawn = random_weights(architecture, RR, seed).tensors()
        tensors = {name: a * (2.0**-980 if name.endswith("Q") else 1.0) for name, a in drawn}
        pair.append(Weights.from_tensors(architecture, tensors, RR))
    assert verdict(*pair) is False


def test_numbers_near_the_end_of_the_range_are_compared():
    weights = read_weights(DATA / "huge.safetensors")
    assert verdict(weights, weights) is True
    other = Weights.from_vector(weights.architecture, weights.vector() * [2] + [0] * 12, RR)
    assert verdict(weights, other) is False


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("size", [1e3, 1e9])
def test_saturated_attention_is_seen_at_small_inputs(residual, size):
    architecture = Architecture((2, 2, 2), 2, kind="softmax", residual=residual)
    tensors = dict(random_weights(architecture, RR, 0).tensors())
    first, second = (
        Weights.from_tensors(architecture, tensors | {"layers.0.Q": tensors["layers.0.Q"] * size * k}, RR)
        for k in (1, 2)
    )
    assert verdict(first, second) is False
    assert verdict(first, first) is True


def test_small_entry_beside_a_large_one_is_seen():
    architecture = Architecture((2, 2, 1), 1)
    rest = ([[0, 1]], [[0, 1]], [[0, 1]])
    first, second = (layers(architecture, ([[1, 2]], [[3, 1]], [[1e10, 0], [0, small]]), rest) for small in (1.0, 2.0))
    assert verdict(first, second) is False
    assert verdict(first, first) is True


def test_identity_maps_and_zero_functions_are_equal():
    architecture = Architecture((2, 2, 2), 2, residual=True, kind="softmax")
    idle = []
    for seed in (0, 1):
        tensors = {name: a * (not name.endswith("V")) for name, a in random_weights(architecture, RR, seed).tensors()}
        idle.append(Weights.from_tensors(architecture, tensors, RR))
    assert verdict(*idle) is True
    skew = [[0, 1], [-1, 0]]
    one_token = Architecture((2, 2), 2, tokens=1)
    zero = [layers(one_token, (np.array(skew) * k, np.eye(2), np.eye(2) * k)) for k in (1, 3)]
    assert verdict(*zero) is True
    assert verdict(zero[0], layers(one_token, (np.eye(2), np.eye(2), np.eye(2)))) is False


def test_fiber_that_is_larger_than_the_orbit_is_respected():
    architecture = Architecture((2,) * choose(8, 13), (1, *([2] * choose(6, 11))))
    first = random_weights(architecture, RR, 0)
    rows = [list(heads) for heads in first.layers]
    (head,) = rows[1]
    rows[1] = [Head(head.Q + np.linalg.inv(head.K).T @ np.array([[0, 1], [-1, 0]]), head.K, head.V)]
    second = Weights(architecture, RR, tuple(map(tuple, rows)))
    assert verdict(first, second) is True


def test_noise_is_judged_beside_the_tolerance():
    architecture = Architecture((3, 3, 3), 2, heads=2, value_width=2)
    weights = random_weights(architecture, RR, 0)
    errors = np.random.default_rng(0).standard_normal(architecture.num_parameters)
    changed = Weights.from_vector(architecture, weights.vector() * (1 + 1e-7 * errors), RR)
    assert verdict(weights, changed, tolerance=1e-6) is True
    assert verdict(weights, changed, tolerance=1e-11) is False


def test_difference_along_a_large_direction_does_not_hide():
    architecture = Architecture((4, 4), 2)
    weights = random_weights(architecture, RR, 0)
    vector = weights.vector()
    vector[3] *= 1 + 1e-6
    assert verdict(weights, Weights.from_vector(architecture, vector, RR)) is False


def test_layers_far_below_one_are_still_seen():
    """Scores and values of layers without a skip are measured in their own units: nothing underflows on the way."""
    architecture = Architecture((1, 3, 3, 3), (3, 1, 1), tokens=2, value_width=3)
    one, two = (random_weights(architecture, RR, seed) for seed in (0, 1))

    def shrink(weights):
        tensors = {name: a * 2.0**-990 if name[-1] in "QO" else a for name, a in weights.tensors()}
        return Weights.from_tensors(architecture, tensors, RR)

    assert verdict(shrink(one), shrink(two)) is False


def test_equal_outputs_decide_where_errors_of_the_weights_would_change_them():
    """The second layer reads 1e5 times a unit that is always zero: its errors are seen, the two functions are equal."""
    architecture = Architecture((2, 2, 2), 1, heads=2, value_width=2, tokens=3)
    weights = random_weights(architecture, RR, seed=0)
    tensors = dict(weights.tensors())
    for head in "01":
        tensors[f"layers.0.heads.{head}.O"] = tensors[f"layers.0.heads.{head}.O"] * [[0.0], [1.0]]
    first = Weights.from_tensors(architecture, tensors, RR)
    for head in "01":
        tensors[f"layers.1.heads.{head}.Q"] = tensors[f"layers.1.heads.{head}.Q"] + [[1e5, 0.0]]
    second = Weights.from_tensors(architecture, tensors, RR)
    assert verdict(first, random_symmetry(architecture, RR, 1).apply(second)) is True


def test_wide_layers_with_small_errors_are_the_same():
    architecture = Architecture((choose(32, 64),) * 5, 16)
    first = random_weights(architecture, RR, 0)
    vector = random_symmetry(architecture, RR, 1000).apply(first).vector()
    errors = 1e-10 * np.random.default_rng(0).standard_normal(len(vector))
    assert compare(first, Weights.from_vector(architecture, vector * (1 + errors), RR)).same_function is True


def test_answer_is_a_function_of_both_networks_and_the_seed(monkeypatch):
    """Nothing is drawn from the entropy of the run, and the order plays no part."""
    monkeypatch.setattr("attngeom.results.randbits", lambda bits: pytest.fail("the run was asked for random bits"))
    first, second = equal_pair(Architecture((2, 2, 2), 2, kind="softmax", heads=2, value_width=1), 1e-9, 3)
    found = [compare(*pair).to_json() for pair in ((first, second), (second, first))]
    one, swapped = ([record[key] for key in ("same_function", "difference", "noise")] for record in found)
    assert one == swapped and one[0] is True


def last_bits_changed(weights, rng):
    vector = weights.vector()
    return Weights.from_vector(weights.architecture, vector * (1 + rng.integers(-4, 5, vector.shape) * 2.0**-52), RR)


@pytest.mark.parametrize("kind", ["lightning", "softmax", "sigmoid"])
@pytest.mark.parametrize("widths", [(3, 2), (3, 3, 2)])
@pytest.mark.parametrize("heads", [1, 2])
def test_last_bits_of_the_weights_move_last_digits_of_the_answer(kind, widths, heads):
    """Errors and inputs are not drawn anew, and units are not chosen anew: not for powers of two and their roots."""
    rng = np.random.default_rng([len(kind), *widths, heads])
    architecture = Architecture(widths, 2, heads=heads, kind=kind, value_width=1 if heads > 1 else None)
    for _ in range(choose(2, 10)):
        entries = rng.choice([-2, -1, -0.5, 0.5, 1, 2, 2**0.5, 2**-0.5], architecture.num_parameters)
        first = Weights.from_vector(architecture, entries, RR)
        for second in (noisy(first, 1e-9, 1), noisy(first, 1e-3, 1)):
            found = compare(first, second)
            again = compare(last_bits_changed(first, rng), last_bits_changed(second, rng))
            assert (again.same_function, again.standing, again.reason) == (
                found.same_function,
                found.standing,
                found.reason,
            )
            assert again.noise == pytest.approx(found.noise, rel=1e-5)
            assert again.difference == pytest.approx(found.difference, rel=1e-5)


def test_who_alters_a_file_alters_the_errors_and_inputs_of_the_second_look():
    architecture = Architecture((2, 2), 1)
    a, b, c = (random_weights(architecture, RR, seed).vector() for seed in range(3))
    draws = [
        float_decision._Draws.of(architecture, pair, seed) for pair, seed in (([a, b], 0), ([a, c], 0), ([a, b], 1))
    ]
    assert len({draw.unforeseen for draw in draws}) == 3 and len({draw.stated for draw in draws}) == 2
    assert draws[0] == float_decision._Draws.of(architecture, [b, a], 0)


def test_difference_that_known_errors_alone_make_far_is_not_called_one(monkeypatch):
    """Whoever knows the errors could make weights on which these show nothing: other errors are asked."""
    weights = random_weights(Architecture((2, 2, 2), 2, heads=2), RR, 0)
    other = noisy(weights, 2e-10, 1)
    known = float_decision._Draws.of(weights.architecture, [weights.vector(), other.vector()], 0).stated

    def without_known_errors(given, tolerance, seed, share=0.5):
        copies = draw_copies(given, tolerance, seed, share)
        if seed - known not in (0, 1):
            return copies
        return [[{name: np.repeat(a[:1], len(a), axis=0) for name, a in head.items()} for head in x] for x in copies]

    assert compare(weights, other).same_function is True
    monkeypatch.setattr(float_decision, "draw_copies", without_known_errors)
    assert compare(weights, other).same_function is not False


def test_symmetry_that_cannot_be_turned_round_is_left_as_it_is():
    assert verdict(*(read_weights(DATA / f"mixed_heads_{name}.safetensors") for name in "ab")) is True


def test_input_that_separates_extreme_weights_beyond_the_range_of_floats_is_not_shown():
    zero = layers(SCALAR, ([[1e-250]], [[1e-250]], [[0]]), ([[1e-250]], [[1e-250]], [[1e-250]]))
    small = layers(SCALAR, *([([[1e-250]], [[1e-250]], [[1e-250]])] * 2))
    assert verdict(zero, small) is False
    assert compare(zero, small).separation is None


def test_singular_inputs_are_read_by_the_scores():
    """What no scores of this shape read, a lightning layer maps to zero in both networks: it says nothing."""
    for seed in range(10):
        weights = random_weights(Architecture((5, 5), 1), RR, seed)
        (A,) = weights.attention_matrices()[0]
        X = singular_inputs(weights, weights, np.zeros(1, dtype=np.int64), 3, seed)
        assert all(max(np.abs(A @ x).max(), np.abs(A.T @ x).max()) > 1e-6 for x in X)


def heads_of(architecture, *layers_of_heads):
    """A network from (Q, K, V, O) of each head of each layer."""
    heads = [tuple(Head(*(np.atleast_2d(np.asarray(x, float)) for x in h)) for h in hs) for hs in layers_of_heads]
    return Weights(architecture, RR, tuple(heads))


@pytest.mark.parametrize("kind", ["lightning", "sigmoid"])
def test_small_part_that_only_special_inputs_show_is_not_overlooked(kind):
    # Random inputs show the large head alone; one input in two dimensions silences it.
    rng = np.random.default_rng(0)
    architecture = Architecture((2, 2, 1), 2, kind=kind, heads=2, value_width=2)
    turn, zero = np.linalg.qr(rng.standard_normal((2, 2)))[0], np.zeros((2, 2))
    first_layer = [(turn, turn, turn, np.eye(2)), (turn, turn, zero, zero)]
    large = (np.diag([1.0, 0]), np.diag([1.0, 0]), np.diag([1.0, 0]), [[1e11, 0]])

    def with_small(size):
        small = (np.diag([0, 1.0]), np.diag([0, 1.0]), np.diag([0, 1.0]), [[0, size]])
        return heads_of(architecture, first_layer, [large, small])

    found = verdict(with_small(1.0), with_small(2.0))
    assert found is (False if kind == "lightning" else None)


def test_tiny_values_beside_plain_zeros_do_not_vanish():
    architecture = Architecture((1, 2), 1, kind="sigmoid", heads=2, value_width=1)
    tiny = heads_of(architecture, [(1, 1, 2e-250, [[1e-250], [3e-250]]), (2, 1, 1e-250, [[2e-250], [1e-250]])])
    zero = heads_of(architecture, [(1, 1, 0, [[1e-250], [3e-250]]), (2, 1, 0, [[2e-250], [1e-250]])])
    assert verdict(tiny, zero) is False


def test_zero_has_no_size_beside_tiny_outputs():
    architecture = Architecture((2, 1, 2), 1, heads=2, value_width=1)
    given = random_weights(architecture, RR, 3).vector() * 1e-200
    tiny = Weights.from_vector(architecture, given, RR)
    heads = [tuple(Head(h.Q, h.K, h.V * (index == 0), h.O) for h in hs) for index, hs in enumerate(tiny.layers)]
    assert verdict(tiny, Weights(architecture, RR, tuple(heads))) is False


def test_heads_that_cancel_hide_nothing():
    rng = np.random.default_rng(1)
    architecture = Architecture((3, 3, 2), 2, kind="sigmoid", heads=3, value_width=2)
    rest = random_weights(architecture, RR, 5)

    def with_cancelling_heads():
        Q, K, V, turn = (rng.standard_normal(shape) for shape in ((2, 3), (2, 3), (2, 3), (2, 2)))
        O = rng.standard_normal((3, 2))
        pair = (Head(Q, K, V, O), Head(np.linalg.inv(turn).T @ Q, turn @ K, V, -O))
        return Weights(architecture, RR, ((*pair, rest.layers[0][2]), rest.layers[1]))

    assert verdict(with_cancelling_heads(), with_cancelling_heads()) is True


@pytest.mark.parametrize("architecture", IDENTIFIABLE, ids=str)
def test_float_verdicts_are_right_within_and_beyond_the_tolerance(architecture):
    rng = np.random.default_rng(0)
    first = random_weights(architecture, RR, 0)
    second = random_symmetry(architecture, RR, 50).apply(first)
    for noise in (1e-12, 1e-6):
        vector = second.vector()
        noisy = Weights.from_vector(architecture, vector * (1 + noise * rng.standard_normal(len(vector))), RR)
        assert compare(first, noisy, tolerance=10 * noise).same_function is True
    assert compare(first, random_weights(architecture, RR, 1000)).same_function is False


def test_float_difference_near_the_tolerance_is_not_told():
    architecture = Architecture((3, 3, 3), 2)
    first = random_weights(architecture, RR, 0)
    rng = np.random.default_rng(0)
    vector = first.vector()
    noisy = Weights.from_vector(architecture, vector * (1 + 5e-9 * rng.standard_normal(len(vector))), RR)
    assert compare(first, noisy, tolerance=1e-9).same_function is None


def test_deep_unrelated_float_networks_are_not_called_equal():
    architecture = Architecture((choose(6, 8),) * 10, 4)
    first, other = (random_weights(architecture, RR, seed) for seed in (0, 100))
    moved = random_symmetry(architecture, RR, 0).apply(other)
    for tolerance in (1e-9, 1e-5):
        assert compare(first, moved, tolerance=tolerance).same_function is not True
    assert compare(other, moved, tolerance=1e-9).same_function is True


def test_layer_that_is_seen_between_the_sizes_of_both_layers():
    # The first layer makes small tokens alike; at inputs of size 1 the second one is saturated already.
    architecture = Architecture((4, 3, 2), 2, kind="softmax", heads=2, value_width=1, tokens=4)
    given = random_weights(architecture, RR, 1)

    def with_scores(size):
        last = tuple(Head(size * h.Q, h.K, h.V, h.O) for h in given.layers[1])
        return Weights(architecture, RR, (given.layers[0], last))

    assert verdict(with_scores(1e8), with_scores(1.1e8)) is False


def test_gauge_that_is_singular_in_floats_is_no_error():
    assert verdict(read_weights(DATA / "steep_gauge_a.json"), read_weights(DATA / "steep_gauge_b.safetensors"))


@pytest.mark.parametrize("name", ["V", "O"])
def test_values_below_the_range_of_floats_are_not_carried_to_zero(name):
    architecture = Architecture((4, 4, 4), (1, 2), kind="softmax", value_width=2, residual=True, causal=True)
    tensors = dict(random_weights(architecture, RR, seed=0).tensors())
    small = {key: a * (1e-250 if key[-1] in "VO" else 1) for key, a in tensors.items()}
    key = f"layers.0.heads.0.{name}"
    zero = small | {key: small[key] * 0}
    one, two = (Weights.from_tensors(architecture, chosen, RR) for chosen in (small, zero))
    assert compare(one, two).same_function is not True
    assert compare(two, one).same_function is not True


@pytest.mark.parametrize("size", [1e-150, 1e-100, 1e100])
def test_columns_that_nothing_reads_do_not_set_the_units_of_outputs(size):
    """V has a zero row: the column of O beside it is of no size, whatever its entries are."""
    architecture = Architecture((1, 3), 1, kind="softmax", value_width=2, tokens=2)
    O = size * np.array([[0.0, 1.0], [4.0, 2.0], [3.0, -3.0]])
    one, two = (
        Weights(architecture, RR, ((Head(np.eye(1), np.eye(1), size * np.array([[0.0], [1.0]]), o),),))
        for o in (O, O * [[1.0, 1.0], [1.0, 1.004], [1.0, 1.0]])
    )
    turn = random_symmetry(architecture, RR, 0)
    assert verdict(one, turn.apply(two)) is False
    assert verdict(one, turn.apply(one)) is True


@pytest.mark.parametrize("size", [1e-200, 1e-30])
def test_hidden_coordinates_that_are_zero_do_not_set_the_units_of_the_next_layer(size):
    architecture = Architecture((2, 2, 2), 1, kind="softmax", tokens=2)
    first = [[1.0, 2.0]], [[2.0, 1.0]], [[1.0, 3.0], [0.0, 0.0]]

    def network(factor):
        return layers(architecture, first, ([[1.0, 1.0]], [[1.0, 2.0]], [[size, 1.0], [size * factor, 2.0]]))

    turn = random_symmetry(architecture, RR, 0)
    assert verdict(network(1.0), network(1.004)) is False
    assert verdict(network(1.0), turn.apply(network(1.0))) is not False


def test_small_rows_beside_a_skip_connection_are_not_lost():
    """Where the first layer is silent, the last one alone is added to the input, its small row too.

    No draw of weights or of inputs may give "same"; forty fresh networks had one that cannot be told.
    """
    architecture = Architecture((2, 2, 2), (1, 2), kind="sigmoid", value_width=2, residual=True, causal=True, tokens=3)

    def with_row(given, size):
        (last,) = given.layers[1]
        return Weights(architecture, RR, (given.layers[0], (Head(last.Q, last.K, last.V, last.O * [[size], [1.0]]),)))

    drawn = [random_weights(architecture, RR, seed) for seed in range(12)]
    verdicts = [verdict(with_row(w, 5e-14), with_row(w, 5.005e-14), seed=seed) for seed, w in enumerate(drawn)]
    assert True not in verdicts and verdicts.count(False) >= 11


def test_small_head_beside_one_that_is_silent_at_some_tokens_is_seen():
    """The large head does not read the second coordinate: at unit vectors the small one is all there is."""
    architecture = Architecture((2, 2), 1, tokens=2, heads=2, value_width=1)

    def network(small):
        return heads_of(
            architecture, [([1, 2], [2, 1], [1, 0], [[1], [3]]), ([1, 1], [1, 2], [1, 2], [[small], [small]])]
        )

    for small in (1e-8, 1e-12, 1e-16):
        assert verdict(network(small), network(-small)) is False
        assert verdict(network(small), network(small * (1 + 1e-12))) is True


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
@pytest.mark.parametrize("residual", [False, True])
def test_small_head_beside_one_that_is_saturated_off_is_seen(kind, residual):
    architecture = Architecture((2, 2, 2), 1, tokens=2, heads=2, value_width=1, kind=kind, residual=residual)
    last = [([1, 2], [2, 1], [1, 3], [[1], [2]]), ([2, 1], [1, 1], [2, 1], [[3], [1]])]

    def network(small):
        large = ([-3, -1], [3, 1], [1, 0], [[2], [1]])
        return heads_of(architecture, [large, ([1, 1], [1, 2], [1, 2], [[small], [small]])], last)

    for small in (1e-8, 1e-12):
        assert verdict(network(small), network(-small)) is not True
        assert verdict(network(small), network(small)) is True


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("residual", [False, True])
def test_sign_changes_of_heads_whose_values_cancel_are_told(kind, causal, residual):
    """(A, V) → (−A, −V) for two heads with V_1 + V_2 = 0, rounded in other bases: one function for two tokens."""
    architecture = Architecture(
        (3, 3, 3), 2, tokens=2, heads=3, value_width=2, kind=kind, causal=causal, residual=residual
    )
    rows = []
    for one, two, three in random_weights(architecture, RR, 5).layers:
        two = Head(two.Q, two.K, one.V, -one.O)
        rows.append(
            [[one, two, three], [Head(-one.Q, one.K, -one.V, one.O), Head(-two.Q, two.K, -two.V, two.O), three]]
        )
    first, second = (Weights(architecture, RR, tuple(tuple(row[k]) for row in rows)) for k in (0, 1))
    turn = random_symmetry(architecture, RR, 1)
    assert verdict(first, turn.apply(second)) is True
    alone = [[row[1][0], row[0][1], row[0][2]] for row in rows]
    assert verdict(first, turn.apply(Weights(architecture, RR, tuple(map(tuple, alone))))) is False


def test_scores_that_errors_of_the_weights_saturate_tell_nothing():
    """In a steep basis the scores of the second layer are known to 1e5: copies agree that attention is cut off."""
    architecture = Architecture((2, 2, 2), 1, tokens=1, kind="sigmoid", heads=2, value_width=2)
    first = random_weights(architecture, RR, 3)
    for seed in range(4):
        turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((2, 2)))[0]
        base = turn @ np.diag([1e4, 1e-4]) @ turn[::-1]
        elements = {Between(0, 2): base}
        second = Symmetry(architecture, RR, elements).apply(first)
        assert verdict(first, noisy(second, 2e-10, seed)) is not False


@pytest.mark.parametrize("index", [150, 1701])
def test_networks_that_visibly_differ_are_not_called_the_same(index):
    """Entries of 1e10, changed by less than the tolerance, change what is read beside them by a factor."""
    pair = small_beside_large(np.random.default_rng([50, index]))
    assert pair.same is False and verdict(pair.first, pair.second) is not True


def test_networks_that_rounding_tells_apart_at_rare_inputs_stay_the_same():
    """Errors of 1e-9 explain ten million times the outputs, and rounding of the weights changes some of them."""
    pair = make((93, 512))
    found = compare(pair.first, pair.second, tolerance=pair.tolerance)
    assert found.same_function is True and found.noise > 1e6


def test_networks_whose_heads_are_all_without_values_are_no_error():
    pair = ties(np.random.default_rng([51, 2082]))
    assert verdict(pair.first, pair.second) is not (not pair.same)
