"""Faults planted in what the search and verify share: no false claim passes verify and the lone checker together."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import fmpq

from attngeom import verification
from attngeom.exact.arrays import from_flint
from attngeom.exact.domains import QQ, BalancedField, Balls, Domain, PolynomialDomain
from attngeom.exact.domains.cubic import CubicNumber
from attngeom.exact.domains.extension import AlgebraicNumber
from attngeom.exact.residues import BalancedResidues, Elimination
from attngeom.layer.coefficients import Coefficients
from attngeom.layer.polynomial_maps import PolynomialMap, map_domain, map_from_json
from attngeom.network.architecture import Architecture
from attngeom.network.attention import find_kind
from attngeom.network.options import Options
from attngeom.network.weights import Weights
from attngeom.verification import verify
from attngeom.verification.interpreter import PRIMES, Interpreter
from attngeom.verification.symmetries import ScaleRule, list_rules
from tests.proofs.examples import examples
from tests.proofs.later import later
from tests.proofs.mutations import seal, standalone
from tests.proofs.sources import deep_maps, transcripts

Record = dict[str, Any]


def smaller(record: Record) -> None:
    """One row and one column less, and one dimension less."""
    record["claim"]["dimension"] -= 1
    for key in ("rows", "columns"):
        record["witness"]["lower"][key].pop()


def larger(record: Record) -> None:
    """One row and one column more, and one dimension more."""
    record["claim"]["dimension"] += 1
    lower, size = record["witness"]["lower"], record["claim"]["dimension"]
    lower["samples"] += 9
    lower["rows"] = list(range(size))
    parameters = Architecture.from_json(record["claim"]["architecture"]).num_parameters
    lower["columns"] += [column for column in range(parameters) if column not in lower["columns"]][:1]


def no_skip(record: Record) -> None:
    record["claim"]["architecture"]["residual"] ^= True


def other_term(record: Record) -> None:
    record["claim"]["coefficients"]["terms"][0]["value"] = "17/3"


def fewer_terms(record: Record) -> None:
    record["claim"]["coefficients"]["terms"].pop()


def rank_one(record: Record) -> None:
    record["claim"]["rank"] = record["claim"]["attention"] = 1


def more_laws(record: Record) -> None:
    record["claim"]["count"] += 1
    record["witness"]["gradients"].pop()


def fewer_laws(record: Record) -> None:
    record["claim"]["count"] -= 1
    record["witness"]["gradients"].append(record["witness"]["samples"] - 1)


def other_pair(record: Record) -> None:
    record["claim"]["lambda"] = "7/3"


def other_map(record: Record) -> None:
    """The weights stay, one coefficient is another one."""
    record["claim"]["coefficients"]["terms"][-1]["value"] = "17/3"


def refuted_network(record: Record) -> None:
    """A map that a network computes, with the evidence against another map."""
    own = next(x for x in deep_maps() if "attention" in x["witness"] and x["claim"]["coefficients"]["d_out"] == 2
               and x["claim"]["coefficients"]["t"] == 2 and not x["claim"]["causal"])  # fmt: skip
    record["claim"] = {**copy.deepcopy(own["claim"]), "verdict": "not_realizable"}


def fewer_rows(record: Record) -> None:
    """One dimension less of a program, one row and column less, and a field that is a symmetry of nothing."""
    record["claim"]["dimension"] -= 1
    for key in ("samples", "outputs", "columns"):
        record["witness"]["lower"][key].pop()
    record["witness"]["upper"] = {"method": "symmetries", "fields": record["witness"]["upper"].get("fields", [])}
    record["witness"]["upper"]["fields"].append([[0, 0, "1"]])


def more_rows(record: Record) -> None:
    """One dimension more of a program: a row and a column more, and as many symmetries less."""
    record["claim"]["dimension"] += 1
    lower, program = record["witness"]["lower"], record["claim"]["program"]
    weights = sum(int(np.prod(shape)) for name, _, shape, _ in program["nodes"] if name == "parameter")
    lower["samples"].append([999 for _ in lower["samples"][0]])
    lower["outputs"].append(-1)
    lower["columns"] += [column for column in range(weights) if column not in lower["columns"]][:1]
    record["witness"]["upper"].get("fields", [None]).pop()


FALSE = [
    *((f"dimension: {name}", change) for name in ("two layers", "heads", "skip", "softmax", "sigmoid")
      for change in (smaller, larger)), ("dimension: smaller network", smaller),
    ("dimension: skip", no_skip), ("layer: rational", other_term), ("layer: rational", fewer_terms),
    ("layer: rational", rank_one), ("layer: real quadratic", other_term), ("layer: closure", other_term),
    ("heads: its own heads", other_term), ("laws: one layer", more_laws), ("laws: two layers", fewer_laws),
    *((f"learning: {name}", other_pair) for name in ("A1.2 0", "D", "S", "C2", "C3", "E0", "H3")),
    ("layer: norm form", other_term), ("layers: attention", other_map),
    *((f"layers: {name}", refuted_network) for name in ("parity", "rotation", "factors", "minor", "linear")),
    *((f"network: {name}", change) for name in ("lightning 3,2,2", "squared MLP 2-3-2", "RMSNorm, linear 3-2")
      for change in (fewer_rows, more_rows)),
]  # fmt: skip


def false_records() -> Iterator[tuple[str, Record]]:
    for name, change in FALSE:
        record = copy.deepcopy(examples()[name])
        change(record)
        yield f"{name}, {change.__name__}", seal(record["claim"], record["witness"])


@contextmanager
def planted(*faults: tuple[Any, str, Any]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for owner, name, value in faults:
            patch.setattr(owner, name, value) if not isinstance(owner, str) else patch.setattr(f"{owner}.{name}", value)
        yield


VERIFIERS = ("dimension", "symmetries", "laws", "heads", "learning_ranks", "compositions", "networks")


def everywhere(value: Callable[..., int]) -> list[tuple[str, str, Any]]:
    return [(f"attngeom.verification.{module}", "rank_mod_p", value) for module in VERIFIERS]


def full(matrix: Any, p: int) -> int:
    return int(min(np.shape(matrix)))


def equal_all(self: Any, a: Any, b: Any) -> bool:
    return True


def wrong_products(self: BalancedField, a: Any, b: Any) -> Any:
    shape = np.broadcast_shapes(np.shape(a), np.shape(b))
    return self.from_residues(np.random.default_rng(7).integers(0, self.p, shape))


def wrong_matmul(self: BalancedField, a: Any, b: Any) -> Any:
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    return self.from_residues(np.random.default_rng(11).integers(0, self.p, shape))


def no_entries(matrix: Any, convert: Any = None) -> Any:
    return from_flint(matrix, convert) * 0


def every_pivot(self: Elimination) -> Elimination:
    self.columns = list(range(min(self.a.shape)))
    return self


def noise(self: BalancedResidues, x: Any, y: Any) -> Any:
    product = x @ y if np.ndim(x) == np.ndim(y) == 2 else x * y
    return np.random.default_rng(17).integers(0, self.p, np.shape(product)).astype(float)


def no_terms(record: Any, name: str = "") -> Coefficients:
    """A reader that takes every file for the first layer that it was made for."""
    from attngeom.layer.files import coefficients_from_json

    return coefficients_from_json(examples()["layer: rational"]["claim"]["coefficients"])


def wrong_gradient(self: Interpreter, sample: Any, output: int) -> Any:
    return np.random.default_rng([13, *sample]).integers(0, PRIMES[0], self.program.count)


def no_map(record: Any, degree: int, name: str = "") -> PolynomialMap:
    """A reader that takes every file for the same network of two layers."""
    own = next(x for x in deep_maps() if "attention" in x["witness"] and x["claim"]["layers"] == 2)
    return map_from_json(own["claim"]["coefficients"], 9)


def zeros(name: str, label: str, shape: Any, p: int) -> Any:
    return np.zeros(shape, dtype=np.int64)


NOT_RECHECKED = ("attngeom.verification.symmetries", "check_identities", lambda *given: None)
SCALES = [ScaleRule("T2", 1, left=((0, 0, 0),), dual=((0, 0, 2),))]


def broken_rules(change: Callable[..., Any]) -> tuple[Any, str, Any]:
    """The rules of an architecture after a change."""
    return "attngeom.verification.symmetries", "list_rules", lambda architecture: change(list_rules(architecture))


FAULTS: dict[str, list[tuple[Any, str, Any]]] = {
    "exact.modular: every rank mod p is full": everywhere(full),
    "exact.modular: every rank mod p is full, and one more": everywhere(lambda matrix, p: full(matrix, p) + 1),
    "exact.domains.prime: products mod p are noise": [(BalancedField, "times", wrong_products)],
    "exact.domains.prime: matrix products mod p are noise": [(BalancedField, "matmul", wrong_matmul)],
    "exact.domains.rationals: ranks are one": [(type(QQ), "rank", lambda self, a: 1)],
    "exact.domains.rationals: ranks are full": [(type(QQ), "rank", lambda self, a: full(a, 0))],
    "exact.domains.rationals: everything is equal": [(type(QQ), "equal", equal_all)],
    "exact.domains.rationals: everything is zero": [(type(QQ), "is_zero", lambda self, a: True)],
    "exact.domains.domain: everything is equal": [(Domain, "equal", equal_all)],
    "exact.domains.domain: everything is zero": [(Domain, "is_zero", lambda self, a: True)],
    "exact.domains.balls: no two balls meet": [(Balls, "equal", lambda self, a, b: False)],
    "exact.domains.cubic: every number is positive": [(CubicNumber, "sign", lambda self: 1)],
    "exact.domains.extension: all numbers are equal": [(AlgebraicNumber, "__eq__", lambda self, other: True)],
    "exact.domains.quadratic: no number has a square": [
        ("attngeom.exact.domains.quadratic", "_is_squarefree", lambda n: True)
    ],
    "exact.domains.polynomials: products are zero": [
        (PolynomialDomain, "matmul", lambda self, a, b: self.zeros((a.shape[-2], b.shape[-1])))
    ],
    "exact.arrays: matrices of FLINT are zero": [
        (f"attngeom.exact.domains.{module}", "from_flint", no_entries) for module in ("rationals", "prime", "balls")
    ],
    "exact.residues: every elimination is full": [(Elimination, "run", every_pivot)],
    "exact.residues: products are noise": [(BalancedResidues, "multiply", noise), (BalancedResidues, "times", noise)],
    "exact.points: named points are zero": [
        (f"attngeom.verification.{module}", "residues", zeros) for module in ("points", "interpreter", "networks")
    ],
    "exact.modular: every expansion of a determinant is one": [
        ("attngeom.verification.maps", "laplace_expansion", lambda rows, reduce=None: fmpq(1))
    ],
    "exact.hankel: transcripts show one dimension less": [
        ("attngeom.verification.transcripts", "hankel_rank", lambda values, count, field: count - 1)
    ],
    "exact.multisets: there is one pair of indices": [
        (f"attngeom.verification.{module}", "pair_index", lambda *given: 0) for module in ("heads", "maps")
    ],
    "exact.rounding: floats have no errors": [
        ("attngeom.verification.interpreter", "rounding_errors", lambda *given: np.zeros(given[4].shape))
    ],
    "exact.numbers: every number is 17/3": [("attngeom.verification.reading", "as_fmpq", lambda value: fmpq(17, 3))],
    "network.architecture: skip connections are forgotten": [(Architecture, "residual", False)],
    "network.architecture: there is one token": [(Architecture, "tokens", 1)],
    "network.options: there are none": [(Options, "__bool__", lambda self: False)],
    "network.attention: every kind is lightning": [
        ("attngeom.network.architecture", "find_kind", lambda name: find_kind("lightning"))
    ],
    "network.weights: there is no value map": [
        (Weights, "tensors", lambda self: iter([])),
    ],
    "layer.files: coefficients of another file": [("attngeom.verification.layer", "coefficients_from_json", no_terms)],
    "layer.coefficients: rows are not compared": [
        ("attngeom.verification.layer", "compare_row", lambda *given: None),
        ("attngeom.verification.heads", "compare_row", lambda *given: None),
    ],
    "layer.polynomial_maps: the map of another file": [("attngeom.verification.layers", "map_from_json", no_map)],
    "layer.polynomial_maps: polynomials are all equal": [
        ("attngeom.verification.layers", "generic_input", lambda d, t: map_domain(d, t).zeros((d, t))),
        ("attngeom.verification.layers", "map_from_json", no_map),
    ],
    "verification.derivations: every field is a symmetry": [
        ("attngeom.verification.networks", "check_fields", lambda *given, **named: None)
    ],
    "verification.interpreter: gradients are noise": [(Interpreter, "gradient", wrong_gradient)],
    "symmetries: a scale where there is none": [NOT_RECHECKED, broken_rules(lambda rules: [*rules, *SCALES])],
    **{
        f"symmetries: {rule} is forgotten, and the Jacobian is noise": [
            broken_rules(lambda rules, rule=rule: [own for own in rules if own.name != rule]),
            (BalancedField, "times", wrong_products),
            (BalancedField, "matmul", wrong_matmul),
        ]
        for rule in ("T1", "T2", "T3", "T4")
    },
    "symmetries: a wrong sign": [
        NOT_RECHECKED,
        broken_rules(lambda rules: [replace(x, left=x.dual, dual=x.left) for x in rules]),
    ],
    "jacobian: noise, and ranks are full": [*everywhere(full), (BalancedField, "matmul", wrong_matmul)],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_no_false_claim_passes_both(fault: str) -> None:
    passed = []
    for name, record in false_records():
        with planted(*FAULTS[fault]):
            try:
                ours = verify(record).valid
            except Exception:
                # A planted fault may break anything, which is no acceptance.
                ours = False
        if ours and standalone(record)[0] == "valid":
            passed.append(name)
    assert not passed


def test_false_claims_are_false_without_a_fault() -> None:
    for name, record in false_records():
        assert verify(record).valid is False and standalone(record)[0] != "valid", name


def test_some_faults_blind_verify() -> None:
    """So that the test above shows something."""
    fooled = set()
    for fault in FAULTS:
        for _, record in false_records():
            with planted(*FAULTS[fault]):
                try:
                    if verify(record).valid:
                        fooled.add(fault)
                except Exception:
                    continue
    blinded = {"exact.modular", "exact.domains.rationals", "layer.files", "layer.coefficients", "symmetries"}
    blinded |= {"verification.derivations", "layer.polynomial_maps"}
    assert {fault.split(":")[0] for fault in fooled} >= blinded, fooled


SHARED = ("exact", "network", "layer", "programs", "rank", "models", "equations")
"""Rooms of the search; of all but the first three verify runs nothing."""
WITH_A_FAULT = {fault.split(":")[0] for fault in FAULTS}


def test_every_module_that_verify_imports_has_a_fault() -> None:
    """What verify imports from the rooms of the search."""
    folder = Path(verification.__file__).parent
    shared = set()
    for path in folder.glob("*.py"):
        shared |= set(re.findall(rf"^from attngeom\.((?:{'|'.join(SHARED)})[.\w]*) import", path.read_text(), re.M))
    parts = {name for fault in WITH_A_FAULT for name in (fault, fault.rpartition(".")[0])}
    assert shared <= parts, shared - parts


def test_every_module_that_verify_runs_has_a_fault() -> None:
    """Of which a function is called, by whomever, while certificates of all kinds are checked."""
    run: set[str] = set()
    source = str(Path(verification.__file__).parents[1])

    def watch(frame: Any, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(source):
            run.add(name.removeprefix(source)[1:].removesuffix(".py").removesuffix("/__init__").replace("/", "."))

    for record in (*examples().values(), *deep_maps(), *one_of_each(later()), *one_of_each(transcripts())):
        sys.setprofile(watch)
        try:
            verdict = verify(record)
        finally:
            sys.setprofile(None)
        assert verdict.valid, verdict.reason
    shared = {name for name in run if name.startswith(SHARED)}
    assert {"exact.domains.cubic", "exact.hankel", "layer.polynomial_maps"} <= shared
    assert shared <= WITH_A_FAULT, shared - WITH_A_FAULT


def one_of_each(records: list[Record]) -> list[Record]:
    """The first record of each kind of claim with each kind of witness."""
    found: dict[Any, Record] = {}
    for record in records:
        witness = record["witness"]
        key = record["claim"]["kind"], witness.get("theorem"), witness.get("argument"), *sorted(witness)
        found.setdefault(key, record)
    return list(found.values())
