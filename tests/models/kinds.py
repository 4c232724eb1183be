"""Kinds of blocks at small width: 64 named ones, and random ones over all options that a block can have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from attngeom.models.specification import (
    MLP,
    Activation,
    Experts,
    GroupedAttention,
    Latent,
    Norm,
    Norms,
    QKNorm,
    Rotary,
    TransformerBlock,
)

RMS = Norm(kind="rms", eps=1e-6)
LAYER = Norm(kind="layer", eps=1e-5, bias=True)
BARE = Norm(kind="layer", eps=1e-5)
GATED = MLP(width=4, activation="silu", gated=True)
PLAIN = MLP(width=4, activation="gelu", gated=False, up_bias=True, down_bias=True)
EXPERT = MLP(width=2, activation="silu", gated=True)
BIASES: Any = {"query_bias": True, "key_bias": True, "value_bias": True, "output_bias": True}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A block, its width, and the number of buckets of a relative position table."""

    name: str
    block: TransformerBlock
    width: int = 6
    buckets: int = 0


def rotary(dims: int, frequencies: tuple[float, ...] = ()) -> Rotary:
    """Different frequencies unless they are given."""
    usual = tuple(2.0**-pair for pair in range(dims // 2))
    return Rotary(layout="half", dims=dims, frequencies=frequencies or usual)


def attention(**options: object) -> GroupedAttention:
    """Two heads of two groups with two coordinates, changed by the options."""
    base = {"heads": 2, "groups": 2, "head_dim": 2, "value_dim": 2, "scale": 0.5, "causal": True}
    return GroupedAttention(**(base | options))  # type: ignore[arg-type]


def sequential(
    own: GroupedAttention | None, mlp: MLP | Experts | None, norm: Norm | None, **options: object
) -> TransformerBlock:
    """A pre-norm block; without attention or MLP their norm is dropped."""
    norms = {
        "attention_norms": Norms(input=norm if own is not None else None),
        "mlp_norms": Norms(input=norm if mlp is not None else None),
    }
    return TransformerBlock(**({"attention": own, "mlp": mlp} | norms | options))  # type: ignore[arg-type]


ROTATED = attention(head_dim=4, rotary=rotary(4))
GROUPED = replace(ROTATED, heads=4)
MLA = attention(
    head_dim=4,
    rotary=rotary(2),
    latent=Latent(query_rank=4, key_rank=3, query_norm=RMS, key_norm=RMS),
)


def _experts(router: str, **options: object) -> Experts:
    base = {"expert": EXPERT, "count": 3, "active": 2, "router": router}
    return Experts(**(base | options))  # type: ignore[arg-type]


def named_kinds() -> Iterator[Kind]:
    """The kinds of the families, and each option of attention, norm and MLP on its own."""
    yield from _family_kinds()
    yield from _attention_kinds()
    yield from _block_kinds()
    yield from _mlp_kinds()


def _family_kinds() -> Iterator[Kind]:
    post, both = Norms(stream=LAYER), Norms(input=RMS, output=RMS)
    biased = attention(**BIASES)
    silent = replace(biased, key_bias=False)
    qk, olmo = QKNorm(scope="per_head", norm=RMS), QKNorm(scope="all_heads", norm=RMS)
    direct = Latent(query_rank=None, key_rank=3, query_norm=None, key_norm=RMS)
    limited = MLP(width=2, activation="swiglu_oai", gated=True, up_bias=True, down_bias=True, limit=7.0)
    rotated = {"head_dim": 4, "rotary": rotary(4)}
    blocks = {
        "gpt2": sequential(biased, replace(PLAIN, activation="gelu_tanh"), LAYER),
        "bert": TransformerBlock(attention=biased, mlp=PLAIN, attention_norms=post, mlp_norms=post),
        "opt": sequential(biased, replace(PLAIN, activation="relu"), LAYER),
        "gpt_neox": sequential(attention(**BIASES, head_dim=4, rotary=rotary(2)), PLAIN, LAYER, parallel=True),
        "gptj": sequential(
            ROTATED, PLAIN, LAYER, parallel=True, shared_norm=True, mlp_norms=Norms()
        ),
        "falcon": sequential(
            attention(groups=1, **rotated), replace(PLAIN, up_bias=False, down_bias=False), LAYER,
            parallel=True, shared_norm=True, mlp_norms=Norms(),
        ),
        "bloom": sequential(replace(biased, alibi=True), PLAIN, LAYER),
        "llama": sequential(GROUPED, GATED, RMS),
        "qwen2": sequential(replace(GROUPED, query_bias=True, key_bias=True, value_bias=True), GATED, RMS),
        "qwen3": sequential(replace(GROUPED, qk_norm=qk), GATED, RMS),
        "gemma2": TransformerBlock(
            attention=replace(GROUPED, softcap=50.0), mlp=replace(GATED, activation="gelu_tanh"),
            attention_norms=both, mlp_norms=both,
        ),
        "cohere": sequential(GROUPED, GATED, BARE, parallel=True, shared_norm=True, mlp_norms=Norms()),
        "gpt_oss": sequential(
            replace(GROUPED, **BIASES, sinks=True),
            _experts("softmax", expert=limited, router_bias=True), RMS,
        ),
        "deepseek_v2": sequential(replace(MLA, latent=direct), GATED, RMS),
        "deepseek_v3": sequential(MLA, _experts("sigmoid", shared=EXPERT, factor=2.5), RMS),
        "whisper decoder": sequential(
            silent, PLAIN, LAYER, cross=replace(silent, causal=False), cross_norms=Norms(input=LAYER)
        ),
        "t5 decoder": sequential(
            attention(), replace(PLAIN, activation="relu", up_bias=False, down_bias=False), RMS,
            cross=attention(causal=False), cross_norms=Norms(input=RMS),
        ),
    }  # fmt: skip
    for name, block in blocks.items():
        yield Kind(name=name, block=block, buckets=4 if name == "t5 decoder" else 0)
    after = Norms(output=RMS)
    block = TransformerBlock(
        attention=replace(ROTATED, qk_norm=olmo), mlp=GATED, attention_norms=after, mlp_norms=after
    )
    yield Kind(name="olmo2", block=block, width=10)
    centred = attention(heads=2, groups=1, head_dim=6, rotary=rotary(6), qk_norm=QKNorm(scope="each_head", norm=BARE))
    block = sequential(centred, GATED, BARE, parallel=True, shared_norm=True, mlp_norms=Norms())
    yield Kind(name="cohere with qk-norm", block=block, width=8)


def _attention_kinds() -> Iterator[Kind]:
    layouts = {
        "plain": attention(),
        "plain grouped": attention(heads=4),
        "one key head": attention(heads=3, groups=1),
        "rotary": ROTATED,
        "rotary grouped": GROUPED,
        "partly rotary": attention(head_dim=4, rotary=rotary(2)),
        "equal frequencies": attention(head_dim=4, rotary=rotary(4, (0.5, 0.5))),
        "a zero frequency": attention(head_dim=4, rotary=rotary(4, (0.5, 0.0))),
        "wide heads": attention(heads=1, groups=1, head_dim=7, value_dim=8),
    }
    for (name, own), (norm_name, norm) in product(layouts.items(), (("rms", RMS), ("layer", LAYER))):
        yield Kind(name=f"{name}, {norm_name}", block=sequential(replace(own, **BIASES), None, norm))
    bare = QKNorm(scope="per_head", norm=replace(RMS, gain=False))
    exact = QKNorm(scope="per_head", norm=replace(RMS, eps=0.0))
    options = {
        "no biases, layer": attention(),
        "softcap, plain": attention(**BIASES, softcap=30.0),
        "sinks, plain": attention(**BIASES, sinks=True),
        "sinks, no output bias": attention(value_bias=True, sinks=True),
        "value bias alone": attention(value_bias=True),
        "many value biases": attention(value_bias=True, value_dim=4),
        "output bias alone": attention(output_bias=True),
        "key bias alone": attention(key_bias=True),
        "qk-norm, plain": attention(head_dim=3, qk_norm=QKNorm(scope="per_head", norm=RMS)),
        "qk-norm, partly rotary": attention(
            head_dim=4, rotary=rotary(2), qk_norm=QKNorm(scope="per_head", norm=RMS), key_bias=True
        ),
        "qk-norm without gains": attention(head_dim=4, rotary=rotary(2), qk_norm=bare),
        "qk-norm, gains of every head": attention(
            heads=2, groups=1, head_dim=3, qk_norm=QKNorm(scope="each_head", norm=RMS)
        ),
        "qk-norm, eps 0": attention(head_dim=4, rotary=rotary(4), qk_norm=exact),
    }
    for name, own in options.items():
        yield Kind(name=name, block=sequential(own, None, LAYER if "layer" in name or "value" in name else RMS))
    yield Kind(name="relative table", block=sequential(attention(), None, RMS), buckets=5)
    yield Kind(name="no norm", block=sequential(attention(**BIASES), None, None))


def _block_kinds() -> Iterator[Kind]:
    exact = replace(RMS, eps=0.0)
    biased = attention(**BIASES)
    both = Norms(input=RMS, output=exact)
    post = Norms(stream=replace(LAYER, eps=0.0))
    yield Kind(name="parallel, two norms", block=sequential(biased, PLAIN, RMS, parallel=True))
    yield Kind(
        name="parallel, one bias", block=sequential(replace(biased, output_bias=False), PLAIN, RMS, parallel=True)
    )
    yield Kind(name="values fill the width", block=sequential(attention(value_bias=True, value_dim=3), PLAIN, LAYER))
    yield Kind(
        name="output norm, eps 0",
        block=TransformerBlock(attention=ROTATED, mlp=GATED, attention_norms=both, mlp_norms=both),
    )
    yield Kind(
        name="post-norm, eps 0",
        block=TransformerBlock(attention=biased, mlp=PLAIN, attention_norms=post, mlp_norms=post),
    )
    yield Kind(
        name="post-norm without biases",
        block=TransformerBlock(
            attention=attention(), mlp=GATED, attention_norms=Norms(stream=LAYER), mlp_norms=Norms(stream=LAYER)
        ),
    )
    yield Kind(name="latents, eps 0", block=sequential(
        replace(MLA, latent=Latent(query_rank=4, key_rank=3, query_norm=exact, key_norm=exact)), None, RMS
    ))  # fmt: skip
    biased = Latent(query_rank=4, key_rank=3, query_norm=RMS, key_norm=RMS, bias=True)
    yield Kind(name="latents with biases", block=sequential(replace(MLA, latent=biased, output_bias=True), GATED, RMS))
    yield Kind(name="key latent with biases, eps 0", block=sequential(
        replace(MLA, latent=Latent(query_rank=None, key_rank=3, query_norm=None, key_norm=exact, bias=True)), None, RMS
    ))  # fmt: skip
    yield Kind(name="latents without norm", block=sequential(
        replace(MLA, latent=Latent(query_rank=4, key_rank=3, query_norm=None, key_norm=None)), None, RMS
    ))  # fmt: skip


def _mlp_kinds() -> Iterator[Kind]:
    names: tuple[Activation, ...] = ("gelu", "quick_gelu", "tanh", "sigmoid", "relu", "relu2")
    for name in names:
        yield Kind(name=f"mlp, {name}", block=sequential(None, replace(PLAIN, activation=name), LAYER))
    yield Kind(name="mlp, gated relu", block=sequential(None, replace(GATED, activation="relu"), RMS))
    yield Kind(
        name="mlp, gated with biases",
        block=sequential(None, replace(GATED, activation="gelu", up_bias=True, down_bias=True), LAYER),
    )
    yield Kind(name="experts, softmax", block=sequential(None, _experts("softmax"), LAYER))
