"""Sweeps that are out of reach are refused from their ranges alone."""

import pytest

from attngeom.atlas.dimensions import architectures
from attngeom.atlas.questions import get_question
from attngeom.atlas.sweep import make_plan, parse_sweep, read_sweep
from attngeom.cli.app import run
from attngeom.errors import AttnGeomError, InputError, SizeError

ABSURD = {
    "layers": "[[dimension]]\nlayers=[1,2,3,4,5,6]\nwidths={from=1,to=50}\nattention='all'",
    "many layers": "[[dimension]]\nlayers={from=1,to=100000}\nwidths={from=1,to=100}",
    "range": "[[dimension]]\nwidths={from=1,to=1000000000000000}",
    "one size": "[[dimension]]\nwidths=[1,99999999999999999999999999]\ntokens=2",
    "degree": "[[ideal]]\nd=60\ndegrees=[20]",
    "huge degree": "[[ideal]]\nd=2\ndegrees=[100000]",
    "width": "[[ideal]]\nd=1000000000\ndegrees=[1]",
    "rows": "[[ideal]]\nd={from=1,to=9000}\nrows={from=2,to=90000}\ndegrees=[1]",
    "single": "[[ideal]]\nd=3000\ncoordinates='single'\ndegrees=[9]",
    "completeness": "[[completeness]]\nd=90\nmax_degree=12",
}


@pytest.mark.parametrize("text", ABSURD.values(), ids=ABSURD)
def test_absurd_sweeps_are_refused(text):
    with pytest.raises(SizeError) as caught:
        parse_sweep(text)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("text", ["budget=3\n[[ideal]]", "budget=[1]\n[[ideal]]", "[[ideal]]\nd=0", "[[ideal]]\nd=[]"])
def test_bad_tables_are_one_line(text):
    with pytest.raises(InputError) as caught:
        parse_sweep(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("table", [{}, {"layers": [1, 2], "widths": [1, 3]}, {"attention": [1, 2], "tokens": [1, 2]}])
def test_size_bounds_the_number_of_architectures(table):
    assert len(list(architectures(table))) == get_question("dimension").size(table)


def test_size_bounds_the_number_of_weights():
    for table in (
        {"d": [2, 3], "degrees": [1, 2, 3, 4]},
        {"d": 4, "degrees": 5},
        {"d": 2, "rows": [1, 2], "degrees": [2]},
    ):
        question = get_question("ideal")
        assert len(list(question.tasks(table, 0))) <= question.size(table)


@pytest.mark.parametrize("name", ["atlas_full.toml", "atlas_small.toml"])
def test_the_sweeps_that_are_shipped_fit(name, request):
    assert read_sweep(request.config.rootpath / "examples" / name).tables


def test_plans_of_small_sweeps_are_complete():
    plan = make_plan(parse_sweep("[[dimension]]\nwidths=[1,2]"))
    assert len(plan.pending) == len(list(architectures({"widths": [1, 2]})))


def test_dry_run_of_an_absurd_sweep(tmp_path, capfd):
    path = tmp_path / "sweep.toml"
    path.write_text(ABSURD["layers"])
    assert run(["atlas", "run", str(path), "--dry-run"]) == 2
    assert capfd.readouterr().err.count("\n") == 1
    assert issubclass(SizeError, AttnGeomError)


def test_plans_of_huge_tasks_are_printed(tmp_path, capsys):
    path = tmp_path / "sweep.toml"
    path.write_text("[[dimension]]\nwidths=900000\nattention=999999999\ntokens=1000000\nkinds='softmax'")
    assert run(["atlas", "run", str(path), "--dry-run", "--store", str(tmp_path / "none.db")]) == 0
    assert "years" in capsys.readouterr().out
