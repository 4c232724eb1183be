"""Theorem 1': the counterexamples to what is weaker, counts and true numbers; published models; random kinds."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from attngeom.errors import AttnGeomError, InputError
from attngeom.models import specify
from attngeom.models.counts.hypotheses import violations
from attngeom.models.counts.redundancy import block_redundancy, redundancy
from attngeom.models.presets import PUBLISHED, published
from attngeom.models.programs.attention import classes
from attngeom.models.proofs import block_proof, prove_block
from attngeom.models.specification import MLP, Experts, Latent, Norm, Norms, QKNorm, TransformerBlock
from tests.effort import repeat
from tests.models.cases import DATA
from tests.models.kinds import attention, rotary, sequential
from tests.models.random_kinds import KindSampler
from tests.models.true_function import Sample, float_redundancy, rank_of

RMS = Norm(kind="rms", eps=0.25)
EXACT = Norm(kind="rms", eps=0.0)
PI = math.pi
UNITS = MLP(width=3, activation="gelu", gated=False, up_bias=True, down_bias=True)
GATED = MLP(width=3, activation="gelu", gated=True, down_bias=True)
ONE = {"heads": 1, "groups": 1}
CONSTANTS = {"query_bias": True, "key_bias": True}


def rotating(*frequencies: float, **options: object) -> TransformerBlock:
    own = attention(head_dim=2 * len(frequencies), rotary=rotary(2 * len(frequencies), frequencies), **options)
    return sequential(own, None, RMS)


def qk(scope: str, norm: Norm, **options: object) -> TransformerBlock:
    return sequential(attention(qk_norm=QKNorm(scope=scope, norm=norm), **options), None, RMS)


def experts() -> TransformerBlock:
    unit = MLP(width=1, activation="silu", gated=True)
    groups = {"expert_groups": 2, "active_groups": 1}
    return sequential(None, Experts(expert=unit, count=4, active=2, router="softmax", **groups), RMS)


RANK_ONE = Latent(query_rank=None, key_rank=1, query_norm=None, key_norm=EXACT)
ONE_HEAD = attention(**ONE, output_bias=True)
NARROW = attention(heads=3, groups=1, head_dim=1, value_dim=2, window=2)
PRE = Norm(kind="layer", eps=0.5)

# block, width, count, true number of redundant weights
CASES = {
    "window 1": (rotating(1.0, 0.5, window=1), 4, 20, 84),
    "window 2": (rotating(1.0, 0.5, window=2), 4, 20, 24),
    "frequencies 1 and 2 pi - 1": (rotating(1.0, 2 * PI - 1), 4, 20, 28),
    "frequencies 1 and 2 pi + 1": (rotating(1.0, 2 * PI + 1), 4, 20, 28),
    "frequency pi": (rotating(PI), 4, 16, 20),
    "LayerNorm of two dimensions, eps 0": (sequential(None, UNITS, Norm(kind="layer", eps=0.0, bias=True)), 2, 7, 17),
    "QK-norm of one coordinate, eps 0": (qk("per_head", EXACT, head_dim=1), 4, 17, 29),
    "latent of rank 1, eps 0": (
        sequential(attention(heads=2, groups=2, head_dim=1, value_dim=1, latent=RANK_ONE), None, RMS), 6, 12, 17,
    ),
    "QK-norm of more rows than columns": (qk("each_head", RMS, head_dim=4, **CONSTANTS), 3, 19, 23),
    "the same, one head": (qk("each_head", RMS, head_dim=4, **ONE, **CONSTANTS), 3, 11, 13),
    "cross-attention without norms": (
        TransformerBlock(
            attention=attention(output_bias=True), mlp=None,
            cross=attention(**ONE, query_bias=True, value_bias=True, causal=False),
        ), 6, 24, 26,
    ),
    "cross-attention without norms, then an MLP": (
        TransformerBlock(
            attention=ONE_HEAD, mlp=GATED, cross=attention(**ONE, head_dim=5, causal=False, **CONSTANTS),
            mlp_norms=Norms(input=PRE),
        ), 4, 55, 56,
    ),
    "unrotated, window 1": (sequential(attention(**ONE, window=1), None, RMS), 4, 12, 24),
    "unrotated, window 1, a sink": (sequential(attention(**ONE, window=1, sinks=True), None, RMS), 4, 12, 14),
    "output norm, two tokens": (
        TransformerBlock(attention=NARROW, mlp=None, attention_norms=Norms(input=RMS, output=RMS)), 21, 26, 27,
    ),
    "one group of experts": (experts(), 3, 10, 13),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_counterexamples(name: str) -> None:
    """No theorem and no proof of the count; the true number is the float rank of the true function."""
    block, width, count, truth = CASES[name]
    found = block_redundancy(block, width)
    assert found.total == count and float_redundancy(block, width) == truth
    assert violations(block, width) and found.standing == "estimate" and "at least" in found.reason
    try:
        proof = prove_block(block, width)
        assert proof.redundancy in (None, truth) and proof.parameters - proof.upper <= truth
    except InputError as error:
        assert "frequency" in str(error) or "shows a sign" in str(error)


@pytest.mark.parametrize(("window", "redundant"), [(2, 11), (None, None)])
def test_longer_contexts_behind_an_output_norm_of_three_heads(
    window: int | None, redundant: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More symmetries than the count knows count where all tokens were listed: Lemma 7 says nothing of further ones."""
    monkeypatch.setattr(block_proof, "_formula", lambda *sizes: 10)
    block = TransformerBlock(
        attention=replace(NARROW, window=window), mlp=None, attention_norms=Norms(input=RMS, output=RMS)
    )
    proof = prove_block(block, 6)
    assert proof.redundancy == redundant and ("three tokens" in proof.reason) == (window is None)


def test_three_tokens_show_what_two_do_not() -> None:
    block = TransformerBlock(
        attention=replace(NARROW, window=3), mlp=None, attention_norms=Norms(input=RMS, output=RMS)
    )
    assert block_redundancy(block, 21).standing == "theorem" and float_redundancy(block, 21, (0,)) == 26


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (sequential(None, MLP(width=3, activation="swiglu_oai", gated=False, up_bias=True), RMS), "without a gate"),
        (sequential(None, MLP(width=3, activation="relu", gated=False, limit=1.0), RMS), "without a gate"),
        (TransformerBlock(attention=attention(), mlp=None, mlp_norms=Norms(input=RMS)), "absent"),
        (TransformerBlock(attention=attention(), mlp=None, cross_norms=Norms(input=RMS)), "absent"),
        (sequential(attention(), None, Norm(kind="layer", eps=0.0)), "divides 0 by 0"),
    ],
)
def test_what_no_model_computes_is_refused(block: TransformerBlock, text: str) -> None:
    width = 1 if "divides" in text else 4
    assert any(text in line for line in violations(block, width))
    for ask in (block_redundancy, prove_block):
        with pytest.raises(InputError, match=text):
            ask(block, width)


def test_width_one() -> None:
    block = sequential(attention(**ONE, head_dim=1, value_dim=1, output_bias=True), UNITS, RMS)
    proof, found = prove_block(block, 1), block_redundancy(block, 1)
    assert found.standing == "estimate" and found.total <= float_redundancy(block, 1)
    assert proof.redundancy in (None, float_redundancy(block, 1))


@pytest.mark.parametrize("seed", [7000 + k for k in repeat(120)])
def test_random_kinds_in_floats(seed: int) -> None:
    """A theorem is the float rank of the true function, any other count at most; a proof is it as well."""
    kind = KindSampler(seed).kind()
    size = kind.block.parameters(kind.width, kind.width)
    if size > 190:
        return
    try:
        found = block_redundancy(kind.block, kind.width)
    except InputError:
        return
    ranks = [rank_of(Sample(kind.block, kind.width, point).derivative()) for point in range(2)]
    best = max(ranks, key=lambda one: (one.rank, -one.gap))
    if best.gap > 1e-3:
        return
    assert size - best.rank >= found.total
    if found.standing == "theorem" and size - best.rank > found.total:
        more = [rank_of(Sample(kind.block, kind.width, point).derivative()).rank for point in range(2, 10)]
        assert size - max(more) == found.total
    try:
        proof = prove_block(kind.block, kind.width, seed=seed)
    except AttnGeomError:
        return
    assert proof.lower <= proof.upper <= size - found.total
    assert found.standing != "theorem" or proof.agrees


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models_are_inside(name: str) -> None:
    found = redundancy(published(name))
    assert found.layers.standing == "theorem" and found.standing == "estimate"


INSIDE = ["bloom", "cohere", "falcon", "gpt2", "gpt_neox", "gptj", "llama", "opt", "phi3", "qwen2", "qwen3", "vit"]


@pytest.mark.parametrize("family", INSIDE)
def test_families_inside(family: str) -> None:
    spec = specify(json.loads((DATA / family / "config.json").read_text()))
    assert redundancy(spec).layers.standing == "theorem"


@pytest.mark.parametrize(("family", "text"), [("bert", "norm of the sum"), ("gpt_oss", "a window of 5 tokens")])
def test_families_outside(family: str, text: str) -> None:
    found = redundancy(specify(json.loads((Path(DATA) / family / "config.json").read_text())))
    assert found.layers.standing == "estimate" and text in found.layers.reason


def test_base_10000_has_sixteen_classes() -> None:
    """64 pairs: the frequency of pair j + 16 is a tenth of that of pair j."""
    found = classes(10000.0 ** (-pair / 64) for pair in range(64))
    assert len(found) == 16 and all(sorted(members.values()) == [1, 10, 100, 1000] for members in found)
