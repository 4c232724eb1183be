"""Factors that kinds of attention declare against those that the search discovers in their programs."""

import numpy as np
import pytest

from attngeom.exact import GF
from attngeom.exact.modular import rank_mod_p
from attngeom.network import Architecture
from attngeom.network.attention import KINDS
from attngeom.network.programs import program_of
from attngeom.network.symmetry.group import infinitesimal_action
from attngeom.network.weights import random_weights
from attngeom.rank.lower import bound_rank
from attngeom.rank.search import evaluate_fields, find_symmetries
from tests.network.modern_cases import CASES, label

PRIME = 4068479
SHAPES = [((2, 2), {}), ((2, 2), {"heads": 2, "value_width": 1}), ((2, 2, 2), {})]


def check(architecture):
    """At random weights both span the same directions: none is missing in the list, none escapes the search."""
    program = program_of(architecture, 3)
    weights = random_weights(architecture, GF(PRIME), seed=11)
    declared = np.array(infinitesimal_action(weights) % PRIME, dtype=np.int64).reshape(-1, program.num_parameters)
    flat = np.concatenate([np.ravel(array) for _, array in weights.tensors()]).astype(np.int64)
    fields = find_symmetries(bound_rank(program)).fields
    discovered = evaluate_fields(fields, flat, PRIME)
    both = np.concatenate([declared, discovered])
    assert rank_mod_p(declared, PRIME) == rank_mod_p(both, PRIME) == rank_mod_p(discovered, PRIME)


@pytest.mark.parametrize(("widths", "more"), SHAPES, ids=["head", "heads", "layers"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_declared_factors_of_kinds_are_those_that_are_found(kind, widths, more):
    check(Architecture(widths, 2, tokens=3, kind=kind, **more))


@pytest.mark.parametrize("case", [case for case in CASES if case[1]], ids=label)
def test_declared_factors_of_options_are_those_that_are_found(case):
    kind, options = case
    check(Architecture((3, 2), 2, tokens=3, kind=kind, **options))
