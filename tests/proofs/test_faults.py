"""Faults planted in what the search and verify share: no false claim passes verify and the lone checker together."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from attngeom.exact.domains import QQ, BalancedField
from attngeom.layer.coefficients import Coefficients
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Weights
from attngeom.verification import verify
from attngeom.verification.symmetries import ScaleRule, list_rules
from tests.proofs.examples import examples
from tests.proofs.mutations import seal, standalone

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


FALSE = [
    *((f"dimension: {name}", change) for name in ("two layers", "heads", "skip", "softmax", "sigmoid")
      for change in (smaller, larger)), ("dimension: smaller network", smaller),
    ("dimension: skip", no_skip), ("layer: rational", other_term), ("layer: rational", fewer_terms),
    ("layer: rational", rank_one), ("layer: real quadratic", other_term), ("layer: closure", other_term),
    ("heads: its own heads", other_term), ("laws: one layer", more_laws), ("laws: two layers", fewer_laws),
    ("learning: A1.2 0", other_pair), ("layer: norm form", other_term),
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


VERIFIERS = ("dimension", "symmetries", "laws", "heads", "learning_ranks", "compositions")


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


def no_terms(record: Any, name: str = "") -> Coefficients:
    """A reader that takes every file for the first layer that it was made for."""
    from attngeom.layer.files import coefficients_from_json

    return coefficients_from_json(examples()["layer: rational"]["claim"]["coefficients"])


NOT_RECHECKED = ("attngeom.verification.symmetries", "check_identities", lambda *given: None)
SCALES = [ScaleRule("T2", 1, left=((0, 0, 0),), dual=((0, 0, 2),))]


def broken_rules(change: Callable[..., Any]) -> tuple[Any, str, Any]:
    """The rules of an architecture after a change."""
    return "attngeom.verification.symmetries", "list_rules", lambda architecture: change(list_rules(architecture))


FAULTS: dict[str, list[tuple[Any, str, Any]]] = {
    "exact: every rank mod p is full": everywhere(full),
    "exact: every rank mod p is full, and one more": everywhere(lambda matrix, p: full(matrix, p) + 1),
    "exact: products mod p are noise": [(BalancedField, "times", wrong_products)],
    "exact: matrix products mod p are noise": [(BalancedField, "matmul", wrong_matmul)],
    "exact: rational ranks are one": [(type(QQ), "rank", lambda self, a: 1)],
    "exact: everything rational is equal": [(type(QQ), "equal", equal_all)],
    "exact: named points are zero": [
        ("attngeom.verification.points", "residues", lambda name, label, shape, p: np.zeros(shape, dtype=np.int64))
    ],
    "network: skip connections are forgotten": [(Architecture, "residual", False)],
    "network: there is no value map": [
        (Weights, "tensors", lambda self: iter([])),
    ],
    "layer: coefficients of another file": [("attngeom.verification.layer", "coefficients_from_json", no_terms)],
    "layer: rows are not compared": [
        ("attngeom.verification.layer", "compare_row", lambda *given: None),
        ("attngeom.verification.heads", "compare_row", lambda *given: None),
    ],
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
    assert {fault.split(":")[0] for fault in fooled} >= {"exact", "layer", "symmetries"}, fooled
