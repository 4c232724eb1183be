"""Comparisons, unique heads, complete ideals and laws of inputs: what is true passes, what is not quite is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attngeom.cli.app import run
from attngeom.comparison import compare
from attngeom.comparison.certificate import certify_comparison
from attngeom.errors import InputError
from attngeom.exact import QQ, RR
from attngeom.exact.partitions import schur_dimension
from attngeom.heads.certificate import certify_uniqueness
from attngeom.heads.uniqueness import heads_unique
from attngeom.interop.weights import weights_to_json
from attngeom.learning import learning_coefficient
from attngeom.network import Architecture, Weights, forward, random_symmetry, random_weights
from attngeom.verification import Verdict, verify
from attngeom.verification.functions import evaluate
from attngeom.verification.ideals import Counts, LayerSizes, kostka
from attngeom.verification.reading import Unproven
from tests.effort import choose
from tests.proofs.later import functions, ideals, later, laws, layer_of, uniqueness, virtual
from tests.proofs.mutations import Record, seal, standalone


@pytest.mark.parametrize("number", range(len(later())))
def test_true_claims_pass_and_are_unknown_to_the_lone_file(number: int) -> None:
    record = later()[number]
    assert verify(record).valid, verify(record).reason
    word, reason = standalone(record)
    assert word == "unknown" and reason.startswith(rests_on(record)), reason


def rests_on(record: Record) -> str:
    """What the lone file says that a true claim of these kinds rests on: a theorem by its name, or a computation."""
    claim, witness = record["claim"], record["witness"]
    name = "X" if claim["kind"] == "learning-coefficient" else witness.get("theorem", witness.get("argument"))
    lists = dict.fromkeys(("plane", "plane, two heads", "one token"), "(open-problems.md)")
    names = {"6": "6", "7": "7", "H": "H", "D": "D or D2", "S": "S or D2", "X": "X", "virtual": "A, A' or S", **lists}
    names["layers"] = "D, S or none"
    if name in names and not claim.get("same", False):
        return f"rests on the paper proof of Theorem {names[name]}, "
    return "attngeom verify alone computes"


def altered(record: Record, change: Callable[[Record], Any]) -> Verdict:
    found = copy.deepcopy(record)
    change(found)
    return verify(seal(found["claim"], found["witness"]))


def of(records: list[Record], **wanted: Any) -> Record:
    """The first record with these values in claim or witness."""
    return next(x for x in records if all({**x["claim"], **x["witness"]}.get(k) == y for k, y in wanted.items()))


def put(*path: Any, value: Any) -> Callable[[Record], None]:
    def change(record: Record) -> None:
        place: Any = record
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


SYMMETRY, INPUT = "symmetry", "input"


def two_heads() -> Record:
    return next(
        x for x in functions() if x["witness"]["argument"] == SYMMETRY and x["claim"]["architecture"]["heads"] == 2
    )


REFUSED: dict[str, tuple[Callable[[], Record], Callable[[Record], Any], str]] = {
    "a scale": (lambda: of(functions(), argument=SYMMETRY), put("witness", "scales", 0, 0, value="3"), "other scores"),
    "an order": (
        two_heads, lambda x: x["witness"]["orders"][0].reverse(), "other scores",
    ),
    "an order twice": (
        two_heads, put("witness", "orders", 0, value=[0, 0]), "different indices",
    ),
    "a basis": (
        lambda: of(functions(), argument=SYMMETRY),
        put("witness", "bases", 0, value=[["1", "0"], ["0", "2"]]), "other",
    ),
    "same for different": (lambda: of(functions(), argument=INPUT), put("claim", "same", value=True), "does not show"),
    "an input at which they agree": (
        lambda: of(functions(), argument=INPUT),
        lambda x: x["witness"].update(input=[["0" for _ in row] for row in x["witness"]["input"]]), "not seen to",
    ),
    "different for same": (lambda: of(functions(), argument="virtual"), put("claim", "same", value=False), "(M, L)"),
    "a factor after rank one": (
        lambda: of(functions(), argument="virtual"), put("claim", "second", "layers.1.Q", 0, 0, value="7"), "(M, L)",
    ),
    "other layers": (
        lambda: of(functions(), argument="layers", same=True),
        put("claim", "first", "layers.0.heads.0.Q", 0, 0, value="7"), "not seen to agree",
    ),
    "equal layers": (
        lambda: of(functions(), argument="layers", same=False),
        lambda x: x["claim"].update(second=x["claim"]["first"]), "equal",
    ),
    "the heads themselves": (
        lambda: of(uniqueness(), unique=False),
        lambda x: x["witness"].update(tensors=x["claim"]["tensors"]), "same head functions",
    ),
    "another function": (
        lambda: of(uniqueness(), unique=False),
        put("witness", "tensors", "layers.0.heads.0.O", 0, 0, value="7"), "same function",
    ),
    "the theorem of another kind": (
        lambda: of(uniqueness(), theorem="D"), put("witness", "theorem", value="S"), "softmax",
    ),
    "one of several heads": (lambda: of(uniqueness(), theorem="D"), put("witness", "theorem", value="one"), "one head"),
    "a module less": (lambda: ideals()[1], lambda x: x["claim"]["generators"].pop(), "another one"),
    "a module more": (
        lambda: ideals()[0],
        lambda x: x["claim"]["generators"].append({"degree": 3, "shapes": [[3, 3], [2, 1]]}), "another one",
    ),
    "a dimension": (lambda: ideals()[1], put("claim", "dimension", value=9), "dimension is"),
    "linear relations": (lambda: ideals()[4], put("claim", "linear_relations", value=13), "linear relations"),
    "d = 3 with several rows": (lambda: ideals()[7], lambda x: x["claim"]["variety"].update(d=3, targets=3), "d = 2"),
    "three heads": (lambda: ideals()[10], put("claim", "variety", "heads", value=3), "two of attention"),
    "values of any rank": (lambda: ideals()[10], put("claim", "variety", "value_width", value=2), "two of attention"),
    "d = 4, one token": (
        lambda: ideals()[12], lambda x: x["claim"]["variety"].update(d=4, targets=4), "d = 3",
    ),
    "a skip connection beside two heads": (
        lambda: ideals()[11], put("claim", "variety", "residual", value=True), "skip",
    ),
    "another λ": (lambda: laws()[0], put("claim", "lambda", value="1"), "gives"),
    "two tokens that do not span": (
        lambda: of(laws(), theorem="A1.2", loss="cross-entropy"),
        lambda x: x["claim"].update(vocabulary=[["1", "0"], ["0", "1"]]), "span",
    ),
    "a law of both sorts": (
        lambda: next(x for x in laws() if "vocabulary" in x["claim"]),
        lambda x: x["claim"].update(inputs=[[["1", "0"], ["0", "1"]]]), "one of them",
    ),
    "an unknown loss": (lambda: laws()[0], put("claim", "loss", value="squared"), "cross-entropy"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_just_outside_is_refused(name: str) -> None:
    make, change, words = REFUSED[name]
    verdict = altered(make(), change)
    assert verdict.valid is False and words in verdict.reason, verdict.reason


def test_a_sample_that_is_too_small_is_no_density() -> None:
    """Fewer inputs than the largest rank: λ of a density is refused, whichever theorem is cited."""
    record = next(x for x in laws() if "inputs" in x["claim"] and "prime" in x["witness"])
    for count in range(1, 3):
        verdict = altered(record, lambda x, n=count: x["claim"].update(inputs=x["claim"]["inputs"][:n]))  # type: ignore[misc]
        assert verdict.valid is False, verdict.reason


def test_every_key_counts() -> None:
    """A key that is missing or unknown, in claims and witnesses."""
    for record in (functions()[0], uniqueness()[0], ideals()[0], laws()[0]):
        for part in ("claim", "witness"):
            assert altered(record, lambda x, p=part: x[p].update(other=1)).valid is False  # type: ignore[misc]
            for key in record[part]:
                assert altered(record, lambda x, p=part, k=key: x[p].pop(k)).valid in (False, None) or key in (  # type: ignore[misc]
                    "loss", "vocabulary", "inputs",
                )  # fmt: skip


def random_architecture(rng: np.random.Generator) -> Architecture:
    layers, heads, residual = int(rng.integers(1, 4)), int(rng.choice([1, 1, 1, 2])), bool(rng.random() < 0.3)
    width = int(rng.integers(1, 4))
    return Architecture(
        [width if residual else int(rng.integers(1, 4)) for _ in range(layers + 1)],
        [int(rng.integers(1, 3)) for _ in range(layers)],
        int(rng.integers(1, 4)),
        str(rng.choice(["lightning", "softmax", "sigmoid"])),
        heads=heads,
        value_width=int(rng.integers(1, 3)) if heads > 1 else None,
        residual=residual,
        causal=bool(rng.random() < 0.3),
    )


@pytest.mark.parametrize("seed", range(choose(60, 600)))
def test_proven_comparisons_have_certificates(seed: int) -> None:
    """Small entries, so that ranks drop, heads merge and layers are blind."""
    rng = np.random.default_rng([41, seed])
    architecture = random_architecture(rng)
    first = Weights.from_vector(architecture, QQ.convert(rng.integers(-1, 2, architecture.num_parameters)), QQ)
    second = random_symmetry(architecture, QQ, seed=seed).apply(first)
    if seed % 3:
        entries = first.vector().copy()
        entries[rng.integers(len(entries))] = QQ.convert([int(rng.integers(-1, 2))])[0]
        second = Weights.from_vector(architecture, entries, QQ)
    answer = compare(first, second)
    if not answer.is_proven or answer.same_function is None:
        with pytest.raises(InputError, match="no certificate"):
            certify_comparison(first, second, answer)
        return
    assert verify(certify_comparison(first, second, answer).to_json()).valid


@pytest.mark.parametrize("kind", ["lightning", "softmax", "sigmoid"])
@pytest.mark.parametrize("causal", [False, True])
def test_the_forward_pass_of_verify(kind: str, causal: bool) -> None:
    temperature = "3/2" if kind != "lightning" else "1"
    architecture = Architecture((2, 3, 2), 2, 3, kind, heads=2, value_width=2, causal=causal, temperature=temperature)
    weights = random_weights(architecture, RR, seed=1)
    X = np.random.default_rng(0).normal(size=(2, 3))
    assert np.allclose(evaluate(weights, X, RR), forward(weights, X), rtol=1e-12)


SIZES = LayerSizes(2, 2, None, 2, 2, 1, None, False, False)


def test_counts_see_a_list_that_is_wrong() -> None:
    """The generators of d = 2, two rows, without one of them, and with one in the wrong place."""
    _, modules = SIZES.listed()
    quadrics = [shapes for n, shapes in modules if n == 2]
    Counts(SIZES).check(2, quadrics)
    for wrong in ([], [*quadrics, *quadrics], [((2,), (2, 2), (2,))]):
        with pytest.raises(Unproven, match="new generators mod p"):
            Counts(SIZES).check(2, wrong)
    with pytest.raises(Unproven, match="new generators mod p"):
        Counts(SIZES).check(3, [((2, 1), (4, 2), (2, 1))])


def test_kostka_numbers_add_up_to_dimensions() -> None:
    for shape, n in (((2, 1), 3), ((3, 3, 1), 4), ((4, 2, 2), 3)):
        weights = (w for w in product(range(sum(shape) + 1), repeat=n) if sum(w) == sum(shape))
        assert sum(kostka(shape, w) for w in weights) == schur_dimension(shape, n)


def test_heads_of_random_small_layers() -> None:
    """Every proven answer about the heads of small random layers has a certificate that is accepted."""
    decided = 0
    for seed in range(choose(80, 800)):
        rng = np.random.default_rng([42, seed])
        kind, heads = str(rng.choice(["lightning", "softmax", "sigmoid"])), int(rng.integers(1, 4))
        architecture = Architecture(
            (2, 2), 2, int(rng.integers(1, 4)), kind, heads=heads, value_width=int(rng.integers(1, 3))
        )
        weights = Weights.from_vector(architecture, QQ.convert(rng.integers(-1, 2, architecture.num_parameters)), QQ)
        answer = heads_unique(weights)
        if answer.is_proven:
            decided += 1
            assert verify(certify_uniqueness(weights, answer).to_json()).valid
        else:
            with pytest.raises(InputError, match="no certificate"):
                certify_uniqueness(weights, answer)
    assert decided > 30


def test_floats_and_other_kinds_have_no_certificate() -> None:
    w = random_weights(Architecture((2, 2), 1), RR, seed=0)
    with pytest.raises(InputError, match="rational"):
        certify_comparison(w, w, compare(w, w))
    other = random_weights(Architecture((2, 2), 1, kind="retnet"), QQ, seed=0)
    with pytest.raises(InputError, match="rational"):
        certify_comparison(other, other, compare(other, other))


def write(weights: Weights, path: Path) -> str:
    path.write_text(json.dumps(weights_to_json(weights)))
    return str(path)


def test_commands_write_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    k, other, q = np.array([1, 2]), np.array([1, -1]), np.array([2, 1])
    first, second = (
        write(virtual([np.outer(a, q), np.outer(b, b)], [b.tolist()]), tmp_path / f"{n}.json")
        for n, (a, b) in enumerate(((k, other), (other, k)))
    )
    heads = write(layer_of([([[1, 2], [3, 5]], [[1], [0]], [1, 0]), ([[2, 0], [1, 7]], [[0], [1]], [0, 1])],
                           kind="softmax"), tmp_path / "heads.json")  # fmt: skip
    point = write(random_weights(Architecture((2, 3), 1, tokens=2), QQ, seed=0), tmp_path / "point.json")
    out = str(tmp_path / "c.json")
    for command in (
        ["compare", first, second, "--certificate", out],
        ["heads", heads, "--certificate", out],
        ["implicitize", "--d", "2", "--a", "2", "--max-degree", "1", "--complete", "--certificate", out],
        ["lambda", point, "--loss", "cross-entropy", "--certificate", out],
    ):
        Path(out).unlink(missing_ok=True)
        assert run(command) == 0, command
        assert run(["verify", out, "--standalone"]) == 0, command
        assert "lone checker  unknown" in capsys.readouterr().out
    assert run(["implicitize", "--d", "2", "--a", "2", "--max-degree", "1", "--certificate", out]) == 2
    assert run(["heads", "--widths", "4,4", "--attention", "1", "--heads", "2", "--prove", "--certificate", out]) == 2
    assert "--certificate given without" in capsys.readouterr().err


def test_cross_entropy_is_claimed_of_the_given_weights() -> None:
    """The claim holds the weights that were asked about, with all their outputs."""
    weights = random_weights(Architecture((2, 3), 1, tokens=2), QQ, seed=0)
    certificate = learning_coefficient(weights, loss="cross-entropy").certificate
    assert certificate is not None and certificate.claim["loss"] == "cross-entropy"
    assert len(certificate.claim["tensors"]["layers.0.V"]) == 3
    assert "bounded inputs with a density and cross-entropy" in verify(certificate.to_json()).claim
