"""Redundant dimensions of attention and of MLPs: parameters minus visible ones, part by part, with the group that acts.

Each count is a theorem for generic weights: the group acts with orbits of this dimension (upper bound of the
dimension), and lemmas L1 to L6 of docs/theorems/models.md say that nothing else is lost.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal, get_args

from attngeom.models.counts.streams import Stream, product
from attngeom.models.specification import MLP, Experts, GroupedAttention, Latent, Norm, Rotary

PartName = Literal["query_key", "value_output", "key_bias", "value_bias", "norm", "hidden_units", "latents", "residual"]
PART_NAMES: tuple[PartName, ...] = get_args(PartName)


@dataclass(frozen=True, kw_only=True)
class RedundantPart:
    """``count`` redundant dimensions of one part, the group whose orbits they are, and the lemma that says so."""

    part: PartName
    count: int
    group: str
    lemma: str


def frequencies(rotary: Rotary | None) -> tuple[int, Counter[float]]:
    """The number of coordinates that are rotated by frequency 0, and the multiplicities of the other frequencies."""
    counts = Counter(() if rotary is None else rotary.frequencies)
    still = 2 * counts.pop(0.0, 0)
    return still, counts


def attention_terms(attention: GroupedAttention, queries: Stream, source: Stream, written: int) -> list[RedundantPart]:
    """Redundancy of attention, constants of values and outputs excepted (they belong to the block).

    ``queries`` and ``source`` are the streams that queries and that keys and values read; of every output vector
    ``written`` dimensions are seen (d, or d − 1 if a LayerNorm of the sum follows).
    """
    if attention.latent is not None:
        return _latent_terms(attention, attention.latent, queries, written)
    heads, groups, a, v = attention.heads, attention.groups, attention.head_dim, attention.value_dim
    n = heads // groups
    still, _ = frequencies(attention.rotary)
    plain = attention.unrotated + still
    shown = attention.shows_key_constants
    rows = queries.rows(heads * a, attention.query_bias, True)
    rows += source.rows(groups * (a - plain), attention.key_bias, True)
    rows += source.rows(groups * plain, attention.key_bias, shown)
    rows += source.rows(groups * v, attention.value_bias, not attention.shares_sum_to_one)
    width = queries.width
    shows_constants = not attention.shares_sum_to_one and source.has_constant(attention.value_bias)
    value_seen = source.seen + shows_constants
    value_output = groups * (v * (n * written + value_seen) - product(v, n * written, value_seen))
    return [
        *_score_terms(attention, queries, source),
        RedundantPart(part="value_output", count=value_output, group=f"GL({v})^{groups}", lemma="L1, L2"),
        RedundantPart(
            part="key_bias",
            count=groups * plain * (attention.key_bias and not shown),
            group=f"R^{groups * plain}, key constants of unrotated dimensions",
            lemma="L1: softmax ignores what does not depend on the key",
        ),
        RedundantPart(part="norm", count=rows, group="mean direction of the rows of q, k, v", lemma="L4"),
        RedundantPart(
            part="norm",
            count=heads * v * (width - written),
            group="columns of the output matrix along 1",
            lemma="L4: the next norm removes the mean",
        ),
    ]


def _score_terms(attention: GroupedAttention, queries: Stream, source: Stream) -> list[RedundantPart]:
    """Redundancy of queries and keys: pairs of rotated coordinates, unrotated coordinates, gains of QK-norms."""
    heads, groups = attention.heads, attention.groups
    n = heads // groups
    key_constant = source.has_constant(attention.key_bias)
    if attention.head_norm is not None:
        rows = (queries.seen + queries.has_constant(attention.query_bias), source.seen + key_constant)
        return _normalised_terms(attention, attention.head_norm, rows)
    still, turning = frequencies(attention.rotary)
    plain = attention.unrotated + still
    wide = n * (queries.seen + queries.has_constant(attention.query_bias))
    tall = source.seen + (attention.shows_scores and key_constant)
    terms = []
    if plain:
        count = groups * (plain * (tall + wide) - product(plain, tall, wide))
        terms.append(RedundantPart(part="query_key", count=count, group=f"GL({plain})^{groups}", lemma="L1, L2"))
        constants = key_constant and queries.has_constant(attention.query_bias)
        if constants and attention.trades_with_sinks and plain >= min(tall, wide):
            # The product of the two constants is then free and adds to the sink of the head.
            terms.append(
                RedundantPart(
                    part="query_key", count=heads, group=f"R^{heads} from scores into the denominator", lemma="L1"
                )
            )
    tall = source.seen + key_constant
    for size, number in sorted(Counter(turning.values()).items()):
        count = groups * number * 2 * (size * (tall + wide) - product(size, tall, wide))
        group = f"(C*)^{groups * number}" if size == 1 else f"GL({size},C)^{groups * number}"
        terms.append(RedundantPart(part="query_key", count=count, group=group, lemma="L1, L3"))
    return terms


def _normalised_terms(attention: GroupedAttention, norm: Norm, columns: tuple[int, int]) -> list[RedundantPart]:
    """QK-norms: with gains one scale per pair and per unrotated coordinate; without, rotations; scales if eps = 0.

    ``columns`` are those that queries and keys see.
    """
    still, turning = frequencies(attention.rotary)
    plain, pairs = attention.unrotated + still, sum(turning.values())
    if norm.gain:
        owners = 1 if attention.shares_gains else attention.groups
        count, group = owners * (pairs + plain), f"(R*)^{owners * (pairs + plain)} between the two gains"
    else:
        filled = min(plain, attention.heads // attention.groups * columns[0] + columns[1])
        count = attention.groups * (pairs * (max(columns) > 0) + rotations(plain) - rotations(plain - filled))
        group = f"(U(1)^{pairs} x O({plain}))^{attention.groups}"
    terms = [RedundantPart(part="query_key", count=count, group=group, lemma="L1, L5")]
    if attention.is_centred:
        means = attention.heads * columns[0] + attention.groups * columns[1]
        text = "means of the rows of every head of q, k"
        terms.append(RedundantPart(part="query_key", count=means, group=text, lemma="L4, inside heads"))
    if norm.eps == 0:
        scales = 2 if attention.is_joint else attention.heads + attention.groups
        terms.append(
            RedundantPart(part="query_key", count=scales, group=f"(R+)^{scales} scales of q and k", lemma="L5, eps = 0")
        )
    return terms


def _latent_terms(attention: GroupedAttention, latent: Latent, queries: Stream, written: int) -> list[RedundantPart]:
    """Multi-head latent attention: O(r) and gain per latent, GL per head, C* of the rotated key for all heads."""
    heads, v, plain, turned = attention.heads, attention.value_dim, attention.unrotated, attention.rotated
    rank = latent.key_rank
    wide = queries.seen + queries.constant if latent.query_rank is None else latent.query_rank
    scores = plain * (rank + wide) - product(plain, rank, wide)
    values = v * (rank + written) - product(v, rank, written)
    terms = [
        _latent_term(rank, norm, queries.seen + queries.has_constant(latent.bias))
        for rank, norm in ((latent.query_rank, latent.query_norm), (latent.key_rank, latent.key_norm))
        if rank is not None
    ]
    return [
        *terms,
        RedundantPart(part="query_key", count=heads * scores, group=f"GL({plain})^{heads}", lemma="L1, L2"),
        RedundantPart(part="query_key", count=turned, group=f"(C*)^{turned // 2} shared by all heads", lemma="L1, L3"),
        RedundantPart(part="value_output", count=heads * values, group=f"GL({v})^{heads}", lemma="L1, L2"),
    ]


def _latent_term(rank: int, norm: Norm | None, columns: int) -> RedundantPart:
    """A latent that reads so many columns: what fixes their span moves no entry."""
    filled = min(rank, columns)
    if norm is None:
        count = rank * filled if filled == rank else 0
        return RedundantPart(part="latents", count=count, group=f"GL({rank})", lemma="L2")
    if norm.kind == "layer":
        return RedundantPart(part="latents", count=norm.gain * rank, group=f"(R*)^{rank}", lemma="L4")
    scales = norm.gain * rank + (norm.eps == 0)
    count = rotations(rank) - rotations(rank - filled) + scales
    return RedundantPart(part="latents", count=count, group=f"O({rank}) x (R*)^{scales}", lemma="L5, L4")


def rotations(size: int) -> int:
    """Dimension of O(size)."""
    return size * (size - 1) // 2


def mlp_terms(mlp: MLP | Experts, u: Stream, written: int) -> list[RedundantPart]:
    """Redundancy of hidden units, of the rows that read u and of the columns that are written; biases excepted."""
    if isinstance(mlp, Experts):
        terms = [_repeated(term, mlp.count) for term in mlp_terms(mlp.expert, u, written)]
        if mlp.shared is not None:
            terms += mlp_terms(mlp.shared, u, written)
        # One vector of the biases is a constant of the sublayer and counted there.
        biases = mlp.expert.down_bias * (mlp.count - mlp.sums_to_constant) * (u.width - written)
        terms.append(RedundantPart(part="norm", count=biases, group="biases of the experts along 1", lemma="L4"))
        return terms + _router_terms(mlp, u)
    width = mlp.width
    scales = unit_scales(mlp, u.has_constant(mlp.up_bias))
    reading = u.rows((2 if mlp.gated else 1) * width, mlp.up_bias, True)
    written_rows = width * (u.width - written)
    return [
        RedundantPart(
            part="hidden_units", count=scales * width, group=f"(R*)^{scales * width} scales of units", lemma="L6"
        ),
        RedundantPart(part="norm", count=reading, group="mean direction of the rows of the MLP", lemma="L4"),
        RedundantPart(part="norm", count=written_rows, group="columns of the down matrix along 1", lemma="L4"),
    ]


def unit_scales(mlp: MLP, constant: bool) -> int:
    """Scales per hidden unit: (up, down) of gated units, (in, out) of ReLU; a clamp fixes all of them.

    ``constant``: rows of the MLP add a constant (an own bias, or that of a LayerNorm).
    """
    if mlp.limit is not None:
        return 0
    if mlp.activation == "swiglu_oai":
        # up + 1 is what is multiplied: its scale needs a constant that absorbs the 1.
        return int(constant)
    return int(mlp.gated) + int(mlp.activation == "relu")


def _router_terms(experts: Experts, u: Stream) -> list[RedundantPart]:
    common = (u.seen + u.has_constant(experts.router_bias)) * (experts.router == "softmax")
    return [
        RedundantPart(
            part="norm", count=u.rows(experts.count, experts.router_bias, True), group="router rows", lemma="L4"
        ),
        RedundantPart(
            part="hidden_units", count=common, group=f"R^{common} added to all rows of the router", lemma="softmax"
        ),
    ]


def _repeated(term: RedundantPart, times: int) -> RedundantPart:
    group = f"[{term.group}]^{times}"
    return RedundantPart(part=term.part, count=times * term.count, group=group, lemma=term.lemma)
