"""Runs keep what is finished, continue after an interrupt, and notice an outcome that differs."""

from dataclasses import replace

import pytest

from attngeom.errors import InputError
from attngeom.exact.domains import PolynomialDomain
from attngeom.papers import Check, Claim, Finding, Record, Store, Work, find_claims, run_claims


def make_claim(name, run):
    return Claim(f"G-{name}", name, "exact arithmetic", run, "a statement", strength="supported")


def finding(*checks, **more):
    return Finding("counted", tuple(checks), **more)


TRUE, FALSE = Check("true", True), Check("false", False)
CORRECTED, SUPPORT_FAILS = Check("instead", True, "correction"), Check("test point", False, "support")
MISPRINT = Check("a step of the proof", False, "printed proof")


@pytest.mark.parametrize(
    ("checks", "outcome"),
    [
        ([TRUE], "supported"),
        ([TRUE, CORRECTED], "supported"),
        ([TRUE, MISPRINT], "supported"),
        ([TRUE, FALSE, CORRECTED], "error"),
        ([TRUE, FALSE], "failed"),
        ([TRUE, SUPPORT_FAILS], "failed"),
        ([FALSE, CORRECTED, SUPPORT_FAILS], "failed"),
        ([FALSE, Check("instead", False, "correction")], "failed"),
    ],
)
def test_outcome_follows_from_the_checks(checks, outcome):
    assert finding(*checks).outcome("supported") == outcome


def test_interrupt_keeps_finished_claims_and_the_next_run_continues(tmp_path):
    calls = []

    def interrupted(work):
        calls.append("second")
        if calls.count("second") == 1:
            raise KeyboardInterrupt
        return finding(TRUE)

    def first(work):
        calls.append("first")
        return finding(TRUE)

    claims = [make_claim("first", first), make_claim("second", interrupted)]
    with pytest.raises(KeyboardInterrupt):
        run_claims(claims, Work(), tmp_path)
    records = run_claims(claims, Work(), tmp_path)
    assert calls == ["first", "second", "second"]
    assert [record.outcome for record in records] == ["supported", "supported"]


@pytest.mark.parametrize("work", [Work(quick=True), Work(seed=1)])
def test_results_of_another_size_or_seed_are_not_taken_up(tmp_path, work):
    calls = []
    claims = [make_claim("one", lambda w: calls.append(w) or finding(TRUE))]
    run_claims(claims, Work(), tmp_path)
    run_claims(claims, work, tmp_path)
    assert len(calls) == 2


def test_damaged_results_are_computed_again(tmp_path):
    calls = []
    claims = [make_claim("one", lambda w: calls.append(w) or finding(TRUE))]
    run_claims(claims, Work(), tmp_path)
    path = Store(tmp_path, Work()).path
    path.write_text(path.read_text()[:-20])
    assert run_claims(claims, Work(), tmp_path)[0].outcome == "supported"
    assert len(calls) == 2


def test_a_part_of_the_claims_keeps_the_others_in_the_store(tmp_path):
    claims = [make_claim(name, lambda w: finding(TRUE)) for name in ("one", "two")]
    run_claims(claims, Work(), tmp_path)
    run_claims(claims[:1], Work(), tmp_path)
    assert set(Store(tmp_path, Work()).load()) == {"G-one", "G-two"}


def test_record_survives_json():
    claim = make_claim("one", lambda w: finding(TRUE))
    record = Record.of(claim, finding(FALSE, values={"n": [1, 2]}, primes=(7,), counterexample="n = 1"), 1.5)
    assert Record.from_json(record.to_json()) == record
    assert not record.as_expected


def test_progress_names_the_claim_at_work():
    seen = []
    claims = [make_claim(name, lambda w: finding(TRUE)) for name in ("one", "two")]
    run_claims(claims, Work(), progress=lambda claim, done, total: seen.append((claim.place, done, total)))
    assert seen == [("one", 0, 2), ("two", 1, 2)]


def test_polynomial_domain_tells_equal_from_different():
    ring = PolynomialDomain.of(x=(2, 2))
    X = ring.matrix("x", 2, 2)
    assert ring.equal(ring.matmul(X, X).T, ring.matmul(X.T, X.T))
    assert not ring.equal(ring.matmul(X, X), ring.matmul(X.T, X.T))


def test_several_processes_find_what_one_finds(tmp_path):
    claims = find_claims(["G-definition-3", "G-section-2-cost", "G-remark-genericity"])
    seen: list[int] = []
    apart = run_claims(claims, Work(quick=True), tmp_path / "two", lambda claim, done, total: seen.append(done), 2)
    here = run_claims(claims, Work(quick=True), tmp_path / "one")
    assert seen == [1, 2, 3]
    assert [replace(record, seconds=0) for record in apart] == [replace(record, seconds=0) for record in here]
    assert [record.id for record in apart] == [claim.id for claim in claims]


def test_a_number_of_workers_that_makes_no_sense_is_refused():
    for workers in (0, 10**6):
        with pytest.raises(InputError, match="workers given"):
            run_claims([], Work(), workers=workers)
