"""Theorems on the dimension against computation, and against the verifier, which has them in code of its own."""

import json
import random

import pytest
import sympy

from attngeom.cli.app import run
from attngeom.dimensions import dimension
from attngeom.dimensions.certificate import certify_dimension
from attngeom.dimensions.formulas import formula
from attngeom.dimensions.theorems import softmax_bottleneck
from attngeom.errors import AttnGeomError, InputError
from attngeom.network.architecture import Architecture
from attngeom.verification import Certificate, verify
from attngeom.verification.theorems import THEOREMS
from tests.effort import choose

COMPUTED = choose(200, 700)
COUNTED = 4000


def draw(number: int, largest: int, layers: int) -> Architecture:
    """A random architecture, half of them with a single head."""
    rng = random.Random(number)
    depth = rng.choice((1, rng.randint(1, layers)))
    residual = rng.random() < 0.3
    heads = rng.choice((1, 1, 1, 2, 3))
    width = rng.randint(1, largest)
    widths = [width] * (depth + 1) if residual else [rng.randint(1, largest) for _ in range(depth + 1)]
    inner = max(1, largest // rng.choice((1, 2 * heads)))
    value_width = rng.randint(1, inner) if heads > 1 or rng.random() < 0.2 else None
    kind = rng.choice(("lightning", "lightning", "softmax", "softmax", "sigmoid"))
    attention = [rng.randint(1, inner) for _ in range(depth)]
    causal = rng.random() < 0.2
    if rng.random() < 0.15:
        return draw_bottleneck(rng, largest, layers)
    return Architecture(
        widths,
        attention,
        tokens=rng.randint(1, 4),
        kind=kind,
        heads=heads,
        value_width=value_width,
        residual=residual,
        causal=causal,
    )


def draw_bottleneck(rng: random.Random, largest: int, layers: int) -> Architecture:
    """A softmax network of heads that fill the hidden width, the case of Theorem S4; sometimes one condition fails."""
    heads, depth = rng.randint(1, 3), rng.randint(2, max(2, layers))
    value_width = rng.randint(1, max(1, largest // heads))
    delta = heads * value_width - (rng.random() < 0.1)
    ends = [delta + rng.choice((0, 0, 1, 2, -1)) for _ in range(2)]
    widths = [max(1, width) for width in (ends[0], *(delta,) * (depth - 1), ends[1])]
    attention = [rng.randint(1, max(1, width // heads)) for width in widths[:-2]] + [rng.randint(1, largest)]
    tokens = rng.randint(1, 3)
    return Architecture(widths, attention, tokens=tokens, kind="softmax", heads=heads, value_width=value_width)


@pytest.mark.parametrize("start", range(0, COMPUTED, 100))
def test_theorems_agree_with_computed_ranks(start):
    seen = 0
    for number in range(start, start + 100):
        architecture = draw(number, largest=4, layers=3)
        known = formula(architecture)
        if known is None or known.status != "theorem":
            continue
        seen += 1
        found = dimension(architecture, method="minor", seed=number)
        assert found.dimension == known.value, architecture
        assert found.standing == "proven" and found.upper.value == known.value, architecture
    assert seen > 20


@pytest.mark.parametrize(
    ("d", "d_out", "a", "v", "heads"),
    [(2, 2, 1, 1, 2), (3, 4, 1, 2, 2), (4, 4, 2, 2, 2), (4, 6, 2, 3, 2), (5, 3, 1, 1, 3)],
)
def test_heads_of_a_direct_sum(d, d_out, a, v, heads):
    architecture = Architecture((d, d_out), a, tokens=2, heads=heads, value_width=v)
    known = formula(architecture)
    assert known.source == "Theorem H"
    assert dimension(architecture, method="minor").dimension == known.value


@pytest.mark.parametrize(
    ("widths", "a", "heads", "v", "value"),
    [((4, 4, 4), 2, 2, 2, 80), ((5, 4, 5), 2, 2, 2, 96), ((4, 4, 4), 1, 4, 1, 96), ((3, 2, 4), 1, 2, 1, None)],
)
def test_softmax_networks_through_a_bottleneck(widths, a, heads, v, value):
    architecture = Architecture(widths, a, tokens=2, kind="softmax", heads=heads, value_width=v)
    known = formula(architecture)
    assert known.source == "Theorem S4" and known.value == (value or known.value)
    found = dimension(architecture, method="minor")
    assert found.dimension == known.value and found.standing == "proven"


@pytest.mark.parametrize(
    ("widths", "a", "heads", "v"),
    [((2, 3, 3), 1, 1, 3), ((4, 4, 3), 2, 2, 2), ((4, 4, 4), 3, 2, 2), ((4, 4, 4), 2, 2, 1), ((4, 3, 4), 1, 2, 2)],
)
def test_theorem_s4_needs_each_hypothesis(widths, a, heads, v):
    architecture = Architecture(widths, a, tokens=2, kind="softmax", heads=heads, value_width=v)
    claim = softmax_bottleneck(architecture)
    assert not claim.applies
    with pytest.raises(AttnGeomError):
        THEOREMS["softmax-bottleneck"](architecture)


def test_verifier_agrees_with_the_formulas():
    seen = dict.fromkeys(THEOREMS, 0)
    for number in range(COUNTED):
        architecture = draw(number, largest=random.Random(number).choice((3, 6, 50, 1000)), layers=5)
        known = formula(architecture)
        for name, value in THEOREMS.items():
            # Wherever the verifier accepts a theorem, the answer is its value.
            try:
                accepted = value(architecture)
            except AttnGeomError:
                continue
            seen[name] += 1
            assert known is not None and known.status == "theorem" and known.value == accepted, (name, architecture)
        if known is not None and known.theorem is not None:
            assert THEOREMS[known.theorem](architecture) == known.value
    assert min(seen.values()) > 20, seen


def test_gpt2_sized_stack_is_answered_at_once(capfd):
    widths = ",".join(["768"] * 13)
    flags = ["--heads", "12", "--value-width", "64", "--attention", "64", "--residual", "--causal", "--prove", "--json"]
    assert run(["dim", "--kind", "softmax", "--widths", widths, *flags]) == 0
    answer = json.loads(capfd.readouterr().out)
    assert answer["method"] == "theorem" and answer["is_proven"]
    assert answer["dimension"] == answer["lower_bound"] == answer["upper_bound"] == 12 * (4 * 768**2 - 2 * 768**2 // 12)
    assert all(answer["formula"]["hypotheses"].values())


@pytest.mark.parametrize("number", range(40))
def test_certificates_of_theorems(number):
    architecture = draw(number, largest=200, layers=4)
    known = formula(architecture)
    if known is None or known.status != "theorem":
        with pytest.raises(InputError, match="no theorem"):
            dimension(architecture, method="theorem")
        return
    certificate = certify_dimension(dimension(architecture, method="theorem"))
    assert verify(certificate).valid is True
    claim, witness = dict(certificate.claim), dict(certificate.witness)
    for change in (-1, 1):
        forged = Certificate({**claim, "dimension": claim["dimension"] + change}, witness, {})
        assert verify(forged).valid is False
    for name in THEOREMS:
        verdict = verify(Certificate(claim, {**witness, "theorem": name}, {}))
        assert verdict.valid is not None and (verdict.valid is False or THEOREMS[name](architecture) == known.value)
    for name in ("nonsense", None, 3, ["softmax-network"]):
        assert verify(Certificate(claim, {**witness, "theorem": name}, {})).valid is False
    for words in (None, "t ≥ 2", [3]):
        assert verify(Certificate(claim, {**witness, "hypotheses": words}, {})).valid is False
    flipped = {**claim["architecture"], "kind": "sigmoid", "tokens": 1}
    assert verify(Certificate({**claim, "architecture": flipped}, witness, {})).valid is False


def test_command_writes_a_certificate_of_a_theorem(tmp_path, capfd):
    path = tmp_path / "cert.json"
    command = ["dim", "--kind", "softmax", "--widths", "64,64,64", "--attention", "8", "--certificate", str(path)]
    assert run(command) == 0
    assert run(["verify", str(path)]) == 0
    assert "softmax-network" in capfd.readouterr().out


def test_determinant_of_theorem_f():
    p, q, r, s = sympy.symbols("p q r s")
    m = sympy.Matrix([[p, q], [r, s]])
    units = [sympy.Matrix(2, 2, lambda i, j, k=k: int(2 * i + j == k)) for k in range(4)]
    images = sympy.Matrix([list(G * m + G.T * m + m * G) for G in units])
    claimed = 3 * m.det() * (3 * p**2 + 3 * p * s + 3 * s**2 + q**2 + q * r + r**2)
    assert sympy.expand(images.det() - claimed) == 0
