"""Sums of heads: every verdict with its certificate, and forged certificates that verify must refuse."""

import copy
import json
import random
from functools import cache

import numpy as np
import pytest

import attngeom
from attngeom.certification import certify
from attngeom.cli.app import run
from attngeom.errors import DomainError, InputError
from attngeom.exact import QQ, RR
from attngeom.layer.coefficients import quadric_table
from attngeom.layer.files import coefficients_from_json, write_coefficients
from attngeom.verification import Certificate, verify
from tests.effort import choose
from tests.heads.cases import change, conjugate_heads, from_table, head, layer, layer_table

BASE = layer(tokens=2)
C = attngeom.coefficients(BASE)


def random_head(rng, d, a, v):
    K, Q, O, W = (QQ.convert(rng.integers(-3, 4, s)) for s in ((d, a), (a, d), (d, v), (v, d)))
    return quadric_table(QQ.matmul(K, Q), QQ.matmul(O, W), QQ)


def changed_by_one():
    table = layer_table(BASE).copy()
    table[0, 0, 0] += 1
    return from_table(table)


def with_a_summand_that_is_no_head():
    rng = np.random.default_rng(0)
    weights = layer(d=6, a=2, heads=3)
    O, Q, M = head(weights, 2, "O"), head(weights, 2, "Q"), QQ.convert(rng.integers(-2, 3, (2, 2, 21)))
    rest = layer_table(change(weights, {"2.O": O * 0}))
    part = QQ.matmul(O, M.reshape(2, -1)).reshape(6, 2, 21)
    moved = QQ.matmul(np.swapaxes(part, 1, 2).reshape(-1, 2), Q).reshape(6, 21, 6)
    return from_table(rest + np.swapaxes(moved, 1, 2))


def broken_copy():
    single = attngeom.coefficients(layer()).single.copy()
    single[0, 0, 0] += 1
    whole = attngeom.coefficients(layer())
    return type(whole)(4, 4, 3, single, whole.cross, QQ)


SIZES = np.random.default_rng(1)
CASES = {
    "its own heads": (C, (2, 2, 2), "realizable", "heads"),
    "room for more": (C, (3, 3, 3), "realizable", "heads"),
    "zero": (from_table(layer_table(BASE) * 0), (1, 2, 1), "realizable", "heads"),
    "shared": (
        attngeom.coefficients(change(BASE, {"1.K": head(BASE, 0, "K"), "1.V": head(BASE, 0, "V")})),
        (2, 2, 2),
        "realizable",
        "heads",
    ),
    "attention too small": (C, (1, 2, 2), "not_realizable", "minor"),
    "value too small": (C, (2, 2, 1), "not_realizable", "minor"),
    "one coefficient changed": (changed_by_one(), (2, 2, 2), "not_realizable", "count"),
    "one wide head": (C, (4, 1, 4), "not_realizable", "idempotent"),
    "other widths": (
        from_table(random_head(SIZES, 4, 1, 3) + random_head(SIZES, 4, 3, 1)),
        (2, 2, 2), "not_realizable", "idempotent",
    ),
    "no head": (with_a_summand_that_is_no_head(), (2, 3, 2), "not_realizable", "idempotent"),
    "complex conjugates": (conjugate_heads(-1), (2, 2, 2), "not_realizable", "negative"),
    "broken copy": (broken_copy(), (2, 2, 2), "not_realizable", "violated"),
    "real conjugates": (conjugate_heads(2), (2, 2, 2), "realizable", "Q(sqrt(2))"),
    "real conjugates, other root": (conjugate_heads(5), (2, 2, 2), "realizable", "Q(sqrt(5))"),
    "not a direct sum": (changed_by_one(), (3, 2, 3), "undecided", None),
}  # fmt: skip


def decide(name):
    coefficients, (attention, heads, value), verdict, evidence = CASES[name]
    return certify(coefficients, attention, heads=heads, value=value), verdict, evidence


@cache
def text_of(name):
    return json.dumps(decide(name)[0].certificate.to_json())


def record_of(name):
    return json.loads(text_of(name))


@pytest.mark.parametrize("name", CASES)
def test_verdicts_and_certificates(name):
    found, verdict, evidence = decide(name)
    assert found.verdict == verdict, found.reason
    if evidence is None:
        assert found.certificate is None and not found.is_proven
        return
    text = json.dumps(found.certificate.to_json())
    assert f'"{evidence}"' in text
    checked = verify(json.loads(text))
    assert checked.valid, checked.reason
    assert str(found.heads) in checked.claim and str(found)


def seal(record):
    provenance = {key: value for key, value in record["provenance"].items() if key != "sha256"}
    return Certificate(record["claim"], record["witness"], provenance).to_json()


def numbers(value, path=()):
    if isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(item, (*path, key))
    else:
        yield path


def put(record, path, value):
    for step in path[:-1]:
        record = record[step]
    record[path[-1]] = value


def truth(claim):
    """What a new decision says of a claim: True, False, or None where it cannot tell."""
    coefficients = coefficients_from_json(claim["coefficients"])
    found = certify(coefficients, claim["attention"], heads=claim["heads"], value=claim["value"])
    return None if found.verdict == "undecided" else found.verdict == claim["verdict"]


NAMES = [name for name in CASES if CASES[name][3] is not None and name != "no head"]


@pytest.mark.parametrize("seed", range(2))
def test_no_forged_certificate_is_falsely_accepted(seed):
    rng = random.Random(seed)
    accepted = refused = 0
    trials = range(choose(8, 30))
    for _ in trials:
        record = record_of(rng.choice(NAMES))
        action = rng.randrange(5)
        claim, witness = record["claim"], record["witness"]
        if action == 0:
            claim["verdict"] = "realizable" if claim["verdict"] == "not_realizable" else "not_realizable"
        elif action == 1:
            key = rng.choice(["heads", "attention", "value"])
            claim[key] = rng.choice([1, 2, 3, 4])
        elif action == 2:
            path = rng.choice(list(numbers(witness)) or [("heads",)])
            put(witness, path, rng.choice([0, 1, "0", "1", "-1", "1/2", None, "Q(sqrt(-1))"]))
        elif action == 3 and claim["coefficients"]["terms"]:
            rng.choice(claim["coefficients"]["terms"])["value"] = rng.choice(["1", "-2", "1/3"])
        else:
            record["witness"] = record_of(rng.choice(NAMES))["witness"]
        verdict = verify(seal(record))
        if verdict.valid:
            accepted += 1
            assert truth(claim) is not False, json.dumps(record)[:400]
        else:
            refused += 1
    assert refused > len(trials) // 2


def test_a_short_basis_does_not_refute_true_heads():
    """The commutant of two heads has dimension two; with the scalars alone it would allow one summand only."""
    wrong = record_of("one coefficient changed")
    wrong["claim"]["coefficients"] = record_of("its own heads")["claim"]["coefficients"]
    verdict = verify(seal(wrong))
    assert verdict.valid is False and "complete" in verdict.reason


def test_idempotents_must_commute_and_be_indecomposable():
    record = record_of("one wide head")
    argument = record["witness"]["commutant"]["argument"]
    unit = [["1" if i == j else "0" for j in range(4)] for i in range(4)]
    forged = copy.deepcopy(record)
    forged["witness"]["commutant"]["argument"] = {**argument, "idempotent": {"X": unit, "Y": unit}}
    assert verify(seal(forged)).valid is False
    corner = [["1" if i == j == 0 else "0" for j in range(4)] for i in range(4)]
    forged["witness"]["commutant"]["argument"] = {**argument, "idempotent": {"X": corner, "Y": corner}}
    assert "commute" in verify(seal(forged)).reason


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"heads": 0}, InputError, "positive"),
        ({"heads": 2, "value": 0}, InputError, "positive"),
        ({"value": 2}, InputError, "without heads"),
    ],
)
def test_bad_input(options, error, message):
    with pytest.raises(error, match=message):
        certify(C, 2, **options)


def test_floats_and_single_tokens():
    with pytest.raises(DomainError, match="find_heads"):
        certify(attngeom.coefficients(BASE.to(RR)), 2, heads=2)
    assert certify(attngeom.coefficients(layer(tokens=1)), 2, heads=2).verdict == "undecided"


def test_command(tmp_path, capsys):
    path, out = tmp_path / "c.json", tmp_path / "cert.json"
    write_coefficients(C, path)
    line = ["certify", str(path), "--attention", "2", "--heads", "2", "--value", "2"]
    assert run([*line, "--out", str(out)]) == 0 and "realizable" in capsys.readouterr().out
    assert run(["verify", str(out)]) == 0
    capsys.readouterr()
    assert run(["certify", str(path), "--attention", "1", "--heads", "2", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "not_realizable"
    assert run(["certify", str(path), "--value", "2"]) == 2
