"""The built-in questions agree with the libraries they ask, and their sweeps cover what their tables say."""

from math import prod
from pathlib import Path

import pytest

from attngeom.atlas import Answer, Fact, FactStore, local_executor, parse_sweep, read_sweep, run_sweep
from attngeom.atlas.dimensions import architectures
from attngeom.atlas.questions import get_question
from attngeom.dimensions import dimension
from attngeom.equations import Variety
from attngeom.equations.ideal import implicitize
from attngeom.errors import InputError
from attngeom.network import Architecture
from attngeom.verification.dispatch import verify

EXAMPLES = Path(__file__).parents[2] / "examples"
VARIANTS = {
    "layers": [1, 2],
    "widths": [1, 2, 3],
    "tokens": [1, 3],
    "kinds": ["lightning", "softmax"],
    "heads": [1, 2],
    "residual": [False, True],
    "causal": [False, True],
}


def test_every_architecture_of_a_table_is_valid_and_occurs_once():
    records = list(architectures(VARIANTS))
    networks = [Architecture.from_json(record) for record in records]
    assert [network.to_json() for network in networks] == records
    assert len(set(networks)) == len(networks)


def test_a_table_covers_all_shapes():
    records = list(architectures({"layers": 2, "widths": [1, 2, 3], "attention": "all"}))
    shapes = [(a, b, c) for a in (1, 2, 3) for b in (1, 2, 3) for c in (1, 2, 3)]
    assert len(records) == sum(prod(shape[:2]) for shape in shapes)
    assert all(a <= d for record in records for a, d in zip(record["attention"], record["widths"]))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"kinds": "linear"}, "lightning or softmax"),
        ({"causal": 1}, "false or true"),
        ({"causal": []}, "false or true"),
        ({"width": 2}, "known keys"),
        ({"tokens": -1}, "positive integer"),
    ],
)
def test_a_bad_dimension_table_is_refused(table, message):
    with pytest.raises(InputError, match=message):
        list(architectures(table))


def test_dimension_facts_are_those_of_the_library_with_certificates_that_hold():
    question = get_question("dimension")
    table = {"layers": [1, 2], "widths": [2, 3], "tokens": 2, "kinds": ["lightning", "softmax"]}
    tasks = list(question.tasks(table, seed=4))[::17]
    assert len(tasks) > 5
    for task in tasks:
        result = question.run(task)
        assert result.answer["dimension"] == dimension(Architecture.from_json(task.architecture)).dimension
        assert result.evidence == "proven"
        assert verify(result.certificate).valid


IDEALS = """
[[ideal]]
d = 3
a = [1, 2]
degrees = [2, 3, 4]
[[ideal]]
d = 2
targets = 3
degrees = 3
[[ideal]]
d = 3
a = 1
coordinates = "single"
degrees = 4
[[ideal]]
d = 2
rows = 2
a = 2
degrees = 2
"""


def test_ideal_facts_are_those_of_a_single_run(path):
    with FactStore(path) as store, local_executor(1) as (executor, count):
        report = run_sweep(parse_sweep(IDEALS), store, executor, count)
        facts = list(store.facts("ideal"))
    assert report.is_complete
    assert len(facts) == 2 * 3 + 2 + 1 + 1
    for fact in facts:
        (d, rows), (a,) = fact.task.architecture["widths"], fact.task.architecture["attention"]
        parameters = fact.task.parameters
        is_single = parameters["coordinates"] == "single"
        model = Variety(d, a, tokens=1) if is_single else Variety(d, a, d_out=rows, targets=parameters["targets"])
        expected = implicitize(model, parameters["degree"], families=False).degrees[-1]
        answer = fact.result.answer
        assert answer["monomials"] == expected.monomials
        assert answer["hilbert_function"] == expected.hilbert_function
        assert answer["ideal_dimension"] == expected.ideal_dimension
        assert answer["minimal_generators"] == expected.minimal_generators
        assert answer["modules"] == {str(module): module.dimension for module in expected.modules}
        assert answer["formula"] in (None, expected.hilbert_function)
        is_proven = expected.is_dimension_proven and expected.is_generation_proven
        assert fact.result.evidence == ("proven" if is_proven else "probabilistic")


def test_a_finite_check_is_the_sum_of_its_modules(monkeypatch):
    for module in ("equations.ideal.completeness", "atlas.completeness"):
        monkeypatch.setattr(f"attngeom.{module}.check_theorem", lambda: 0)
    question = get_question("finite-check")
    (task,) = question.sums({"a": [1, 2]}, 0)
    facts = [Fact(part, get_question(part.question).run(part), 0) for part in question.parts(task)]
    found = question.combine(task, facts)
    assert found == question.run(task)
    assert found.evidence == "proven" and found.answer == {"bound": 6, "modules": 43, "new": {}}
    assert 0 < len(facts) < 43
    told = next(fact for fact in facts if fact.result.answer["generated"])
    less = {**told.result.answer, "generated": told.result.answer["generated"] - 1}
    facts[facts.index(told)] = Fact(told.task, Answer(less, "proven"), 0)
    assert list(question.combine(task, facts).answer["new"].values()) == [1]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"coordinates": "both"}, "cross"),
        ({"coordinates": "single", "rows": 2}, "rows = 1"),
        ({"a": 0}, "positive integer"),
        ({"degree": 3}, "known keys"),
    ],
)
def test_a_bad_ideal_table_is_refused(table, message):
    with pytest.raises(InputError, match=message):
        list(get_question("ideal").tasks(table, 0))


def test_completeness_separates_the_paper_from_all_families():
    question = get_question("completeness")
    (small,) = question.tasks({"d": 3, "a": 3, "max_degree": 3}, 0)
    (large,) = question.tasks({"d": 4, "a": 4, "max_degree": 3}, 0)
    answers = [question.run(task).answer for task in (small, large)]
    assert all(answer["is_complete"] for answer in answers)
    assert answers[0]["from_paper"]["3"] == answers[0]["minimal_generators"]["3"] > 0
    assert answers[1]["from_paper"]["3"] < answers[1]["minimal_generators"]["3"]


@pytest.mark.parametrize("name", ["atlas_small.toml", "atlas_full.toml"])
def test_example_sweeps_can_be_read_and_have_costs(name):
    sweep = read_sweep(EXAMPLES / name)
    assert {question for question, _ in sweep.tables} == {"dimension", "ideal", "completeness"}
    for question, table in sweep.tables:
        task = next(get_question(question).tasks(table, sweep.seed))
        assert 0 < get_question(task.question).cost(task) < 10
