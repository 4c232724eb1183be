"""The question "network": facts of the gallery carry certificates, and a store that was altered is not believed."""

import json
from dataclasses import replace

import pytest

import attngeom
from attngeom.atlas import FactStore, Sweep, local_executor, parse_sweep, run_sweep
from attngeom.atlas.networks import NETWORKS, program_of
from attngeom.atlas.questions import get_question
from attngeom.atlas.recheck import recheck
from attngeom.atlas.records import short_name
from attngeom.cli.app import run
from attngeom.errors import InputError

NAMES = ["softmax attention", "bilinear unit", "tied autoencoder"]


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    with FactStore(tmp_path_factory.mktemp("networks") / "networks.db") as store:
        with local_executor(1) as (executor, workers):
            run_sweep(Sweep((("network", {"names": NAMES}),)), store, executor, workers)
        return list(store.facts("network"))


def store_of(folder, facts):
    store = FactStore(folder / "altered.db")
    store.add(facts)
    return store


def test_facts_are_what_the_library_computes_and_recheck(facts, tmp_path):
    assert {short_name(fact.task.architecture) for fact in facts} == set(NAMES)
    for fact in facts:
        network, weights, shape = NETWORKS[fact.task.architecture["network"]]
        answer = attngeom.analyze(network, shape, weights=weights, seed=5)
        held = fact.result.answer
        assert held["dimension"] == held["upper_bound"] == answer.dimension and fact.result.evidence == "proven"
        assert held["unexplained"] == answer.unexplained and sum(held["fiber"].values()) == sum(
            part.count for part in answer.fiber
        )
        assert attngeom.verify(fact.result.certificate).valid
    with store_of(tmp_path, facts) as store:
        result = recheck(store, seed=1)
    assert result.valid is True and result.certificates == len(NAMES) and result.unchecked_fields == 0


@pytest.mark.parametrize(
    "change",
    [
        {"dimension": 13, "lower_bound": 13, "upper_bound": 13, "fiber": {"gl(2) on k.0, q.0": 5}},
        {"fiber": {"so(2) on k.0, q.0": 4}},
        {"fiber": {}, "unexplained": 4},
        {"num_parameters": 19, "unexplained": 1},
        {"upper_bound": 15},
    ],
)
def test_altered_answers_are_refused(facts, change, tmp_path):
    fact = next(fact for fact in facts if fact.task.architecture["network"] == "softmax attention")
    altered = replace(fact, result=replace(fact.result, answer={**fact.result.answer, **change}))
    with store_of(tmp_path, [altered]) as store:
        assert recheck(store, seed=1).valid is False


def test_the_certificate_of_another_network_is_refused(facts, tmp_path):
    one, other = facts[:2]
    altered = replace(one, result=replace(one.result, certificate=other.result.certificate))
    with store_of(tmp_path, [altered]) as store:
        assert recheck(store, seed=1).valid is False


def test_a_program_of_another_version_is_not_taken_for_this_one(facts):
    task = replace(facts[0].task, parameters={"program": "0" * 16})
    with pytest.raises(InputError, match="another program"):
        get_question("network").run(task)


@pytest.mark.parametrize("names", ["Delta", ["softmax attention", 3], {"from": 1, "to": 2}, [["SwiGLU"]]])
def test_unknown_names_are_refused(names):
    with pytest.raises(InputError, match=r"\[\[network\]\]"):
        get_question("network").size({"names": names})


def test_the_whole_gallery_is_planned():
    tasks = list(parse_sweep('[[network]]\nnames = "all"').tasks())
    assert [task.architecture["network"] for task in tasks] == list(NETWORKS) and len(tasks) >= 40
    assert len({task.parameters["program"] for task in tasks}) == len(tasks)
    assert all(program_of(name).inputs for name in NETWORKS)


def test_the_command_shows_them(facts, tmp_path, capsys):
    store_of(tmp_path, facts).close()
    assert run(["atlas", "show", "--store", str(tmp_path / "altered.db"), "--where", "dimension=14", "--json"]) == 0
    (fact,) = json.loads(capsys.readouterr().out)["facts"]
    assert fact["architecture"] == {"network": "softmax attention"} and fact["answer"]["dimension"] == 14
    assert run(["atlas", "show", "--store", str(tmp_path / "altered.db")]) == 0
    assert "softmax attention" in capsys.readouterr().out
    assert run(["atlas", "summary", "--store", str(tmp_path / "altered.db")]) == 0
    assert "Networks as they are written" in capsys.readouterr().out
