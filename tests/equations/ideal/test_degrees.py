"""Runs: budgets, resuming, tasks for other processes, and the second prime."""

import json

import pytest

from attngeom.equations import Variety
from attngeom.equations.ideal import Limits, Run, implicitize
from attngeom.equations.ideal.degrees import agrees_with_theory, digest
from attngeom.equations.ideal.implicitization import SECOND_PRIME
from attngeom.equations.ideal.records import WeightResult
from attngeom.errors import FormatError, InputError

METHODS = ["weights", "highest"]


@pytest.mark.parametrize("method", METHODS)
def test_a_run_that_a_budget_ended_resumes_to_the_same_answer(tmp_path, method) -> None:
    model = Variety(3, 2)
    state = tmp_path / "run.json"
    ended = Run(model, 4, method, limits=Limits(seconds=0), state=state)
    assert ended.degrees() == () and "the 0 s that were given are over" in ended.stopped
    partial = Run(model, 3, method, state=state)
    assert len(partial.degrees()) == 3 and partial.stopped is None
    kept = len(json.loads(state.read_text())["results"])
    resumed = Run(model, 4, method, state=state)
    assert len(resumed.results) == kept > 0
    fresh = Run(model, 4, method).degrees()
    strip = [(d.hilbert_function, d.ideal_dimension, d.modules) for d in resumed.degrees()]
    assert strip == [(d.hilbert_function, d.ideal_dimension, d.modules) for d in fresh]


@pytest.mark.parametrize("method", METHODS)
def test_a_memory_budget_refuses_large_weights(method) -> None:
    run = Run(Variety(3, 3), 5, method, limits=Limits(megabytes=0.06))
    assert 0 < len(run.degrees()) < 5 and "0 MB are allowed" in run.stopped


def test_a_state_file_of_another_run_or_a_damaged_one_is_refused(tmp_path) -> None:
    state = tmp_path / "run.json"
    Run(Variety(2, 1), 2, state=state).degrees()
    with pytest.raises(InputError, match="parameters"):
        Run(Variety(2, 2), 2, state=state)
    record = json.loads(state.read_text())
    record["results"][0] = ["broken"]
    state.write_text(json.dumps(record))
    with pytest.raises(FormatError, match="damaged"):
        Run(Variety(2, 1), 2, state=state)


def test_unproven_degrees_are_checked_with_a_second_prime() -> None:
    model = Variety(2, 2, d_out=2)
    assert SECOND_PRIME in implicitize(model, 2).primes
    assert implicitize(model, 2, check=False).primes == implicitize(Variety(2, 2), 4).primes


def test_progress_counts_every_weight() -> None:
    seen: list[tuple[int, int, int]] = []
    implicitize(Variety(2, 1), 2, progress=lambda degree, done, total: seen.append((degree, done, total)))
    assert seen[-1][1] == seen[-1][2] and {degree for degree, _, _ in seen} == {1, 2}


def test_method_highest_is_refused_where_it_does_not_apply() -> None:
    assert Run(Variety(2, 1, tokens=1), 1).method == "weights"
    with pytest.raises(InputError, match="one row"):
        implicitize(Variety(2, 1, d_out=2), 2, "highest")
    with pytest.raises(InputError, match="max_degree"):
        implicitize(Variety(2, 1), 0)


@pytest.mark.parametrize("method", METHODS)
def test_an_edited_state_file_is_refused(tmp_path, method) -> None:
    state = tmp_path / "run.json"
    Run(Variety(2, 1), 3, method, state=state).degrees()
    good = json.loads(state.read_text())
    for edit in (lambda r: r["results"][2].__setitem__(3, 0), lambda r: r["results"].pop(), lambda r: r.pop("digest")):
        record = json.loads(json.dumps(good))
        edit(record)
        state.write_text(json.dumps(record))
        with pytest.raises(FormatError, match="digest"):
            Run(Variety(2, 1), 3, method, state=state)
    # Without a run's own seed, prime and sizes it is of another run.
    state.write_text(json.dumps({**good, "seed": 5}))
    with pytest.raises(InputError, match="seed"):
        Run(Variety(2, 1), 3, method, state=state)


def test_a_forged_digest_does_not_make_a_false_result_true(tmp_path) -> None:
    # No quadric on the variety of rank one: false, and the digest is right.
    state = tmp_path / "run.json"
    Run(Variety(2, 1), 2, state=state).degrees()
    record = json.loads(state.read_text())
    place = next(i for i, r in enumerate(record["results"]) if r[1] == [[3, 1], [1, 1]])
    record["results"][place][3:5] = [1, 0]
    record["digest"] = digest(record)
    state.write_text(json.dumps(record))
    with pytest.raises(FormatError, match="contradicts"):
        Run(Variety(2, 1), 2, state=state)
    record["results"][place][3:5] = [0, 5]
    record["digest"] = digest(record)
    state.write_text(json.dumps(record))
    with pytest.raises(FormatError, match="damaged"):
        Run(Variety(2, 1), 2, state=state)


def test_heads_without_a_value_width_follow_the_rule_of_networks() -> None:
    model = Variety(2, 1, d_out=2, heads=2)
    assert model == Variety(2, 1, d_out=2, heads=2, value_width=1) and model.describe()["value_width"] == 1
    # Two heads of rank one fill 10 of the 12 dimensions, so there are equations.
    assert any(degree.ideal_dimension for degree in implicitize(model, 3, check=False).degrees)
    assert Variety(2, 1, tokens=2, d_out=4, heads=2).value_width == 2
    assert Variety(2, 1).value_width is None
    with pytest.raises(InputError, match="value_width"):
        Variety(3, 1, heads=2)


def test_results_of_high_degree_are_taken_up_at_once_however_large_d_is() -> None:
    """The multiplicity of S_λ is asked for as many directions as λ has rows; for ten of them it takes hours."""
    weight = ((13, 7), (5, 5))
    found = [agrees_with_theory(Variety(100, 4), WeightResult(10, weight, 1, rank, 1 - rank)) for rank in (0, 1)]
    assert found == [True, False]


@pytest.mark.parametrize(
    ("sizes", "edit"),
    [
        ({"tokens": 1}, {2: 4}),  # monomials that do not exist, and an ideal that holds them
        ({"d_out": 2}, {5: True, 6: True}),  # a rank below the size of its space is never proven
        ({}, {1: [[2]]}),  # one partition where there are two
    ],
)
def test_sealed_results_are_held_to_what_can_be_counted(tmp_path, sizes, edit) -> None:
    state = tmp_path / "run.json"
    Run(Variety(2, 1, **sizes), 2, state=state).degrees()
    record = json.loads(state.read_text())
    place = min(range(len(record["results"])), key=lambda i: record["results"][i][3] - record["results"][i][2])
    for index, value in edit.items():
        record["results"][place][index] = value
    state.write_text(json.dumps({**record, "digest": digest(record)}))
    with pytest.raises(FormatError, match="contradicts"):
        Run(Variety(2, 1, **sizes), 2, state=state).degrees()
