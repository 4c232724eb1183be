"""The list of factors of a block is complete: its Lie algebra has the dimension of what is redundant."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import attngeom
from attngeom.errors import InputError
from attngeom.groups import ComplexScales, GeneralLinear, Group, Orthogonal, RealScales
from attngeom.limits.rounding import TENSORS_DIFFER
from attngeom.models import Sampler, act, fold, random_symmetry, recover
from attngeom.models.affine import Affine
from attngeom.models.counts.redundancy import block_redundancy
from attngeom.models.layer import parts_of
from attngeom.models.layout import write_layer
from attngeom.models.mismatches import layer_mismatches
from attngeom.models.programs import block_program
from attngeom.models.proofs import prove_block
from attngeom.models.proofs.shrink import shrink_block, small_width
from attngeom.models.specification import MLP, Norms, TransformerBlock
from attngeom.models.surroundings import surroundings
from attngeom.models.symmetry import Factor, RowFactor, factors
from attngeom.models.symmetry.latents import Latents
from attngeom.rank.lower import bound_rank
from attngeom.rank.upper import bound_above
from tests.effort import choose
from tests.models.cases import FAMILIES, reference

STEP = 1e-7
GAP = 1e-5
"""Singular values below this share of the largest are errors of the step, those of tangents are far above."""


class NearOne(Sampler):
    """Elements at the distance `STEP` of the neutral one, so that differences are tangents; no orders, no signs."""

    def scales(self, *shape: int) -> np.ndarray:
        return 1 + STEP * self.rng.normal(size=shape)

    def phases(self, *shape: int) -> np.ndarray:
        return np.exp(1j * STEP * self.rng.normal(size=shape))

    def orthogonal(self, count: int, size: int) -> np.ndarray:
        matrices = self.rng.normal(size=(count, size, size))
        return np.eye(size) + STEP * (matrices - matrices.transpose(0, 2, 1))

    def invertible(self, count: int, size: int) -> np.ndarray:
        return np.eye(size) + STEP * self.rng.normal(size=(count, size, size))

    def shift(self, size: int | tuple[int, ...] = ()) -> np.ndarray:
        return STEP * self.rng.normal(size=size)

    def signs(self, *shape: int) -> np.ndarray:
        return np.ones(shape)

    def coins(self, *shape: int) -> np.ndarray:
        return np.zeros(shape, bool)

    def order(self, size: int) -> np.ndarray:
        return np.arange(size)


@cache
def kinds() -> dict[TransformerBlock, tuple[str, int]]:
    """The different blocks of the reference checkpoints, each with a family and a layer that has it."""
    found: dict[TransformerBlock, tuple[str, int]] = {}
    for family in FAMILIES:
        model = reference(family)
        for layer in range(model.layers):
            found.setdefault(model.block(layer), (family, layer))
    return found


def declared(family: str, number: int, factor: Factor | None = None) -> int:
    """The dimension of the orbit of a layer under the factors of its block, or one, in the tensors of its file."""
    model = reference(family)
    block, layer, (stack, index) = model.block(number), model.layer(number), model.place(number)
    most = block_redundancy(block, model.spec.width).total if factor is None else count(factor, model.spec.width)
    layout = model.places.blocks[stack.name]
    # Scales of outputs are multiplied into the maps that write when they are read: writing may choose any.
    chosen = tuple(layout.scales.values()) if factor is None else ()

    def vector(own, size: float = 0.0) -> np.ndarray:
        def scales(name: str, shape: tuple[int, ...]) -> np.ndarray:
            return 1 + size * rng.normal(size=shape) * name.endswith(chosen)

        tensors = write_layer(block, layout, index, own, scales)
        return np.concatenate([np.ravel(tensors[name]) for name in sorted(tensors)])

    rng, sampler = np.random.default_rng(1), NearOne(0)
    start = vector(layer)
    rows = []
    for _ in range(most + 8):
        parts = random_symmetry(block, layer, sampler) if factor is None else [*factor.random(layer, sampler)]
        moved = act(block, layer, parts)
        rows.append((vector(moved, STEP) - start) / STEP)
    values = np.linalg.svd(np.array(rows), compute_uv=False)
    rank = int((values > GAP * values[0]).sum())
    assert values[min(rank, len(values) - 1)] < 0.1 * GAP * values[0] and values[rank - 1] > 10 * GAP * values[0]
    return rank


def count(factor: Factor, width: int) -> int:
    """The dimension of the orbits that a factor states."""
    return sum(part.count for part in factor.orbits(surroundings(factor.block, width)))


CASES = sorted(kinds().values())


@pytest.mark.parametrize(("family", "layer"), CASES[:: choose(4, 1)])
def test_the_factors_of_a_block_are_all_that_is_redundant(family: str, layer: int) -> None:
    model = reference(family)
    assert declared(family, layer) == block_redundancy(model.block(layer), model.spec.width).total


@cache
def small_kinds() -> dict[str, tuple[TransformerBlock, int, int]]:
    """The different blocks of all families at the smallest width that shows their options: block, width, buckets."""
    found: dict[tuple[TransformerBlock, int, int], str] = {}
    for family in FAMILIES:
        spec = reference(family).spec
        width = small_width(spec)
        for stack in spec.stacks:
            for number in dict.fromkeys(stack.order):
                block = shrink_block(stack.kinds[number], spec.width, width)
                found.setdefault((block, width, min(stack.relative_buckets, 4)), f"{family} {number}")
    return {name: kind for kind, name in found.items()}


NO_PROGRAM = ("deberta-v2 0", "phimoe 0")
"""Blocks that programs do not describe: contents against positions, a router that draws one expert after the other."""
SMALL = {name for name, (block, width, _) in small_kinds().items() if block.parameters(width, width) < 225}
WITHOUT_NORMS_OF_ROWS = ["cohere 0", "cohere2 0", "falcon 0", "gemma 0"]
"""Where linear fields of the program itself are all that there is, and the search without hints is quick."""
PROVEN = [name for name in small_kinds() if name not in NO_PROGRAM]


@pytest.mark.parametrize("name", choose([name for name in PROVEN if name in SMALL], PROVEN))
def test_the_factors_of_every_family_are_those_that_are_proven(name: str) -> None:
    """Rank and symmetries of the program of a block meet, at what its list of factors says."""
    block, width, buckets = small_kinds()[name]
    proof = prove_block(block, width, buckets=buckets)
    assert proof.standing == "proven", proof.reason
    assert proof.redundancy == proof.formula


def test_the_factors_of_a_table_of_an_image_are_those_that_are_proven() -> None:
    """Two shifts of each head: of what patches read, and of what the token in front reads."""
    block, width, _ = small_kinds()["beit 0"]
    assert block.attention is not None and block.attention.relative is not None
    assert isinstance(block.mlp, MLP)
    proof = prove_block(replace(block, mlp=replace(block.mlp, activation="relu")), width)
    assert proof.standing == "proven", proof.reason
    plain = replace(block, attention=replace(block.attention, relative=None))
    shifts = block_redundancy(block, width).total - block_redundancy(plain, width).total
    assert proof.redundancy == proof.formula and shifts == 2 * block.attention.heads


def test_the_factors_of_rg_lru_are_those_that_are_proven() -> None:
    """Alone with the gate of its block, and before an MLP with ReLU."""
    block, width, _ = small_kinds()["recurrent_gemma 0"]
    assert isinstance(block.mlp, MLP)
    for own in (
        replace(block, mlp=None, mlp_norms=Norms()),
        replace(block, mlp=replace(block.mlp, activation="relu")),
    ):
        proof = prove_block(own, width)
        assert proof.standing == "proven", proof.reason
        assert proof.redundancy == proof.formula


@pytest.mark.parametrize("name", NO_PROGRAM)
def test_blocks_that_programs_do_not_describe_are_refused(name: str) -> None:
    block, width, buckets = small_kinds()[name]
    with pytest.raises(InputError, match="proofs by rank do not describe"):
        prove_block(block, width, buckets=buckets)


@pytest.mark.parametrize("name", WITHOUT_NORMS_OF_ROWS[: choose(2, 4)])
def test_the_search_without_hints_finds_the_factors(name: str) -> None:
    """The search of `attngeom net`, which knows no blocks, has an algebra of the same dimension."""
    block, width, buckets = small_kinds()[name]
    program = block_program(block, width, buckets=buckets)
    lower = bound_rank(program)
    upper = bound_above(lower, wider=block_program(block, width, buckets=buckets, others=2))
    declared = block.parameters(width, width) - block_redundancy(block, width).total
    assert lower.value == upper.value == declared and upper.method == "symmetries"


@pytest.mark.parametrize(("family", "layer"), CASES[1 :: choose(4, 1)])
def test_each_factor_of_rows_has_the_orbits_that_it_states(family: str, layer: int) -> None:
    """Of values with outputs, of queries with keys, of rotated pairs, of latents: one by one, by their moves."""
    model = reference(family)
    own = [factor for factor in factors(model.block(layer)) if isinstance(factor, RowFactor | Latents)]
    for factor in own:
        stated = count(factor, model.spec.width)
        assert not stated or declared(family, layer, factor) == stated


@pytest.mark.parametrize(("family", "layer"), CASES[2 :: choose(4, 1)])
def test_a_change_of_any_array_of_a_layer_is_an_error_of_some_factor(family: str, layer: int) -> None:
    """The factors together measure every tensor: none of a folded layer may change unseen, and none for nothing."""
    block, rng = reference(family).block(layer), np.random.default_rng(layer)
    target = fold(block, reference(family).layer(layer))
    whole = parts_of(target)
    assert all(not m.values.max() > 1e-7 for m in layer_mismatches(target, recover(block, target, target), 1e-7, {}))
    for name, array in whole.items():
        if not array.size or name.endswith("latent.gain") or "gain_rests" in name:
            continue  # gains of latents are folded to one, and what rounding took of gains is no tensor
        noise = 0.1 * np.abs(array).max(initial=0.1) * rng.normal(size=array.shape)
        other = replaced(target, name, array + noise)
        mismatches = layer_mismatches(target, recover(block, target, other), 1e-7, {})
        assert max(m.ratios.max() for m in mismatches) > TENSORS_DIFFER, name


def replaced(value, name: str, array: np.ndarray):
    """A layer, or a part of it, with another array of a name of `parts_of`."""
    if not name:
        return array
    first, _, rest = name.partition(".")
    if isinstance(value, Mapping):
        first = next(key for key in value if name.startswith(f"{key}."))
        return {**value, first: replaced(value[first], name.removeprefix(f"{first}."), array)}
    if isinstance(value, tuple):
        return tuple(replaced(own, rest, array) if str(i) == first else own for i, own in enumerate(value))
    if isinstance(value, Affine):
        return Affine(**{"weight": value.weight, "bias": value.bias, first: array})
    return replace(value, **{first: replaced(getattr(value, first), rest, array)})


GROUPS = [GeneralLinear(3), Orthogonal(3), ComplexScales(3), RealScales(3)]


def rows_of(group: Group, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    turn = 1j if isinstance(group, ComplexScales) else 0
    return tuple(rng.normal(size=(2, 3, 7)) + turn * rng.normal(size=(2, 3, 7)) for _ in range(2))


@pytest.mark.parametrize("columns, heads", [(5, 1), (2, 3), (1, 1), (2, 1)])
def test_rows_that_leave_an_element_open_are_matched_by_their_duals(columns: int, heads: int) -> None:
    """Heads wider than what they read: 4 rows that span a plane, and dual ones that span everything or less."""
    rng, group = np.random.default_rng(columns), GeneralLinear(4)
    rows, dual = rng.normal(size=(2, 4, 2)), rng.normal(size=(2 * heads, 4, columns))
    element = group.random(Sampler(3), 2)
    goal = group.act(element, rows)
    across = group.act(np.repeat(group.dual(element), heads, axis=0), dual)
    match = group.match(goal, rows, (across, dual))
    np.testing.assert_allclose(group.act(match, rows), goal, atol=1e-10)
    np.testing.assert_allclose(group.act(np.repeat(group.dual(match), heads, axis=0), dual), across, atol=1e-9)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: type(group).__name__)
def test_groups(group: Group) -> None:
    """What every group says of itself holds together."""
    carried, dual = rows_of(group, 1)
    element = group.random(Sampler(3), 2)
    moved, across = group.act(element, carried), group.act(group.dual(element), dual)
    np.testing.assert_allclose(group.invariants(moved, across), group.invariants(carried, dual), atol=1e-12)
    np.testing.assert_allclose(group.act(group.inverse(element), moved), carried, atol=1e-12)
    np.testing.assert_allclose(group.act(group.match(carried, moved), moved), carried, atol=1e-12)
    columns = np.swapaxes(carried, -1, -2)
    np.testing.assert_allclose(np.swapaxes(group.act_on_columns(element, columns), -1, -2), moved, atol=1e-12)
    basis = group.tangents()
    flat = np.concatenate([basis.real.reshape(len(basis), -1), basis.imag.reshape(len(basis), -1)], axis=1)
    assert len(basis) == group.dimension == np.linalg.matrix_rank(flat)
    for direction in basis:
        change = group.invariants(group.act(direction, carried[0]), dual[0])
        change = change + group.invariants(carried[0], group.act(-group.adjoint(direction), dual[0]))
        np.testing.assert_allclose(change, 0, atol=1e-12)


@pytest.mark.parametrize("group", [type(group)(n) for group in GROUPS for n in range(5)], ids=repr)
def test_fibers_of_products(group: Group) -> None:
    """Entries minus the rank of (T, S) ↦ S*T; of O(n), which keeps more than products, the rank of its tangents."""
    rng, field = np.random.default_rng(4), (1, 1j) if isinstance(group, ComplexScales) else (1,)

    def real(values: np.ndarray) -> np.ndarray:
        return np.concatenate([values.real.ravel(), values.imag.ravel()])

    for carried, dual in [(m, k) for m in range(5) for k in range(5)]:
        rows = [sum(unit * rng.normal(size=(group.size, columns)) for unit in field) for columns in (carried, dual)]
        if isinstance(group, Orthogonal):
            moved = [np.concatenate([real(E @ own) for own in rows]) for E in group.tangents()]
            fiber = np.linalg.matrix_rank(np.array(moved)) if moved and moved[0].size else 0
        else:
            changes = []
            for side, place in [(s, p) for s in range(2) for p in np.ndindex(rows[s].shape)]:
                for unit in field:
                    step = [np.zeros(own.shape, complex) for own in rows]
                    step[side][place] = unit
                    change = group.invariants(step[0], rows[1]) + group.invariants(rows[0], step[1])
                    changes.append(real(change))
            fiber = len(changes) - (np.linalg.matrix_rank(np.array(changes)) if changes and changes[0].size else 0)
        assert group.fiber(carried, dual) == fiber


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: type(group).__name__)
@pytest.mark.parametrize("gauge", ["echelon", "balanced", "rotated"])
def test_gauges_are_constant_on_the_orbit(group: Group, gauge) -> None:
    carried, dual = (rows[0] for rows in rows_of(group, 2))
    form = group.fix(carried, dual, gauge, 7)
    np.testing.assert_allclose(group.invariants(*form), group.invariants(carried, dual), atol=1e-12)
    for seed in range(3):
        element = group.random(Sampler(seed), 1)[0]
        other = group.fix(group.act(element, carried), group.act(group.dual(element), dual), gauge, 7)
        for one, two in zip(form, other):
            np.testing.assert_allclose(one, two, atol=1e-12)
    if gauge == "balanced":
        np.testing.assert_allclose(group.moment(*form), 0, atol=1e-12)


def test_one_file_of_models_says_which_tokens_are_seen() -> None:
    root = Path(attngeom.__file__).parent / "models"
    naming = [path.name for path in root.rglob("*.py") if re.search(r"\bcausal\b", path.read_text(encoding="utf-8"))]
    assert naming == ["sublayers.py"]


@pytest.mark.parametrize("option", ["qk_norm", "sinks", "softcap"])
def test_few_files_name_an_option(option: str) -> None:
    """The specification says what an option means; its operation, its storage and its words are the others."""
    root = Path(attngeom.__file__).parent
    naming = [
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if re.search(rf"\b{option}\b", path.read_text(encoding="utf-8"))
    ]
    assert 2 <= len([name for name in naming if not name.startswith("models/families/")]) <= 5
