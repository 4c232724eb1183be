"""A trimmed program is the same function: values, rows of the Jacobian, leaves; much of what is drawn is lost."""

import numpy as np
import pytest

from attngeom.programs import Builder
from attngeom.programs.arithmetic import ModularArithmetic, RealArithmetic
from attngeom.programs.operations import Point
from attngeom.programs.passes import pull, run, value
from attngeom.programs.trimming import trim, zero_entries
from tests.effort import repeat


def draw_program(rng):
    """Products, sums and functions of arrays from which entries are left out, repeated or replaced by zero."""
    b = Builder()
    pool = [b.parameter("w", (3, 4)), b.parameter("v", (4,)), b.input("x", (3, 4)), b.parameter("s", ())]
    pool.append(b.constant(rng.integers(-1, 2, (3, 4))))
    for _ in range(int(rng.integers(4, 12))):
        a, c = (pool[int(k)] for k in rng.integers(0, len(pool), 2))
        kind = rng.integers(0, 9)
        size = b.nodes[a].size
        if kind == 0:
            shape = [int(n) for n in rng.integers(1, 4, rng.integers(0, 3))]
            index = rng.integers(-1, size, shape)
            pool.append(b.gather([a, c], np.where(rng.random(shape) < 0.4, -1, index)))
        elif kind == 1 and b.shape(a) and b.shape(c) and b.shape(a)[-1] == b.shape(c)[-1]:
            left, right = "abcd"[: len(b.shape(a)) - 1], "efgh"[: len(b.shape(c)) - 1]
            pool.append(b.contract(f"{left}z,{right}z->{left}{right}", a, c))
        elif kind == 2 and b.shape(a):
            pool.append(b.sum(a, [int(rng.integers(0, len(b.shape(a))))]))
        elif kind == 3:
            pool.append(b.inverse(b.add(b.multiply(a, a), b.constant(1))))
        elif kind == 4:
            pool.append(b.root(b.add(b.multiply(a, a), b.constant(2))))
        elif kind == 5:
            pool.append(b.relu(a))
        elif kind == 6 and b.shape(a):
            order = b.order(a)
            letters = "abcd"[: len(b.shape(a)) - 1]
            pool.append(b.contract(f"{letters}kj,{letters}j->{letters}k", order, a))
        else:
            try:
                pool.append(b.add(a, c, 2, -1) if kind == 7 else b.multiply(a, c))
            except ValueError:
                continue
    last = pool[-1]
    kept = rng.integers(0, b.nodes[last].size, 2)
    return b.build(b.gather([last], kept))


@pytest.mark.parametrize("seed", repeat(240))
def test_a_trimmed_program_is_the_same_function(seed):
    rng = np.random.default_rng(seed)
    program = draw_program(rng)
    small = trim(program)
    assert small.parameters == program.parameters and small.inputs == program.inputs
    tensors = {n: rng.standard_normal((2, *shape)) for n, shape in {**program.parameters, **program.inputs}.items()}
    runs = [run(p, Point(RealArithmetic(), tensors)) for p in (program, small)]
    ours = np.broadcast_to(value(small, runs[1]), value(program, runs[0]).shape)
    np.testing.assert_allclose(value(program, runs[0]), ours, atol=1e-9, rtol=1e-9)
    form = rng.standard_normal((2, *program.nodes[program.output].shape))
    rows = [pull(p, traces, form) for p, traces in zip((program, small), runs)]
    for name in program.parameters:
        np.testing.assert_allclose(rows[0][name], rows[1][name], atol=1e-7, rtol=1e-7)


@pytest.mark.parametrize("seed", repeat(80))
def test_entries_that_are_called_zero_are_zero(seed):
    program = draw_program(np.random.default_rng(1000 + seed))
    rng = np.random.default_rng(seed)
    domain = ModularArithmetic(0, "test")
    shapes = {**program.parameters, **program.inputs}
    tensors = {n: domain.balanced(rng.integers(0, domain.p, (1, *s))) for n, s in shapes.items()}
    real = run(program, Point(RealArithmetic(), {n: rng.standard_normal((1, *s)) for n, s in shapes.items()}))
    patterns = {k: real[k].result for k in program.places("pattern")}
    for trace, flags in zip(run(program, Point(domain, tensors, {}, patterns)), zero_entries(program)):
        entries = np.broadcast_to(trace.result, (1, *flags.shape))[0][flags]
        assert not np.nan_to_num(entries, nan=0.0).any()


def test_padding_and_other_tokens_are_not_computed():
    b = Builder()
    w, x = b.parameter("w", (2, 2)), b.input("x", (3, 2))
    padded = b.move([x], np.pad(b.numbers([x])[0], ((0, 61), (0, 0))))
    hidden = b.contract("ti,ij->tj", padded, w)
    scores = b.contract("ti,si->ts", hidden, hidden)
    program = b.build(b.gather([b.contract("ts,sj->tj", scores, hidden)], [4, 5]))
    small = trim(program)
    assert max(node.size for node in program.nodes) == 64 * 64
    assert max(node.size for node in small.nodes) == 6


def test_programs_without_anything_to_trim_stay_as_they_are():
    b = Builder()
    program = b.build(b.contract("ij,j->i", b.parameter("w", (2, 3)), b.input("x", (3,))))
    assert trim(program) is program
