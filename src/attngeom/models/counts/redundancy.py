"""How many weights of a transformer its function does not show: parameters minus dimension, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from attngeom.models.counts.blocks import block_terms
from attngeom.models.counts.hypotheses import needed_tokens, violations
from attngeom.models.counts.residual import last_norm, residual_terms, source_norm
from attngeom.models.specification import Stack, TransformerBlock, TransformerSpec
from attngeom.models.surroundings import stream
from attngeom.models.symmetry.factor import PART_NAMES, PartName, RedundantPart
from attngeom.results import Proof, Result

HYPOTHESES = (
    "weights generic, and where the rank depends on the region (relu, limit, experts) those of largest rank",
    "layer scope: every layer receives arbitrary residual vectors, in contexts longer than its rotated coordinates",
    "heads with different scores, hidden units with different rows, no zero gains, every expert chosen somewhere",
    "whole model: token vectors generic and spanning the stream, front ends fixed",
)
WHOLE = "at least this many for the whole model, as the groups act; that no more are is not proved"


@dataclass(frozen=True, kw_only=True, eq=False)
class Redundancy(Result):
    """parameters − dimension of the set of functions, as a sum of terms; ``layer_scope`` leaves the residual part out.

    At least ``total`` dimensions are redundant always: the groups act. ``layers`` says whether ``layer_scope`` is the
    exact number for layers of arbitrary inputs: "theorem" if Theorem 1' covers every block, else "estimate" with the
    hypotheses that are not met. ``standing`` is that of ``total``: for one block the same, for a whole model
    "estimate", as no theorem says that nothing else is lost. `proofs.prove_redundancy` proves small ones by rank.
    ``distribution`` further dimensions are lost if only the softmax of the logits is seen.
    """

    parameters: int
    terms: tuple[RedundantPart, ...]
    distribution: int
    layers: Proof
    hypotheses: tuple[str, ...] = HYPOTHESES

    def part(self, name: PartName) -> int:
        """Redundant dimensions of one part."""
        return sum(term.count for term in self.terms if term.part == name)

    @property
    def total(self) -> int:
        return sum(term.count for term in self.terms)

    @property
    def layer_scope(self) -> int:
        return self.total - self.part("residual")

    @property
    def dimension(self) -> int:
        """Dimension of the set of functions of the whole model."""
        return self.parameters - self.total

    @property
    def attention(self) -> int:
        """Redundant dimensions of queries, keys, values, outputs and latents."""
        names: tuple[PartName, ...] = ("query_key", "value_output", "key_bias", "value_bias", "latents")
        return sum(self.part(name) for name in names)

    @property
    def group(self) -> list[str]:
        """The groups of the terms with their parts and lemmas."""
        return [f"{term.part}: {term.group} [{term.count}; {term.lemma}]" for term in self.terms]

    def to_json(self) -> dict[str, Any]:
        parts: dict[str, Any] = {name: self.part(name) for name in PART_NAMES}
        return {**parts, **self.select("total", "layer_scope", "standing", "reason")}

    def rows(self) -> Mapping[str, Any]:
        parts: dict[str, str] = {name: f"{self.part(name):,}" for name in PART_NAMES if self.part(name)}
        layers = f"{self.layer_scope:,} ({self.layers.standing})"
        return {**parts, "layers": layers, "total": f"{self.total:,}", "parameters": f"{self.parameters:,}"}

    @property
    def recheck(self) -> str:
        return "attngeom model inspect FOLDER --prove"

    def __str__(self) -> str:
        lines = [f"{name:<14}{self.part(name):>16,}" for name in PART_NAMES if self.part(name)]
        proofs = (("layer scope", self.layer_scope, self.layers), ("total", self.total, self))
        for name, count, proof in proofs:
            lines.append(f"{name:<14}{count:>16,}  {proof.standing}: {proof.reason}")
        share = 100 * self.total / self.parameters if self.parameters else 0.0
        return "\n".join([*lines, f"{'parameters':<14}{self.parameters:>16,}  ({share:.3g} % redundant)"])


def redundancy(spec: TransformerSpec) -> Redundancy:
    """parameters − dimension of the functions of a transformer, for generic weights (docs/theorems/models.md).

    A kind of block for which no count is known is refused with InputError.

    >>> from attngeom.models.presets import published
    >>> redundancy(published("gpt2")).total
    1346584
    """
    source = source_norm(spec)
    kinds = [
        (block_terms(block, spec.width, source=source), stack.order.count(kind))
        for stack in spec.stacks
        for kind, block in enumerate(stack.kinds)
    ]
    tables = [term for stack in spec.stacks for term in _table_terms(stack)]
    terms = [*_of_layers(kinds), *tables, *_final_terms(spec), *residual_terms(spec)]
    parts = [
        _block_proof((*violations(block, spec.width, source=source), *_stack_violations(stack, block)))
        for stack in spec.stacks
        for block in stack.kinds
    ]
    layers = Proof.from_parts(_together(parts), *parts) if parts else Proof("theorem", "there are no layers")
    return Redundancy(
        parameters=spec.parameters,
        terms=_merged(terms),
        distribution=_distribution(spec),
        layers=layers,
        standing="estimate",
        reason=WHOLE,
    )


def block_redundancy(block: TransformerBlock, width: int) -> Redundancy:
    """The same for one block that receives arbitrary residual vectors (cross-attention: two arbitrary streams).

    >>> from attngeom.models.presets import published
    >>> own = block_redundancy(published("gpt2").stack.block(0), 768)
    >>> own.total, own.standing
    (108289, 'theorem')
    """
    terms = _merged(block_terms(block, width))
    size = block.parameters(width, width)
    proof = _block_proof(violations(block, width))
    return Redundancy(
        parameters=size, terms=terms, distribution=0, layers=proof, standing=proof.standing, reason=proof.reason
    )


def _block_proof(unmet: tuple[str, ...]) -> Proof:
    """Theorem 1', or at least the count, with what a block does not meet."""
    if unmet:
        return Proof("estimate", f"at least this many: {'; '.join(unmet)}")
    return Proof("theorem", "Theorem 1': the block meets all its hypotheses")


def _stack_violations(stack: Stack, block: TransformerBlock) -> Iterator[str]:
    """What the tables of a stack take from a block: a short context, or a relative table beside a rotation."""
    own, read = block.attention, stack.positions - stack.unread_positions
    if own is None:
        return
    need = needed_tokens(own, block.attention_norms)
    if stack.positions and read < need:
        yield f"attention: a context of {read} positions given; at least {need} are required"
    if stack.relative_buckets and own.rotary is not None:
        yield "attention: a relative table beside a rotation given; one of them is required"


def _together(parts: list[Proof]) -> str:
    """One sentence for the layers of a model."""
    unmet = list(dict.fromkeys(part.reason for part in parts if part.standing != "theorem"))
    return "; ".join(unmet) if unmet else "Theorem 1': all layers meet its hypotheses"


def _of_layers(kinds: Iterable[tuple[Iterable[RedundantPart], int]]) -> list[RedundantPart]:
    """The terms of each kind of block times the number of layers that it has, equal ones of all kinds together."""
    counts: dict[tuple[PartName, str, str], tuple[int, int]] = {}
    for terms, layers in kinds:
        for term in _merged(terms):
            key = (term.part, term.group, term.lemma)
            count, number = counts.get(key, (0, 0))
            counts[key] = count + layers * term.count, number + layers
    return [
        RedundantPart(part=part, count=count, group=f"{group}, {n} layer{'s' if n > 1 else ''}", lemma=lemma)
        for (part, group, lemma), (count, n) in counts.items()
        if n
    ]


def _merged(terms: Iterable[RedundantPart]) -> tuple[RedundantPart, ...]:
    """Terms of the same part, group and lemma added up, part by part; zero ones dropped."""
    counts: dict[tuple[PartName, str, str], int] = {}
    for term in terms:
        key = (term.part, term.group, term.lemma)
        counts[key] = counts.get(key, 0) + term.count
    return tuple(
        RedundantPart(part=part, count=count, group=group, lemma=lemma)
        for (part, group, lemma), count in sorted(counts.items(), key=lambda item: PART_NAMES.index(item[0][0]))
        if count
    )


def _table_terms(stack: Stack) -> list[RedundantPart]:
    """T5: softmax ignores a shift of all buckets of a head; some, in both directions that of +0, are never used."""
    heads = stack.relative_heads
    first = next((block.attention for block in stack.blocks if block.attention is not None), None)
    if not heads or first is None:
        return []
    unused = heads * len(stack.unused_relative)
    shifts = heads * first.forgets_shifts
    return [
        RedundantPart(part="query_key", count=shifts, group="a shift of the relative table per head", lemma="Lemma 1"),
        RedundantPart(part="query_key", count=unused, group="buckets that no distance has", lemma="definition"),
    ]


def _final_terms(spec: TransformerSpec) -> list[RedundantPart]:
    """Norms whose output is only read by matrices: an encoder's by cross-attention, the last one by an untied head."""
    terms = []
    if len(spec.stacks) == 2 and (norm := last_norm(spec.stacks[0])) is not None:
        count = norm.parameters(spec.width)
        terms.append(
            RedundantPart(part="norm", count=count, group="gain and bias of the encoder's last norm", lemma="Lemma 4")
        )
    norm = last_norm(spec.stack)
    if spec.head is None or norm is None or spec.stack.path:
        return terms
    if spec.head.tied:
        moved = spec.width * (norm.bias and spec.head.bias)
        return [
            *terms,
            RedundantPart(part="norm", count=moved, group="bias of the last norm, into the head's", lemma="Lemma 4"),
        ]
    rows = stream(spec.width, norm).rows(spec.embedding_rank or spec.vocabulary, spec.head.bias, True)
    count = norm.parameters(spec.width)
    return [
        *terms,
        RedundantPart(part="norm", count=count, group="gain and bias of the last norm, into the head", lemma="Lemma 4"),
        RedundantPart(part="norm", count=rows, group="mean direction of the rows of the head", lemma="Lemma 4"),
    ]


def _distribution(spec: TransformerSpec) -> int:
    """Further dimensions lost if only softmax of the logits is seen: a vector added to all rows of the head."""
    if spec.head is None or spec.head.is_capped or spec.embedding_rank:
        return 0
    seen = stream(spec.width, last_norm(spec.stack))
    if not spec.head.tied:
        return seen.seen + seen.has_constant(spec.head.bias)
    # A tied table can only move by a common vector that the position tables take back.
    tables = all(stack.positions or stack.token_types for stack in spec.stacks if stack.embeds_tokens)
    return spec.width * tables + spec.head.bias
