"""Formula = rank = symmetries for kinds of blocks and for whole models; degenerate cases; what must not be proven."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st

from attngeom.errors import InputError, SizeError
from attngeom.exact.modular import rank_mod_p
from attngeom.models.counts.hypotheses import violations
from attngeom.models.counts.redundancy import Redundancy, block_redundancy, redundancy
from attngeom.models.presets import published
from attngeom.models.programs import block_program, model_program
from attngeom.models.proofs import model_proof, prove_block, prove_model, prove_redundancy, shrink
from attngeom.models.proofs.block_proof import prove_program
from attngeom.models.proofs.independence import find_obstacle
from attngeom.models.proofs.tokens import Pairs, TokenPoint
from attngeom.models.specification import (
    MLP,
    Experts,
    LogitHead,
    Norm,
    Norms,
    QKNorm,
    Stack,
    TransformerBlock,
    TransformerSpec,
)
from attngeom.programs import Builder
from attngeom.programs.arithmetic import CHAIN, RealArithmetic
from attngeom.programs.operations import Point
from attngeom.programs.passes import run, value
from attngeom.programs.points import NamedPoint
from attngeom.rank import upper as upper_bounds
from attngeom.rank.lower import bound_rank
from attngeom.rank.search import Field, Symmetries, find_symmetries
from attngeom.rank.suggestions import find_suggested
from attngeom.rank.upper import derivations_at
from attngeom.verification.derivations import Derivations
from tests.effort import choose, examples, repeat, thorough
from tests.models.kinds import (
    BARE,
    BIASES,
    GATED,
    LAYER,
    MLA,
    PLAIN,
    RMS,
    Kind,
    attention,
    named_kinds,
    rotary,
    sequential,
)
from tests.models.random_kinds import KindSampler

NAMED = list(named_kinds())


def test_at_least_64_different_kinds() -> None:
    assert len({kind.block for kind in NAMED}) == len({kind.name for kind in NAMED}) >= 64


@pytest.mark.parametrize("kind", NAMED[:: choose(3, 1)], ids=lambda kind: kind.name)
def test_named_kinds(kind: Kind) -> None:
    proof = prove_block(kind.block, kind.width, buckets=kind.buckets)
    assert proof.standing == "proven"
    assert proof.redundancy == proof.formula


@pytest.mark.parametrize("seed", [5000 + k for k in repeat(36)])
def test_random_kinds(seed: int) -> None:
    kind = KindSampler(seed).kind()
    try:
        proof = prove_block(kind.block, kind.width, seed=seed, buckets=kind.buckets)
    except InputError:
        return
    is_theorem = block_redundancy(kind.block, kind.width).standing == "theorem"
    # Elsewhere the count is "at least": all symmetries that it knows are proven, and maybe more.
    assert proof.agrees if is_theorem else proof.upper <= proof.parameters - proof.formula


@examples(15)
@given(seed=st.integers(0, 10**9), point_seed=st.integers(0, 10**9))
def test_symmetries_never_exceed_the_corank(seed: int, point_seed: int) -> None:
    """At every point: rank of the derivative + rank of the symmetries <= number of weights."""
    kind = KindSampler(seed).kind()
    try:
        proof = prove_block(kind.block, kind.width, seed=point_seed, buckets=kind.buckets)
    except InputError:
        return
    assert proof.lower <= proof.upper <= proof.parameters


def test_a_wrong_symmetry_is_not_proven() -> None:
    """Turns of a pair of rotated queries and keys are symmetries; GL(4), and turns across two pairs, are none."""
    block = sequential(attention(heads=1, groups=1, head_dim=4, rotary=rotary(4)), None, None)
    program = block_program(block, 2)
    key, query = (program.offsets[f"attention.{part}"].start for part in ("key", "query"))
    proofs = derivations_at(bound_rank(program).point)

    def mixed(i: int, j: int, sign: int) -> Field:
        """Row i of the key += row j, row j of the query −= row i, and back with a sign."""
        rows = {(key + 2 * i + k, key + 2 * j + k): fmpq(1) for k in range(2)}
        rows |= {(query + 2 * j + k, query + 2 * i + k): fmpq(-1) for k in range(2)}
        back = {(key + 2 * j + k, key + 2 * i + k): fmpq(sign) for k in range(2)}
        return rows | back | {(query + 2 * i + k, query + 2 * j + k): fmpq(-sign) for k in range(2)}

    assert proofs.vanishes(mixed(0, 2, -1))
    assert not proofs.vanishes(mixed(0, 2, 0)) and not proofs.vanishes(mixed(0, 1, -1))


def test_a_missing_symmetry_leaves_the_bounds_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    block = sequential(attention(**BIASES), PLAIN, LAYER)
    whole = prove_block(block, 6)

    def all_but_one(*arguments: object) -> Symmetries:
        found = find_suggested(*arguments)  # type: ignore[arg-type]
        return replace(found, fields=found.fields[1:])

    monkeypatch.setattr(upper_bounds, "find_suggested", all_but_one)
    monkeypatch.setattr(upper_bounds, "find_symmetries", lambda *_, **__: Symmetries(fields=(), unknowns=0))
    proof = prove_block(block, 6)
    assert whole.standing == "proven" and proof.lower == whole.lower
    assert proof.standing == "undecided" and proof.upper > whole.upper


def test_few_samples_lower_the_rank_only() -> None:
    """At most as many as there are rows; the formula is no evidence: one that is too large ends as undecided."""
    block = sequential(attention(head_dim=4, rotary=rotary(4)), GATED, RMS)
    program = block_program(block, 6)
    _, rows = bound_rank(program).point.draw_rows(12)
    assert rank_mod_p(np.mod(rows, CHAIN[0]).astype(np.int64), CHAIN[0]) == 12
    size = block.parameters(6, 6)
    proof = prove_program(program, size, block_redundancy(block, 6).total + 3, 0, "block")
    assert proof.standing == "proven" and proof.agrees is False
    assert proof.redundancy == block_redundancy(block, 6).total


@pytest.mark.parametrize("kind", NAMED[:: choose(9, 2)], ids=lambda kind: kind.name)
def test_acting_weights_have_the_rank_of_the_stored_ones(kind: Kind) -> None:
    """The map of the weights is dominant: no function is lost, none is won."""
    stored, acting = (
        block_program(kind.block, kind.width, weights=weights, buckets=kind.buckets) for weights in ("stored", "acting")
    )
    sizes = kind.block.parameters(kind.width, kind.width)
    table = kind.buckets * kind.block.attention.heads if kind.buckets else 0
    assert stored.num_parameters == sizes + table >= acting.num_parameters
    expected = prove_block(kind.block, kind.width, buckets=kind.buckets).upper
    assert bound_rank(stored, expected=expected).value == bound_rank(acting).value == expected


def test_counts_by_hand() -> None:
    """Llama-like: V/O GL(2)^2, (C*)^2 per group of keys, gains, scales of units; nothing else."""
    block = sequential(attention(head_dim=4, rotary=rotary(4)), GATED, RMS)
    found = block_redundancy(block, 6)
    assert [found.part(name) for name in ("value_output", "query_key", "norm", "hidden_units")] == [8, 8, 12, 4]
    assert found.total == 32


@pytest.mark.parametrize(
    ("change", "extra"),
    [
        ({"rotary": rotary(4, (0.5, 0.5))}, 2 * (8 - 4)),  # GL(2, C) instead of (C*)^2, two groups
        ({"rotary": rotary(4, (0.5, 0.0))}, 2 * (2 + 4 - 4)),  # C* x GL(2)
        ({"rotary": None}, 2 * (16 - 4)),  # GL(4)
        ({"sinks": True}, 0),
        ({"softcap": 20.0}, 0),
    ],
)
def test_degenerate_frequencies(change: dict[str, object], extra: int) -> None:
    base = attention(head_dim=4, rotary=rotary(4))
    blocks = [sequential(own, None, RMS) for own in (base, replace(base, **change))]  # type: ignore[arg-type]
    plain, changed = (prove_block(block, 6) for block in blocks)
    assert plain.agrees and changed.agrees
    assert changed.redundancy - plain.redundancy == extra


def test_clamped_units_have_no_scale() -> None:
    """A clamp of gate and up takes the scale of (up, down) away; without it the bias of up absorbs the 1."""
    free = MLP(width=3, activation="swiglu_oai", gated=True, up_bias=True, down_bias=True)
    for mlp, scales in ((free, 3), (replace(free, limit=7.0), 0), (replace(free, up_bias=False), 0)):
        proof = prove_block(sequential(None, mlp, RMS), 6)
        assert proof.agrees and proof.redundancy == 6 + scales


def test_few_columns_before_an_output_norm() -> None:
    """gain ∘ n(W y) with k columns: d − k(k+1)/2 gains stay free, one more with a bias and eps > 0."""
    norms = Norms(input=RMS, output=RMS)
    for width, bias, extra in ((2, False, 3), (2, True, 1), (3, False, 0), (1, True, 4)):
        mlp = MLP(width=width, activation="gelu", gated=False, down_bias=bias)
        proof = prove_block(TransformerBlock(attention=None, mlp=mlp, mlp_norms=norms), 6)
        assert proof.agrees and proof.redundancy == 6 + extra


EXACT = Norm(kind="rms", eps=0.0)
SINK = attention(heads=1, groups=1, sinks=True, key_bias=True)
LOUD = attention(output_bias=True)
DIRECTED = replace(LOUD, head_dim=3, causal=False, qk_norm=QKNorm(scope="per_head", norm=EXACT))
UNIT = MLP(width=1, activation="tanh", gated=False, up_bias=True, down_bias=True)
OPEN = MLP(width=4, activation="swiglu_oai", gated=True, down_bias=True)


@pytest.mark.parametrize(
    ("block", "width", "lost", "explained"),
    [
        (TransformerBlock(attention=None, mlp=UNIT, mlp_norms=Norms(input=RMS, output=RMS)), 6, 1, 1),
        (TransformerBlock(attention=LOUD, mlp=OPEN, attention_norms=Norms(input=RMS)), 6, 2, 0),
        (TransformerBlock(attention=SINK, mlp=None, attention_norms=Norms(input=RMS, output=EXACT)), 6, 3, 0),
        (
            sequential(LOUD, None, RMS, cross=replace(DIRECTED, heads=1, groups=1), cross_norms=Norms(input=RMS)),
            6, 3, 0,
        ),
        (sequential(replace(MLA, latent=replace(MLA.latent, query_rank=6)), None, EXACT), 6, 1, 0),
        (sequential(attention(head_dim=4, qk_norm=QKNorm(scope="all_heads", norm=RMS)), None, RMS), 5, 12, 0),
    ],
    ids=["a Möbius map of one unit", "shifts that rescale units", "one head with a sink", "directions only",
         "a latent as wide as the sphere", "row spaces that overlap"],
)  # fmt: skip
def test_fibers_that_are_larger_are_not_claimed(block: TransformerBlock, width: int, lost: int, explained: int) -> None:
    """Outside the theorem: the rank shows what more than the count is lost, proven symmetries what they explain of it.

    All symmetries that the count knows are proven in every case.
    """
    proof, found = prove_block(block, width), block_redundancy(block, width)
    assert proof.parameters - proof.lower == found.total + lost
    assert proof.parameters - proof.upper == found.total + explained
    assert proof.standing == ("proven" if lost == explained else "undecided")
    assert found.standing == "estimate"
    assert found.reason.startswith("at least this many: ") and violations(block, width)


def test_choices_of_experts_keep_a_margin() -> None:
    """Without a norm shares of a softmax fade and groups that are not kept are equal: logits tell them apart."""
    kind = KindSampler(5036).kind()
    point = NamedPoint(block_program(kind.block, kind.width), "test")
    _, clear = point.patterns([(k,) * (point.levels + 1) for k in range(40)])
    assert isinstance(kind.block.mlp, Experts) and kind.block.mlp.expert_groups > 1 and clear.sum() > 30


def test_symmetries_of_every_region_that_are_none_of_the_whole_are_not_calculated(monkeypatch) -> None:
    """Rows of the router of one group, of which one is kept: a shift shows nowhere, but where the choice changes."""
    unit = MLP(width=1, activation="silu", gated=True)
    experts = Experts(
        expert=unit, count=4, active=2, router="softmax", expert_groups=2, active_groups=1, normalised=True
    )
    lower = bound_rank(block_program(TransformerBlock(attention=None, mlp=experts), 3))
    fields, proofs, expanded = find_symmetries(lower).fields, derivations_at(lower.point), []
    whole = Derivations._expanded
    monkeypatch.setattr(Derivations, "_expanded", lambda self, own: expanded.append(1) or whole(self, own))
    verdicts = {}
    for number, field in enumerate(fields):
        expanded.clear()
        verdicts[number] = proofs.vanishes(field), len(expanded)
    unproven = [steps for proven, steps in verdicts.values() if not proven]
    assert len(unproven) == 14 and sum(unproven) == 0 and len(fields) == 18


def test_samples_are_drawn_while_they_raise_the_rank() -> None:
    """One head that writes one direction shows little of its weights at each input."""
    own = attention(heads=1, groups=1, head_dim=4, value_dim=1, query_bias=True)
    own = replace(own, qk_norm=QKNorm(scope="all_heads", norm=RMS))
    assert prove_block(TransformerBlock(attention=own, mlp=None), 10).agrees


def relu_before_norm(units: int) -> TransformerBlock:
    mlp = MLP(width=units, activation="relu", gated=False)
    return TransformerBlock(attention=None, mlp=mlp, mlp_norms=Norms(input=RMS, output=EXACT))


def test_points_without_the_roots_of_a_piece_are_followed_by_others() -> None:
    """n(w) with eps = 0 where one unit is on: √|w|² is missing for half of the points mod p."""
    program = block_program(relu_before_norm(2), 4)
    alone = [bound_rank(program, seed) for seed in range(4)]
    # The regions of one point do not show all of it: samples are missing, and further points are what shows it.
    assert all(bound.value < bound_rank(program, seed, expected=16).value for seed, bound in enumerate(alone))
    assert all(max(bound.samples) >= (4 * len(bound.samples),) for bound in alone)


def test_pieces_with_related_roots_are_left_out() -> None:
    """Where one unit is on, √(a² |w|²) has the sign of a at all inputs or at none: nothing is proven there.

    Three units are seen where two are on, two are not.
    """
    three = [prove_block(relu_before_norm(3), 4, seed=seed) for seed in range(4)]
    assert all(proof.agrees and proof.lower == 24 for proof in three)
    two = [prove_block(relu_before_norm(2), 4, seed=seed) for seed in range(4)]
    assert all(proof.standing == "undecided" and proof.lower < proof.upper for proof in two)


def model(
    block: TransformerBlock, *, tied: bool = False, positions: int = 0, bias: bool = False, **stack: object
) -> TransformerSpec:
    options = {"name": "decoder", "kinds": (block,), "order": (0, 0), "positions": positions, "final_norm": RMS}
    return TransformerSpec(
        family="small",
        width=5,
        vocabulary=16,
        head=LogitHead(tied=tied, bias=bias),
        stacks=(Stack(**(options | stack)),),  # type: ignore[arg-type]
    )


def sandwich(norms: Norms) -> TransformerBlock:
    """Output norms of four and of three columns."""
    return TransformerBlock(attention=ROTATED, mlp=SMALL, attention_norms=norms, mlp_norms=norms)


ROTATED = attention(rotary=rotary(2))
SMALL = MLP(width=3, activation="silu", gated=True)
BIASED = replace(PLAIN, width=3)
MODELS = {
    "llama": (model(sequential(ROTATED, SMALL, RMS)), 10),
    "llama tied": (model(sequential(ROTATED, SMALL, RMS), tied=True), 0),
    "gpt2 tied": (model(sequential(attention(**BIASES), BIASED, LAYER), tied=True, positions=3, final_norm=LAYER), 19),
    "gpt2 untied": (model(sequential(attention(**BIASES), BIASED, LAYER), positions=3, final_norm=LAYER), 45),
    "tied with bias": (
        model(sequential(attention(**BIASES), BIASED, LAYER), tied=True, bias=True, positions=3, final_norm=LAYER), 20,
    ),
    "neox": (model(sequential(replace(ROTATED, **BIASES), BIASED, LAYER, parallel=True), final_norm=LAYER), 38),
    "cohere": (
        model(
            sequential(ROTATED, SMALL, BARE, parallel=True, shared_norm=True, mlp_norms=Norms()), tied=True,
            final_norm=BARE,
        ), 14,
    ),
    "tied, no final gain": (
        model(sequential(ROTATED, SMALL, RMS), tied=True, final_norm=replace(RMS, gain=False)), 10
    ),
    "sinks": (model(sequential(replace(ROTATED, sinks=True, **BIASES), SMALL, RMS)), 10),
    "positions": (model(sequential(attention(), SMALL, RMS), positions=3), 15),
    "opt": (
        model(
            sequential(attention(**BIASES), replace(BIASED, activation="relu"), LAYER), tied=True, positions=5,
            unread_positions=2, final_norm=LAYER,
        ), 19 + 2 * 5,
    ),
    "gemma2, narrow": (model(sandwich(Norms(input=RMS, output=RMS)), order=(0,)), 10 - (10 - 5) - (6 - 5)),
    "olmo2, narrow": (model(sandwich(Norms(output=RMS)), order=(0,)), 10 - (10 - 5) - (6 - 5)),
    "olmo2, narrow, two layers": (model(sandwich(Norms(output=RMS))), 0),
    "olmo2, narrow, tied": (model(sandwich(Norms(output=RMS)), order=(0,), tied=True), 0),
}  # fmt: skip


QUICK = ("llama", "tied with bias", "cohere", "opt", "olmo2, narrow")


@pytest.mark.parametrize("name", choose(QUICK, tuple(MODELS)))
def test_whole_models(name: str) -> None:
    spec, residual = MODELS[name]
    proof = prove_model(spec)
    assert proof.standing == "proven" and proof.agrees
    assert redundancy(spec).part("residual") == residual


def test_post_norm_model_without_head() -> None:
    norms = Norms(stream=LAYER)
    block = TransformerBlock(
        attention=attention(**BIASES, causal=False), mlp=BIASED, attention_norms=norms, mlp_norms=norms
    )
    stack = Stack(
        name="encoder", kinds=(block,), order=(0,), final_norm=None, positions=3, token_types=2, embedding_norm=LAYER
    )
    spec = TransformerSpec(family="small", width=5, vocabulary=12, head=None, stacks=(stack,))
    assert prove_model(spec).agrees


def post_norm(own, layers: int, tied: bool, mlp: MLP = BIASED) -> TransformerSpec:
    """A model whose first attention reads the sum of the tables."""
    norms = Norms(stream=LAYER)
    block = TransformerBlock(attention=own, mlp=mlp, attention_norms=norms, mlp_norms=norms)
    return model(block, tied=tied, order=(0,) * layers, positions=3, final_norm=None)


@pytest.mark.parametrize(
    ("spec", "residual"),
    [
        (post_norm(attention(**BIASES), 1, tied=True), 5),
        (post_norm(attention(**BIASES), 1, tied=False), 5 + 5 + 5 + 1),
        (post_norm(attention(), 1, tied=False), 5 + 5 + 1),
        *thorough(
            (post_norm(attention(**BIASES), 2, tied=False), 32),
            (post_norm(attention(**BIASES), 1, tied=False, mlp=SMALL), 16),
            (post_norm(ROTATED, 1, tied=False), 11),
        ),
    ],
)
def test_post_norm_models_that_read_unnormed_tables(spec: TransformerSpec, residual: int) -> None:
    assert prove_model(spec).agrees and redundancy(spec).part("residual") == residual


@pytest.mark.parametrize("name", ["gpt2", *thorough("qwen3-8b")])
def test_published_models_are_proved_small(name: str) -> None:
    """Inside the theorem; a small model of the kind agrees, which proves nothing about the large one."""
    proof = prove_redundancy(published(name))
    assert proof.layers.standing == "theorem" and proof.standing == "estimate"
    assert all(trial.agrees and not trial.is_given for trial in proof.trials)
    assert proof.to_json()["blocks"][0]["standing"] == "proven"


def test_shrinking_keeps_options() -> None:
    small = shrink(published("gemma-2-9b"))
    own = small.stack.block(0).attention
    assert own is not None and own.softcap == 50.0 and own.heads == 2 * own.groups and small.parameters < 1500
    assert small.stack.block(0).attention_norms.output is not None


def test_too_large_problems_are_refused() -> None:
    spec = published("gpt2")
    with pytest.raises(SizeError, match="shrink"):
        prove_block(spec.stack.block(0), spec.width)
    with pytest.raises(SizeError):
        prove_model(spec)


def softened(spec: TransformerSpec) -> TransformerSpec:
    """The same with attention to both sides."""
    block = spec.stack.block(0)
    assert block.attention is not None
    kind = replace(block, attention=replace(block.attention, causal=False))
    return replace(spec, stacks=(replace(spec.stack, name="encoder", kinds=(kind,)),))


def test_scores_that_depend_on_each_other_are_no_proof() -> None:
    """exp s and exp 2s of a score, of a lone one, of an exponential; and a root of a square."""
    assert find_obstacle(model_program(softened(MODELS["positions"][0])), "test", both_orders=False) == ""
    b = Builder()
    tokens = b.parameter("tokens", (5, 2))
    rows = []
    for name in ("first", "second"):
        table = b.numbers([tokens])[0]
        moves = b.subtract(b.move([tokens], table[1:]), b.move([tokens], table[0]))
        rows.append(b.add(b.move([tokens], table[0]), b.contract("v,vd->d", b.input(name, (4,)), moves)))
    score = b.contract("d,d->", *rows)
    once = b.exp(score)
    symmetric = b.build(b.reshape(once, (1,)))
    assert find_obstacle(symmetric, "test", both_orders=False) == ""
    twice = b.build(b.reshape(b.add(once, b.exp(b.scale(score, 2))), (1,)))
    assert "two tokens" in find_obstacle(twice, "test", both_orders=False)
    lone = b.exp(b.contract("d,d->", rows[1], rows[1]))
    doubled = b.exp(b.scale(b.contract("d,d->", rows[1], rows[1]), -3))
    assert "one token" in find_obstacle(b.build(b.reshape(b.add(lone, doubled), (1,))), "test", both_orders=True)
    outer = b.add(b.exp(once), b.exp(b.scale(once, -1)))
    assert "exponentials of exponentials" in find_obstacle(b.build(b.reshape(outer, (1,))), "test", both_orders=False)
    square = b.root(b.multiply(b.contract("d,d->", rows[1], rows[1]), b.contract("d,d->", rows[1], rows[1])))
    assert "signs" in find_obstacle(b.build(b.reshape(square, (1,))), "test", both_orders=True)


def test_joint_roots_of_squares_are_not_used() -> None:
    """√(E²) for an exponential E of a pair: no sign is free, so that no pair is drawn; √(1 + E²) has free ones."""
    for one in (0, 1):
        b = Builder()
        tokens = b.parameter("tokens", (5, 2))
        table, rows = b.numbers([tokens])[0], []
        for name in ("first", "second"):
            moves = b.subtract(b.move([tokens], table[1:]), b.move([tokens], table[0]))
            rows.append(b.add(b.move([tokens], table[0]), b.contract("v,vd->d", b.input(name, (4,)), moves)))
        value = b.exp(b.contract("d,d->", *rows))
        radicand = b.add(b.multiply(value, value), b.constant(np.array(one)))
        point = TokenPoint(b.build(b.reshape(b.root(radicand), (1,))), "test")
        pairs = Pairs(np.array([0, 1, 2]), np.array([1, 2, 3]), np.zeros(3, np.int64), np.arange(3))
        attempts = np.concatenate([point.find_attempts(pairs) for _ in range(2)])
        assert (attempts >= 0).any() == bool(one)


def test_a_count_that_is_wrong_is_never_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """One symmetry too few leaves the bounds apart; one too many contradicts the rank."""
    spec = MODELS["llama tied"][0]
    true = redundancy(spec)

    def wrong(extra: int) -> Redundancy:
        term = replace(true.terms[0], count=true.terms[0].count + extra)
        return replace(true, terms=(term, *true.terms[1:]))

    monkeypatch.setattr(model_proof, "redundancy", lambda _: wrong(-1))
    proof = prove_model(spec)
    assert proof.standing == "undecided" and proof.lower == spec.parameters - true.total < proof.upper
    monkeypatch.setattr(model_proof, "redundancy", lambda _: wrong(1))
    with pytest.raises(AssertionError, match="report"):
        prove_model(spec)


def test_a_small_vocabulary_is_undecided() -> None:
    proof = prove_model(replace(MODELS["llama"][0], vocabulary=5))
    assert proof.standing == "undecided" and proof.lower < proof.upper


def test_the_program_of_a_model_turns_with_its_stream() -> None:
    """In floats: all that writes rotated, all that reads rotated back; and the head alone does not follow."""
    spec = MODELS["llama"][0]
    program = model_program(spec)
    rng = np.random.default_rng(0)
    tensors = {name: rng.normal(size=(1, *shape)) for name, shape in program.parameters.items()}
    inputs = {name: rng.normal(size=(3, *shape)) for name, shape in program.inputs.items()}

    def logits(weights: dict[str, np.ndarray]) -> np.ndarray:
        return value(program, run(program, Point(RealArithmetic(), weights | inputs)))

    turn = np.linalg.qr(rng.normal(size=(spec.width, spec.width)))[0]
    moved = {}
    for name, tensor in tensors.items():
        writes = name == "tokens" or name.endswith((".output", ".down"))
        axis = tensor.ndim - 1 if name == "tokens" or not writes else tensor.ndim - 2
        moved[name] = np.moveaxis(np.tensordot(tensor, turn, (axis, 0)), -1, axis)
    assert np.allclose(logits(moved), logits(tensors)) and not np.allclose(
        logits(tensors | {"head": moved["head"]}), logits(tensors)
    )
