"""Checkpoints of a run: what is measured is what was put in, and bad runs are refused in one line."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from attngeom.cli.app import run
from attngeom.dimensions import dimension, rank_at
from attngeom.errors import InputError
from attngeom.exact import QQ, RR
from attngeom.interop import write_weights
from attngeom.learning.laws import conserved_quantities
from attngeom.learning.pairs import Pair
from attngeom.learning.track import cut_block, law_drifts, track
from attngeom.network import Architecture, Weights, forward, random_weights
from attngeom.network.tangent import gradient

ARCHITECTURES = [
    Architecture((3, 3), 2),
    Architecture((2, 2, 2), 1, kind="softmax", residual=True),
    Architecture((2, 4), 1, 2, kind="lightning", heads=2, value_width=1, causal=True),
    Architecture((2, 1), 2, 1),
]


def scaled(weights: Weights, factor: float) -> Weights:
    return Weights.from_vector(weights.architecture, factor * weights.vector(), RR)


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda a: f"{a.kind} {a.widths}")
@pytest.mark.parametrize("factors", [(1, 2), (1,), (0, 0), (0, 1), (1, 0), (1e150, 1e150), (1e-150, 1e-150)], ids=str)
def test_runs_of_any_size_have_an_answer(architecture, factors):
    weights = random_weights(architecture, RR, seed=1)
    found = track([scaled(weights, factor) for factor in factors])
    record = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert len(record["checkpoints"]) == len(factors) and record["standing"] == "estimate"
    for factor, row in zip(factors, record["checkpoints"]):
        assert (row["stratum"] == "generic") == (factor != 0)
        assert row["distance"] == 0.0 if factor == 0 else row["distance"] is None or row["distance"] > 1e-6
    if factors[0] == 0:
        assert found.largest_drift is None
    elif set(factors) == {factors[0]}:
        assert found.largest_drift == 0.0


@pytest.mark.parametrize("factor", [1.0, 1e-140, 1e140])
def test_drift_is_relative_to_the_size_of_the_weights(factor):
    architecture = Architecture((3, 3), 2)
    laws = conserved_quantities(architecture)
    first, second = (random_weights(architecture, RR, seed=s) for s in range(2))
    by_hand = np.linalg.norm(laws.vector(second) - laws.vector(first)) / np.sum(first.vector() ** 2)
    assert law_drifts(laws, [scaled(first, factor), scaled(second, factor)])[1] == pytest.approx(by_hand)


def test_gradient_descent_drifts_in_proportion_to_its_step():
    architecture = Architecture((3, 3), 2)
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((8, 3, 3)), rng.standard_normal((8, 3, 3))
    drifts = []
    for halvings in range(3):
        weights = random_weights(architecture, RR, seed=0)
        start = weights
        for _ in range(20 * 2**halvings):
            step = 1e-4 / 2**halvings * gradient(weights, X, forward(weights, X) - Y)
            weights = Weights.from_vector(architecture, weights.vector() - step, RR)
        drifts.append(track([start, weights]).largest_drift)
    assert [round(a / b, 1) for a, b in pairwise(drifts)] == pytest.approx([2.0, 2.0], abs=0.2)


@pytest.mark.parametrize(
    ("architecture", "block", "pair"),
    [
        (Architecture((3, 3), 2), "A", "(15/2, 2)"),
        (Architecture((4, 4), 2, heads=2, value_width=2), "A_1", "(22, 2)"),
        (Architecture((3, 3, 3), 2, kind="softmax"), "A_2", "(12, 2)"),
    ],
)
def test_the_stratum_that_is_approached_is_found_with_its_learning_coefficient(architecture, block, pair):
    """Weights moved towards a smaller rank of one block: the distance goes to zero, (λ, m) is that of the stratum."""
    weights = random_weights(architecture, RR, seed=2)
    target = cut_block(weights, block)
    path = [
        Weights.from_vector(architecture, (1 - s) * target.vector() + s * weights.vector(), RR)
        for s in (1, 1e-3, 1e-6, 0)
    ]
    found = track(path).snapshots
    distances = [snapshot.nearest.distance for snapshot in found[1:]]
    assert {snapshot.nearest.name for snapshot in found[1:]} == {block}
    assert distances[0] < 1e-1 and distances[1] < 1e-4 and distances[2] < 1e-14
    assert [str(snapshot.nearest_pair) for snapshot in found[1:]] == [pair] * 3
    # The start is generic, the end is on the stratum; close to it, floats may not tell.
    generic = Pair.coordinates(dimension(architecture).dimension)
    assert found[0].pair == generic and {found[1].pair, found[2].pair} <= {generic, None}
    assert found[3].pair == found[3].nearest_pair and str(found[3].pair) == pair
    assert found[1].stratum == "generic" and found[3].stratum.startswith(f"rk {block} = ")
    assert found[3].jacobian.rank <= found[0].jacobian.rank


def test_cutting_a_block_gives_the_nearest_matrix_of_smaller_rank():
    architecture = Architecture((3, 4), 2, heads=2, value_width=2)
    weights = random_weights(architecture, RR, seed=0)
    before, after = weights.attention_matrices()[0][1], cut_block(weights, "A_2").attention_matrices()[0][1]
    values = np.linalg.svd(before, compute_uv=False)
    assert np.linalg.norm(before - after) == pytest.approx(values[1])
    assert np.linalg.svd(after, compute_uv=False)[1] < 1e-14
    with pytest.raises(InputError, match="no such matrix"):
        cut_block(weights, "B")


def test_bad_runs_are_refused():
    weights = random_weights(Architecture((2, 2), 1), RR, seed=0)
    other = random_weights(Architecture((2, 2), 2), RR, seed=0)
    with pytest.raises(InputError, match=r"other\.safetensors: another architecture than the first"):
        track([weights, other], ["first", "other.safetensors"])
    with pytest.raises(InputError, match="0 checkpoints"):
        track([])
    broken = weights.vector().copy()
    broken[3] = np.nan
    with pytest.raises(InputError, match="checkpoint 1: entries beyond the range"):
        track([weights, Weights.from_vector(weights.architecture, broken, RR)])


def test_exact_weights_and_floats_may_be_mixed():
    weights = random_weights(Architecture((2, 2), 1), QQ, seed=0)
    assert track([weights, weights.to(RR)]).largest_drift == 0.0


@pytest.fixture
def checkpoints(tmp_path):
    paths = []
    for k in range(3):
        paths.append(tmp_path / f"step{k}.safetensors")
        write_weights(random_weights(Architecture((2, 2), 1), RR, seed=k), paths[-1])
    return [str(path) for path in paths]


def test_the_command_prints_a_row_for_each_checkpoint_and_draws(checkpoints, tmp_path, capfd):
    picture = tmp_path / "run.svg"
    assert run(["track", *checkpoints, "--plot", str(picture)]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[-3:]] == ["step0.safetensors", "step1.safetensors", "step2.safetensors"]
    assert "<svg" in picture.read_text()


@pytest.mark.parametrize(
    ("extra", "words"), [(["--plot", "x.bmp"], ".png, .svg, .pdf"), (["nothing.json"], "nothing.json")], ids=str
)
def test_the_command_refuses_bad_input_in_one_line(checkpoints, extra, words, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["track", *checkpoints, *extra]) == 2
    found = capfd.readouterr()
    assert found.out == "" and words in found.err and len(found.err.splitlines()) == 1


def one_head(K, domain=QQ):
    """d = d' = 3, a = 2: Q of rank two, V = 1."""
    tensors = {"layers.0.K": K, "layers.0.Q": [[1, 2, 0], [0, 1, 1]], "layers.0.V": np.eye(3, dtype=int).tolist()}
    return Weights.from_tensors(Architecture((3, 3), 2, tokens=2), tensors, domain)


@pytest.mark.parametrize("domain", [QQ, RR], ids=["exact", "floats"])
def test_weights_in_a_stratum_have_its_pair_as_their_own(domain):
    """rk K = rk A = 1, rk Q = 2: by Theorem A0 that of A is (7/2, 1); with Q cut to rank one it would be (7/2, 2)."""
    (snapshot,) = track([one_head([[1, 2, 3], [2, 4, 6]], domain)]).snapshots
    assert snapshot.stratum == "rk A = 1 of 2" and snapshot.nearest.name == "A"
    assert snapshot.pair == snapshot.nearest_pair == Pair(Fraction(7 + 9 - 1, 2))


def test_exact_weights_have_exact_ranks():
    """A second singular value that floats do not see is there, and λ is that of the exact weights."""
    weights = one_head([[1, 2, 3], [0, f"1/{10**30}", 0]])
    exact, floats = (track([w]).snapshots[0] for w in (weights, weights.to(RR)))
    assert exact.stratum == "generic" and str(exact.pair) == "(8, 1)" and exact.blocks[0].rank == 2
    assert floats.stratum == "rk A = 1 of 2" and str(floats.pair) == "(15/2, 1)"


@pytest.mark.parametrize("power", [400, -400])
def test_exact_weights_beyond_floats_are_refused(power):
    """They would be rounded to infinity, or to zero, which lies in another stratum."""
    size = 10**power if power > 0 else f"1/{10**-power}"
    weights = one_head([[1, 0, 0], [0, size, 0]])
    with pytest.raises(InputError, match=r"odd\.json: entries beyond the range of floats"):
        track([weights], ["run/odd.json"])


def test_equal_heads_stay_equal_at_any_size():
    """A_1 = A_2 with factors of very different sizes: no pair, whereas different A_h would have one (Theorem D)."""
    architecture = Architecture((2, 2), 1, 3, "softmax", heads=2, value_width=1)
    tensors = dict(random_weights(architecture, RR, seed=1).tensors())
    for letter, size in (("K", 3 * 2.0**300), ("Q", 1 / (3 * 2.0**300))):
        tensors[f"layers.0.heads.1.{letter}"] = tensors[f"layers.0.heads.0.{letter}"] * size
    assert track([Weights.from_tensors(architecture, tensors, RR)]).snapshots[0].pair is None


@pytest.mark.parametrize("factor", [1e-300, 1e300])
def test_the_jacobian_has_its_rank_at_any_size(factor):
    """λ = D/2 says that the Jacobian has rank D: lightning networks are homogeneous in every tensor."""
    weights = random_weights(Architecture((3, 3, 2), 2), RR, seed=0)
    first, second = track([weights, scaled(weights, factor)]).snapshots
    assert first.pair == second.pair and first.jacobian.rank == second.jacobian.rank == 2 * first.pair.value


@pytest.mark.parametrize(
    ("names", "fall"),
    [
        (["run2/step0.json", "run1/step2.json", "run0/step10.json"], None),
        (["step0.json", "step10.json", "step2.json"], ("step10.json", "step2.json")),
        (["e2s1.json", "e1s2.json"], ("e2s1.json", "e1s2.json")),
        (["trained2.json", "final1.json"], None),
        (["a.json", "a.json"], None),
    ],
)
def test_names_whose_numbers_fall_are_shown(names, fall):
    """A shell lists step10 before step2, and then drift is measured from another point."""
    weights = random_weights(Architecture((2, 2), 1), RR, seed=0)
    run = track([weights] * len(names), names)
    assert run.fall == fall and ("order" in run.rows()) == (fall is not None)


def test_exact_checkpoints_near_a_singular_one_have_the_exact_rank_of_their_jacobian():
    """Two layers of two heads, 1/1000 away from weights with equal heads: floats see less."""
    architecture = Architecture((2, 2, 1), 1, tokens=2, heads=2, value_width=1)
    rng = np.random.default_rng(0)
    shapes = list(architecture.tensor_shapes())
    far = {name: rng.integers(-3, 4, shape) for name, shape in shapes}
    end = {name: far[name.replace("heads.1", "heads.0")] for name, _ in shapes}
    near = {
        name: [
            [Fraction(1000 * x + y, 1000) for x, y in zip(*rows)]
            for rows in zip(end[name].tolist(), far[name].tolist())
        ]
        for name, _ in shapes
    }
    run = [Weights.from_tensors(architecture, {k: QQ.convert(x) for k, x in y.items()}, QQ) for y in (far, near)]
    ranks = [snapshot.jacobian.rank for snapshot in track(run).snapshots]
    assert ranks == [rank_at(weights).rank for weights in run]
    assert track([run[1].to(RR)]).snapshots[0].jacobian.rank < ranks[1]
