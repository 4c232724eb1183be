"""Certificates of networks: rechecked by an interpreter of its own, and refused when anything is changed."""

import copy

import numpy as np
import pytest
from scipy.special import erf

from attngeom.errors import InputError, SizeError
from attngeom.programs import NamedPoint, trace
from attngeom.rank.analysis import analyze, certify_network
from attngeom.verification import Certificate, hypotheses, signs, verify
from attngeom.verification import interpreter as running
from attngeom.verification.programs import CheckedProgram
from tests.effort import choose
from tests.programs.modules import MODULES

QUICK = (
    "lightning 3,2,2",
    "softmax 3,2,2",
    "squared MLP 2-3-2",
    "LeakyReLU 3-4-2",
    "RMSNorm, linear 3-2",
    "exponentials",
)
CASES = [m for m in MODULES if m.name in choose((*QUICK, "Embedding(5,3), linear 2"), {x.name for x in MODULES})]


def certificate_of(module):
    return certify_network(analyze(module.network, *module.inputs, weights=module.weights))


@pytest.mark.parametrize("module", CASES, ids=lambda module: module.name)
def test_certificates_are_valid(module):
    verdict = verify(certificate_of(module), 100)
    assert verdict.valid, verdict.reason
    assert verdict.standing == "certified", verdict.reason


def softplus(z):
    return np.log(1 + np.exp(z))


def gelu(z):
    return z * (1 + erf(z / np.sqrt(2))) / 2


def normed(h):
    return h / np.sqrt((h * h).mean(-1, keepdims=True) + 1e-6)


def scanned(w, x):
    """A state space layer: exponentials of sums of softplus, of which some are sums of others."""
    steps = softplus(x @ w["d"])
    sums = np.cumsum(steps) * w["a"]
    decay = np.exp(sums[2] - sums)
    return (decay * steps * (x @ w["b"])).sum() * w["c"]


FREE = {
    "two layers of GELU": (
        lambda w, x: w["C"] @ gelu(w["B"] @ gelu(w["A"] @ x)), {"A": (2, 2), "B": (2, 2), "C": (1, 2)}, 2, 10
    ),
    "two layers of sines": (
        lambda w, x: w["C"] @ np.sin(w["B"] @ np.sin(w["A"] @ x)), {"A": (2, 2), "B": (2, 2), "C": (1, 2)}, 2, 10
    ),
    "a state space layer": (scanned, {"a": (), "b": (2,), "c": (), "d": (2,)}, (3, 2), 5),
    "GELU behind a norm": (
        lambda w, x: w["B"] @ gelu(w["A"] @ normed(x)), {"A": (2, 3), "B": (2, 2)}, 3, 10
    ),
    "rows of length 1": (lambda w, x: softplus(normed(w["A"]) @ x), {"A": (2, 3)}, 3, 6),
    "GELU beside a softmax": (
        lambda w, x: gelu(np.exp(w["a"] * x) / (np.exp(w["a"] * x) + 1)) * w["b"], {"a": (), "b": ()}, (), 2
    ),
    "softplus of a sine": (lambda w, x: softplus(w["b"] * np.sin(w["a"] @ x)), {"a": (2,), "b": ()}, 2, 3),
}  # fmt: skip
"""Functions with free values, inside of each other too: weights, input, dimension."""


@pytest.mark.parametrize("name", FREE)
def test_free_values_are_rechecked(name):
    """What the analysis calls proven, a recheck with its own values calls certified."""
    network, weights, shape, dimension = FREE[name]
    answer = analyze(network, shape, weights=weights)
    assert (answer.dimension, answer.standing) == (dimension, "proven"), answer.reason
    verdict = verify(certify_network(answer), 100)
    assert verdict.standing == "certified", verdict.reason


def test_both_interpreters_agree():
    """Gradients of every row, by two programs that share no code but the streams."""
    for module in CASES:
        program = trace(module.network, *module.inputs, weights=module.weights)
        point = NamedPoint(program, "attngeom/7")
        samples = point.draw(2)
        rows = point.rows(samples) if program.inputs else point.all_rows(samples[0])[:2]
        other = running.Interpreter(CheckedProgram.from_json(program.to_json()), "attngeom/7")
        theirs = [
            other.gradient(s, -1) if program.inputs else other.gradient(samples[0], k) for k, s in enumerate(samples)
        ]
        there = ~np.isnan(rows).any(axis=1)
        assert there.any()
        assert np.array_equal(np.mod(rows[there], point.prime), np.stack(theirs)[there]), module.name


CHANGES = {
    "a larger dimension": lambda r: r["claim"].update(dimension=r["claim"]["dimension"] + 1),
    "a smaller dimension": lambda r: r["claim"].update(dimension=r["claim"]["dimension"] - 1),
    "another field": lambda r: r["witness"]["upper"]["fields"][0][0].__setitem__(2, "2"),
    "a field twice": lambda r: r["witness"]["upper"]["fields"].__setitem__(0, r["witness"]["upper"]["fields"][1]),
    "a field less": lambda r: r["witness"]["upper"]["fields"].pop(),
    "a sample twice": lambda r: r["witness"]["lower"]["samples"].__setitem__(0, r["witness"]["lower"]["samples"][1]),
    "a column twice": lambda r: r["witness"]["lower"]["columns"].__setitem__(0, r["witness"]["lower"]["columns"][1]),
    "another method": lambda r: r["witness"]["upper"].update(method="weights"),
    "a bad point": lambda r: r["witness"]["lower"].update(point="a b"),
    "another program": lambda r: r["claim"]["program"]["nodes"].__setitem__(
        0, ["parameter", [], [3, 3], {"name": "Q"}]
    ),
    "an unknown operation": lambda r: r["claim"]["program"]["nodes"][4].__setitem__(0, "conjure"),
    "no list of sizes": lambda r: r["claim"]["program"]["nodes"][4].__setitem__(2, {}),
    "no list of nodes": lambda r: r["claim"]["program"]["nodes"][0].__setitem__(1, ""),
    "no witness": lambda r: r.update(witness={}),
}


@pytest.fixture(scope="module")
def record():
    certificate = certificate_of(MODULES[1])
    return {"claim": dict(certificate.claim), "witness": dict(certificate.witness)}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_certificates_are_refused(record, name):
    changed = copy.deepcopy(record)
    CHANGES[name](changed)
    assert verify(Certificate(changed["claim"], changed["witness"], {"seed": 0})).valid is False


def test_a_gap_has_no_certificate():
    def network(w, x):
        """Both depend on one number, by its first and second power: neither a linear field nor a count shows that."""
        number = w["a"] ** 3 * w["b"] + w["a"] * w["b"] ** 3
        return np.tanh(number * x) + np.tanh(number**2 * x * x)

    answer = analyze(network, (), weights={"a": (), "b": ()})
    with pytest.raises(InputError, match="between 1 and 2"):
        certify_network(answer)


def test_a_radicand_that_vanishes_says_nothing_about_signs(monkeypatch):
    """√(x²) exists wherever x is not 0: one zero among the samples does not make its sign free."""
    nodes = [
        ["input", [], [], {"name": "x"}],
        ["parameter", [], [], {"name": "w"}],
        ["contract", [0, 0], [], {"subscripts": ",->"}],
        ["root", [2], [], {}],
        ["contract", [3, 1], [], {"subscripts": ",->"}],
    ]
    record = {"format": "attngeom/program", "version": 1, "nodes": nodes, "output": 4}
    interpreter = running.Interpreter(CheckedProgram.from_json(record), "attngeom/0")
    drawn = running.residues

    def with_a_zero(name, label, shape, p):
        return drawn(name, label, shape, p) * (not label.startswith("x0.3/"))

    monkeypatch.setattr(running, "residues", with_a_zero)
    monkeypatch.setattr(signs, "SIGN_SAMPLES", 50)
    assert interpreter.values((3,))[3][1]
    with pytest.raises(SizeError, match="not seen to be free"):
        hypotheses.check_hypotheses(interpreter, [])


def test_a_density_needs_its_argument_one_level_down():
    """Φ(√x w) exists mod p wherever √x does, its derivative only where √x exists mod the next prime too."""
    nodes = [
        ["input", [], [], {"name": "x"}],
        ["parameter", [], [], {"name": "w"}],
        ["root", [0], [], {}],
        ["contract", [2, 1], [], {"subscripts": ",->"}],
        ["formal", [3], [], {"name": "gauss"}],
    ]
    record = {"format": "attngeom/program", "version": 1, "nodes": nodes, "output": 4}
    interpreter = running.Interpreter(CheckedProgram.from_json(record), "attngeom/0")
    cases = set()
    for index in range(30):
        values, below = interpreter.values((index, index)), interpreter.values((index, index), 1)
        missing = [bool(x[2][1]) for x in (values, below)]
        assert bool(values[4][1]) == any(missing)
        cases.add(tuple(missing))
    assert len(cases) == 4


def test_integrals_beside_logarithms_are_not_proven():
    """Squares of arguments of Φ may differ by a logarithm, which nothing tests."""
    weights = {"a": (), "b": ()}
    both = analyze(lambda w, x: np.log(1 + np.exp(w["a"] * x)) * (1 + erf(w["b"] * x)), (), weights=weights)
    assert both.standing == "probabilistic"
    assert analyze(lambda w, x: 1 + erf(w["b"] * x), (), weights={"b": ()}).standing == "proven"
