"""Filters, sorting, exports and rechecks of a store."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from attngeom.atlas.ideals import Ideal, IdealWeight
from attngeom.atlas.questions import get_question
from attngeom.atlas.recheck import recheck
from attngeom.atlas.records import Answer, Fact, Task
from attngeom.atlas.store import FactStore
from attngeom.atlas.tables import RowCondition, export, flatten, select, to_csv, to_markdown
from attngeom.errors import FormatError, InputError
from attngeom.exact.numbers import WORD_PRIME
from attngeom.network import Architecture
from attngeom.results import Proof
from attngeom.verification.verdicts import Verdict


def make_fact(width, dimension, kind="lightning", evidence="proven"):
    architecture = {"widths": [width, 2], "attention": [1], "tokens": 3, "kind": kind, "causal": width > 2}
    return Fact(Task("dimension", architecture), Answer({"dimension": dimension}, evidence, 7), 0.5)


FACTS = [make_fact(2, 6), make_fact(3, 11, "softmax"), make_fact(10, 100), make_fact(4, None, evidence="undecided")]


@pytest.mark.parametrize(
    ("condition", "widths"),
    [
        ("dimension>10", [3, 10]),
        ("dimension<=11", [2, 3]),
        ("dimension!=6", [3, 10]),
        ("kind=softmax", [3]),
        ("kind != softmax", [2, 10, 4]),
        ("causal=true", [3, 10, 4]),
        ("widths=[3,2]", [3]),
        ("evidence=undecided", [4]),
        ("prime=7", [2, 3, 10, 4]),
        ("nothing=1", []),
    ],
)
def test_conditions_compare_numbers_as_numbers(condition, widths):
    found = select(FACTS, [RowCondition.parse(condition)])
    assert [fact.task.architecture["widths"][0] for fact, _ in found] == widths


def test_sorting_puts_missing_values_last():
    order = [fact.result.answer["dimension"] for fact, _ in select(FACTS, sort="dimension")]
    assert order == [6, 11, 100, None]
    order = [fact.result.answer["dimension"] for fact, _ in select(FACTS, sort="-dimension")]
    assert order == [100, 11, 6, None]
    with pytest.raises(InputError, match="no fact has that column"):
        select(FACTS, sort="height")


def test_a_condition_without_operator_is_refused():
    with pytest.raises(InputError, match="COLUMN=VALUE"):
        RowCondition.parse("dimension")


def test_csv_gives_every_value_back():
    rows = [flatten(fact) for fact in FACTS]
    read = list(csv.DictReader(io.StringIO(to_csv(rows))))
    assert [row["widths"] for row in read] == ["[2,2]", "[3,2]", "[10,2]", "[4,2]"]
    assert [row["dimension"] for row in read] == ["6", "11", "100", ""]
    assert [row["key"] for row in read] == [fact.task.key for fact in FACTS]


def test_parquet_keeps_types_and_large_integers(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    huge = Fact(Task("ideal", {"widths": [3, 1]}), Answer({"hilbert_function": 10**30}, "proven"), 0.5)
    export([(fact, flatten(fact)) for fact in [*FACTS, huge]], tmp_path / "facts.parquet")
    table = parquet.read_table(tmp_path / "facts.parquet").to_pydict()
    assert table["dimension"] == [6, 11, 100, None, None]
    assert table["hilbert_function"][-1] == str(10**30)
    assert table["causal"] == [False, True, True, True, None]


def test_markdown_has_one_table_for_each_question():
    text = to_markdown(FACTS)
    assert "## dimension (4 facts)" in text
    assert "| 3→2 a=1 t=3 softmax causal |  | dimension 11 | proven |" in text


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"\.csv, \.parquet, \.md"):
        export([], tmp_path / "facts.xlsx")


@pytest.fixture
def certified(path):
    question = get_question("dimension")
    table = {"layers": 1, "widths": [2, 3], "tokens": 2}
    facts = [Fact(task, question.run(task), 0.1) for task in list(question.tasks(table, 0))[:4]]
    with FactStore(path) as store:
        store.add(facts)
    return path, facts


@pytest.mark.parametrize("workers", [1, 2])
def test_recheck_accepts_what_questions_return(certified, workers):
    path, facts = certified
    with FactStore(path, read_only=True) as store:
        found = recheck(store, recompute=2, workers=workers)
    assert found.valid is True
    assert (found.facts, found.certificates, found.recomputed) == (len(facts), len(facts), 2)


def test_recheck_finds_certificates_that_prove_something_else(tmp_path, certified):
    _, (first, second, third, _) = certified
    wrong_answer = replace(first.result, answer={**first.result.answer, "dimension": 99})
    borrowed = replace(second.result, certificate=first.result.certificate)
    broken = json.loads(json.dumps(third.result.certificate))
    broken["claim"]["dimension"] += 1
    with FactStore(tmp_path / "other.db") as store:
        store.add([replace(first, result=wrong_answer), replace(second, result=borrowed)])
        store.add([replace(third, result=replace(third.result, certificate=broken))])
        problems = recheck(store).problems
    reasons = {
        str(fact.task): " ".join(why for name, why in problems if name == str(fact.task)) for fact in certified[1]
    }
    assert "do not meet at the dimension 99" in reasons[str(first.task)]
    assert "about another dimension, 6" in reasons[str(first.task)]
    assert "another architecture" in reasons[str(second.task)]
    assert "refused" in reasons[str(third.task)]


def forged(fact, **changes):
    """The fact with other parts of its answer and a digest that matches."""
    return replace(fact, result=replace(fact.result, answer={**fact.result.answer, **changes}))


@pytest.mark.parametrize(
    "changes",
    [
        {"dimension": 999, "lower_bound": 999, "upper_bound": 999},
        {"num_parameters": 999},
        {"fiber": {"scale": 5}},
        {"lower_bound": None},
        {"dimension": None, "lower_bound": None, "upper_bound": None},
        {"formula": {"value": 999, "applies": True}},
    ],
)
@pytest.mark.parametrize("with_certificate", [True, False])
def test_recheck_finds_forged_answers(tmp_path, certified, changes, with_certificate):
    fact = forged(certified[1][0], **changes)
    if not with_certificate:
        fact = replace(fact, result=replace(fact.result, certificate=None))
    with FactStore(tmp_path / "forged.db") as store:
        store.add([fact])
        assert recheck(store).valid is False


@pytest.mark.parametrize(
    "changes", [{"fiber": None}, {"fiber": {"scale": -1}}, {"formula": 3}, {"more": 1}, {"dimension": True}]
)
def test_answers_that_are_none_to_their_question_are_not_read(tmp_path, certified, changes):
    with FactStore(tmp_path / "forged.db") as store:
        store.add([forged(certified[1][0], **changes)])
        with pytest.raises(FormatError, match="does not match its digest or question"):
            list(store.facts())


def test_a_certificate_that_may_err_is_no_proof(tmp_path, certified, monkeypatch):
    """The evidence "proven" beside a transcript, which leaves a probability of error."""
    likely = Proof("probabilistic", "likely")
    monkeypatch.setattr("attngeom.atlas.recheck.verify", lambda _: Verdict.of_proof("a claim", likely))
    with FactStore(tmp_path / "likely.db") as store:
        store.add(certified[1][:1])
        found = recheck(store)
    assert found.valid is None and "leaves a probability of error" in found.unchecked[0].reason


def test_a_flag_that_claims_a_proof_is_computed_again(tmp_path):
    """The sum takes over what its parts call proven, whatever their evidence says."""
    table = {"d": 2, "a": 1, "degrees": 1}
    (part,), (total,) = (list(make(table, 0)) for make in (Ideal().tasks, Ideal().sums))
    wrong = {**IdealWeight().run(part).answer, "rank": 0}
    fact = Fact(part, Answer(wrong, "probabilistic", WORD_PRIME), 0.1)
    with FactStore(tmp_path / "flags.db") as store:
        store.add([fact, Fact(total, Ideal().combine(total, [fact]), 0.1)])
        assert [fact.result.evidence for fact in store.facts("ideal")] == ["proven"]
        assert recheck(store).valid is False


def test_proven_facts_out_of_reach_are_counted(tmp_path):
    """Their parts could not even be listed."""
    ideal = {"monomials": 1, "hilbert_function": 1, "ideal_dimension": 0, "minimal_generators": 0}
    layer, wide = (Architecture((d, 1), a, tokens=2).to_json() for d, a in ((3, 1), (42, 40)))
    families = {key: {} for key in ("minimal_generators", "from_paper", "from_families")}
    asked = [
        (Task("ideal", layer, {"degree": 300, "targets": 3, "coordinates": "cross"}), {**ideal, "modules": {}}),
        (Task("ideal", layer, {"degree": 2, "targets": 10**9, "coordinates": "cross"}), {**ideal, "modules": {}}),
        (Task("finite-check", wide), {"bound": 1, "modules": 1, "new": {}}),
        (Task("completeness", layer, {"max_degree": 9, "targets": 10**6}), {**families, "is_complete": True}),
    ]
    with FactStore(tmp_path / "far.db") as store:
        for task, answer in asked:
            more = {"formula": None} if task.question == "ideal" else {}
            store.add([Fact(task, Answer({**answer, **more}, "proven"), 0.1)])
        found = recheck(store)
    assert (found.valid, found.problems, len(found.unchecked)) == (None, (), 4)


def test_recheck_finds_a_certificate_of_another_kind(tmp_path, certified):
    """A true certificate about one layer proves nothing about a dimension."""
    layer = json.loads((Path(__file__).parents[1] / "golden/inputs/certificate_layer.json").read_text())
    fact = certified[1][0]
    with FactStore(tmp_path / "forged.db") as store:
        store.add([replace(fact, result=replace(fact.result, certificate=layer))])
        found = recheck(store)
    assert found.valid is False and "another kind, layer" in found.problems[0][1]


def test_facts_without_certificate_are_computed_again_or_counted(tmp_path, certified):
    bare = [replace(fact, result=replace(fact.result, certificate=None)) for fact in certified[1]]
    with FactStore(tmp_path / "bare.db") as store:
        store.add(bare)
        found = recheck(store)
        assert (found.valid, found.recomputed, found.unchecked) == (True, len(bare), ())
        found = recheck(store, seconds=0.0)
    assert (found.valid, found.recomputed, len(found.unchecked)) == (None, 0, len(bare))
    assert found.standing == "undecided" and "were not checked" in found.reason
    # Counting says how many parameters there are and which formula holds; the rest nobody looked at.
    assert {"dimension", "evidence", "fiber", "lower_bound"} <= set(found.unchecked[0].fields)
    record = found.to_json()
    assert record["unchecked_facts"] == len(record["unchecked"]) == len(bare)
    assert record["unchecked_fields"] == sum(len(each["fields"]) for each in record["unchecked"]) == 4 * len(bare)


def test_recheck_finds_a_sum_that_claims_more_than_its_parts(path):
    question = get_question("toy")
    parts = [Fact(task, replace(question.run(task), evidence="probabilistic"), 0.1) for task in question.tasks({}, 0)]
    (total,) = question.sums({}, 0)
    with FactStore(path) as store:
        store.add([*parts, Fact(total, replace(question.combine(total, parts), evidence="dimension proven"), 0)])
        found = [why for _, why in recheck(store).problems]
    assert found[0] == "its parts give the evidence 'proven'" and "gives another evidence, proven" in found[1]


def test_recheck_finds_a_wrong_sum_and_a_missing_part(path):
    question = get_question("toy")
    table = {"sizes": [2, 3, 4]}
    parts = [Fact(task, question.run(task), 0.1) for task in question.tasks(table, 0)]
    (total,) = question.sums(table, 0)
    with FactStore(path) as store:
        store.add([*parts[:2], Fact(total, Answer({"total": 77}, "proven"), 0)])
        assert [why for _, why in recheck(store).problems] == ["1 of its 3 parts are missing"]
        store.add(parts[2:])
        assert [why for _, why in recheck(store).problems] == ["its parts give another answer"]


def test_recomputing_finds_an_answer_that_depends_on_the_seed(path):
    question = get_question("toy")
    (task,) = question.tasks({"sizes": 6}, 0)
    with FactStore(path) as store:
        store.add([Fact(task, Answer({"rank": 5}, "proven"), 0)])
        found = recheck(store, recompute=1)
    assert found.valid is False
    assert "gives another rank, 3" in found.problems[0][1]
