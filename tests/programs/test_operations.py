"""Every operation in every domain: push against pull, against differences, JSON there and back, values by hand."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import fmpq

from attngeom.errors import FormatError, InputError
from attngeom.programs import Builder, Program
from attngeom.programs.angles import find_classes
from attngeom.programs.arithmetic import CHAIN, ModularArithmetic, RationalArithmetic, RealArithmetic
from attngeom.programs.operations import OPERATIONS, Point
from attngeom.programs.passes import needed_entries, pull, push, run, value
from attngeom.rank.analysis import analyze


def _pair(shape=(2, 3)):
    b = Builder()
    return b, b.parameter("w", shape), b.input("x", shape)


def _programs():
    """One small program for each operation that has a derivative, by its name."""
    found = {}
    b, w, x = _pair()
    found["parameter"] = b.build(b.add(w, x, 2, 3))
    b, w, x = _pair()
    found["input"] = b.build(b.multiply(w, b.multiply(x, x)))
    b, w, x = _pair()
    found["constant"] = b.build(b.multiply(b.add(w, x), b.constant(np.array([0.5, -1.25, 3.0]))))
    b, w, x = _pair()
    cos, sin = b.circle(np.outer([0, 1, 2], [1.0, 0.3])[:2].repeat(2, 1)[:, :3])
    found["circle"] = b.build(b.add(b.multiply(cos, w), b.multiply(sin, b.multiply(w, x))))
    b, w, x = _pair()
    found["gather"] = b.build(b.gather([b.multiply(w, x), w], [[0, 0, -1], [3, 7, 11]]))
    b, w, x = _pair()
    found["contract"] = b.build(b.contract("ij,kj->ik", b.contract("ij,kj->ik", w, x), b.contract("ij,kj->ik", w, w)))
    b, w, x = _pair()
    found["add"] = b.build(b.add(b.multiply(w, x), w, -3, 7))
    b, w, x = _pair()
    found["inverse"] = b.build(b.inverse(b.add(w, x)))
    b, w, x = _pair()
    found["root"] = b.build(b.multiply(b.root(b.multiply(w, w)), x))
    b, w, x = _pair()
    found["formal"] = b.build(b.add(b.gelu(w), b.softmax(b.multiply(w, x), 1)))
    b, w, x = _pair()
    found["pattern"] = b.build(b.contract("aki,ai->ak", b.order(w), b.multiply(b.relu(w), x)))
    return found


PROGRAMS = _programs()


def _points(program, domain):
    rng = np.random.default_rng(1)
    shapes = {**program.parameters, **program.inputs}
    if isinstance(domain, RealArithmetic):
        tensors = {name: rng.uniform(0.5, 2, (4, *shape)) for name, shape in shapes.items()}
    elif isinstance(domain, RationalArithmetic):
        numbers = {name: rng.integers(1, 9, (2, *shape)) for name, shape in shapes.items()}
        tensors = {name: np.vectorize(lambda n: fmpq(int(n), 2), otypes=[object])(x) for name, x in numbers.items()}
    else:
        tensors = {name: domain.balanced(rng.integers(0, domain.p, (4, *shape))) for name, shape in shapes.items()}
    below = {k: rng.integers(0, 100, (4, *node.shape)).astype(float) for k, node in enumerate(program.nodes)}
    return Point(domain, tensors, below)


def test_every_operation_has_an_example():
    assert set(PROGRAMS) == set(OPERATIONS)
    for name, program in PROGRAMS.items():
        assert any(node.operation == name for node in program.nodes)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(
    "domain",
    [RealArithmetic(), ModularArithmetic(0, "test"), ModularArithmetic(2, "test"), RationalArithmetic()],
    ids=["floats", "residues", "residues below", "rationals"],
)
def test_push_agrees_with_pull(name, domain):
    program = PROGRAMS[name]
    if isinstance(domain, RationalArithmetic) and name in ("circle", "formal"):
        pytest.skip("no such numbers over Q")
    point = _points(program, domain)
    traces = run(program, point)
    lead = len(next(iter(point.tensors.values())))
    rng = np.random.default_rng(2)
    shape = program.nodes[program.output].shape
    change = {"w": point.tensors["x"]}
    form = rng.integers(-5, 6, (lead, *shape)).astype(object if isinstance(domain, RationalArithmetic) else float)
    moved = push(program, traces, change)[program.output]
    back = pull(program, traces, form)["w"]
    left = domain.reduce(domain.times(form, moved).reshape(lead, -1).sum(axis=1))
    right = domain.reduce(domain.times(back, change["w"]).reshape(lead, -1).sum(axis=1))
    there = ~np.isnan(left.astype(float))
    assert there.any()
    if isinstance(domain, RealArithmetic):
        assert np.allclose(left, right)
    else:
        assert (left == right)[there].all()


@pytest.mark.parametrize("name", PROGRAMS)
def test_push_agrees_with_differences(name):
    program = PROGRAMS[name]
    point = _points(program, RealArithmetic())
    traces = run(program, point)
    change, step = np.random.default_rng(3).standard_normal(point.tensors["w"].shape), 1e-6
    moved = push(program, traces, {"w": change})[program.output]
    there, back = (
        value(
            program,
            run(program, Point(RealArithmetic(), {**point.tensors, "w": point.tensors["w"] + sign * step * change})),
        )
        for sign in (1, -1)
    )
    assert np.allclose(moved, (there - back) / (2 * step), atol=1e-6)


@pytest.mark.parametrize("name", ["parameter", "constant", "gather", "contract", "add", "inverse"])
def test_residues_agree_with_rationals(name):
    program, field = PROGRAMS[name], ModularArithmetic(0, "test")
    exact = _points(program, RationalArithmetic())
    entries = {k: [Fraction(int(x.p), int(x.q)) for x in t.ravel()] for k, t in exact.tensors.items()}
    tensors = {k: field.constant(entries[k], t.shape)[0] for k, t in exact.tensors.items()}
    ours = value(program, run(program, Point(field, tensors)))
    theirs = value(program, run(program, exact))
    residues = [int(x.p) * pow(int(x.q), -1, field.p) % field.p for x in theirs.ravel()]
    assert field.field.to_integers(ours).ravel().tolist() == residues


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_survive_json(name):
    program = PROGRAMS[name]
    again = Program.from_json(program.to_json())
    assert again.digest == program.digest and again.to_json() == program.to_json()
    point = _points(program, RealArithmetic())
    assert np.array_equal(value(program, run(program, point)), value(again, run(again, point)))


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.update(format="other"),
        lambda r: r.update(output=99),
        lambda r: r["nodes"].append(["conjure", [], [], {}]),
        lambda r: r["nodes"].append(["gather", [0], [2], {"index": [0, 99]}]),
        lambda r: r["nodes"].append(["contract", [0, 1], [2], {"subscripts": "ij,jk->i"}]),
        lambda r: r["nodes"].append(["add", [0, 1], [2, 3], {"coefficients": [1]}]),
        lambda r: r["nodes"].append(["parameter", [], [2], {"name": "w"}]),
        lambda r: r["nodes"].append(["inverse", [77], [2], {}]),
        lambda r: r["nodes"].append(["constant", [], [1], {"entries": ["1/0"]}]),
    ],
)
def test_damaged_programs_are_refused(change):
    record = PROGRAMS["contract"].to_json()
    change(record)
    with pytest.raises(FormatError):
        Program.from_json(record)


def test_the_chain_is_one():
    for p, q in pairwise(CHAIN):
        assert (p - 1) % q == 0 and p % 4 == q % 4 == 3
        assert pow(2, (p - 1) // q, p) != 1


def test_exponentials_are_a_homomorphism():
    domain = ModularArithmetic(0, "test")
    q = CHAIN[1]
    a, b = np.arange(50.0), np.arange(50.0)[::-1] ** 2
    product = domain.times(*(domain.function("exp", x, x)[0] for x in (a, b)))
    total = (a + b) % q
    assert np.array_equal(product, domain.function("exp", total, total)[0])


def test_roots_and_circle_points_are_what_they_say():
    domain = ModularArithmetic(0, "test")
    x = np.arange(1.0, 200.0)
    roots = domain.root(x)
    there = ~np.isnan(roots)
    assert 60 < there.sum() < 140
    assert np.array_equal(domain.times(roots, roots)[there], x[there])
    classes, multiples = np.array([0, 0, 0, 1]), np.array([1, 2, -3, 5])
    cos, sin = domain.circle(classes, multiples, (0.1, 0.2))
    assert (domain.reduce(domain.times(cos, cos) + domain.times(sin, sin)) == 1).all()
    double = domain.reduce(domain.times(cos[:1], cos[:1]) - domain.times(sin[:1], sin[:1]))
    assert double[0] == cos[1]


def test_entries_that_nobody_needs_are_known():
    b, w, x = _pair()
    program = b.build(b.gather([b.contract("ij,kj->ik", w, x)], [3]))
    flags = needed_entries(program)
    assert flags[0].tolist() == flags[1].tolist() == [[False] * 3, [True] * 3]


def test_builder_refuses_what_does_not_fit():
    b, w, x = _pair()
    for call in (
        lambda: b.contract("ij,jk->ik", w, x),
        lambda: b.constant(np.array([np.nan])),
        lambda: b.add(w, b.constant(np.ones(5))),
        lambda: b.parameter("x", (2,)),
        lambda: b.power(w, Fraction(1, 3)),
        lambda: b.formal("conjure", w),
    ):
        with pytest.raises(InputError):
            call()


@pytest.mark.parametrize("angles", [(0.5, 0.3), (0.5, 1.0), (1.5, 1.0)], ids=str)
def test_two_tables_of_angles_are_two(angles: tuple[float, float]) -> None:
    """w ↦ (cos α − cos β) w x is not 0: the first classes of two tables were taken for one angle."""
    b = Builder()
    first, second = (b.circle([angle])[0] for angle in angles)
    product = b.multiply(b.parameter("w", (1,)), b.input("x", (1,)))
    answer = analyze(b.build(b.multiply(b.subtract(first, second), product)))
    assert (answer.dimension, answer.standing) == (1, "proven")


def test_classes_are_not_commensurable() -> None:
    """0.1 and 0.3 are one class, although neither is a small fraction of 6.5, which comes first."""
    numbers, multiples, units = find_classes([6.5, 0.1, 0.3])
    assert (numbers, multiples, units) == ([0, 1, 1], [1, 1, 3], [6.5, 0.1])
    for angle in (np.pi, 2 * np.pi / 512, 2 * np.pi / 60):
        with pytest.raises(InputError, match="fraction of pi"):
            find_classes([angle, 2 * angle])
