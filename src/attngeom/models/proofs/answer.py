"""The counts of a model checked by rank: of its blocks and itself where they are small, else of small ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from attngeom.errors import AttnGeomError, InputError, SizeError
from attngeom.models.counts.redundancy import WHOLE, redundancy
from attngeom.models.proofs.block_proof import RankProof, prove_block
from attngeom.models.proofs.model_proof import prove_model
from attngeom.models.proofs.shrink import one_layer, shrink, shrink_block, small_width
from attngeom.models.specification import Stack, TransformerBlock, TransformerSpec
from attngeom.results import Proof, Result

MAX_WEIGHTS = 2048
"""Blocks and models up to this size are proved themselves."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A proof by rank that was tried: of the block or model itself (``is_given``), or of a small one of its kind.

    ``proof`` None: refused, ``refusal`` says why.
    """

    subject: str
    is_given: bool
    width: int
    proof: RankProof | None
    refusal: str = ""

    @property
    def agrees(self) -> bool:
        return self.proof is not None and self.proof.agrees is True

    def to_json(self) -> dict[str, Any]:
        about = {"subject": self.subject, "is_given": self.is_given, "width": self.width}
        proof = {"standing": "undecided", "reason": self.refusal} if self.proof is None else self.proof.to_json()
        return {**proof, **about}

    def __str__(self) -> str:
        reason = self.refusal if self.proof is None else self.proof.reason
        if not self.is_given:
            return f"a smaller {self.subject}, width {self.width}: {reason}"
        return f"{self.subject}: {'undecided' if self.proof is None else self.proof.standing}, {reason}"


@dataclass(frozen=True, kw_only=True, eq=False)
class RedundancyProof(Result):
    """What is known of the counts of a model after proofs by rank: of its ``layers``, and (standing) of the whole.

    A layer is a "theorem" where Theorem 1' covers it, "proven" where bounds met on that very block. The whole model is
    "proven" where they met on that very model. Agreement on smaller ones of the kind is told, and proves nothing.
    """

    layers: Proof
    blocks: tuple[Trial, ...]
    whole: Trial

    @property
    def trials(self) -> tuple[Trial, ...]:
        return (*self.blocks, self.whole)

    def to_json(self) -> dict[str, Any]:
        return {
            "layer_standing": self.layers.standing,
            "layer_reason": self.layers.reason,
            "standing": self.standing,
            "reason": self.reason,
            "seed": self.seed,
            "blocks": [trial.to_json() for trial in self.blocks],
            "model": self.whole.to_json(),
        }

    def rows(self) -> Mapping[str, Any]:
        return {"layers": f"{self.layers.standing}, {self.layers.reason}", "whole model": self._whole()}

    def _whole(self) -> str:
        return f"{self.standing}, {self.reason}"

    def __str__(self) -> str:
        lines = [f"layers: {self.layers.standing}: {self.layers.reason}", f"whole model: {self._whole()}"]
        return "\n".join([*lines, *(f"  {trial}" for trial in self.trials)])


def prove_redundancy(
    spec: TransformerSpec, *, seed: int = 0, progress: Callable[[int, int], None] | None = None
) -> RedundancyProof:
    """Bounds by rank for every kind of block and for the whole model, at their own sizes where these are small.

    ``progress`` is told how many of them are done, and how many there are.

    >>> from attngeom.models.presets import published
    >>> prove_redundancy(published("gpt2")).layers.standing
    'theorem'
    """
    blocks, parts = [], []
    stated = iter(redundancy(spec).layers.parts)
    kinds = list(_kinds(spec))
    for number, (stack, kind, block) in enumerate(kinds, 1):
        trial = _prove_kind(spec, stack, f"{stack.name} block, kind {kind + 1}", block, seed)
        blocks.append(trial)
        parts.append(_block_standing(next(stated), trial))
        if progress is not None:
            progress(number, len(kinds) + 1)
    reasons = dict.fromkeys(part.reason for part in parts)
    whole = _prove_whole(spec, seed)
    return RedundancyProof(
        layers=Proof.from_parts("; ".join(reasons), *parts) if parts else Proof("theorem", "there are no layers"),
        blocks=tuple(blocks),
        whole=whole,
        seed=seed,
        **_whole_standing(whole),
    )


def _kinds(spec: TransformerSpec) -> Iterator[tuple[Stack, int, TransformerBlock]]:
    for stack in spec.stacks:
        for kind, block in enumerate(stack.kinds):
            yield stack, kind, block


def _prove_kind(spec: TransformerSpec, stack: Stack, subject: str, block: TransformerBlock, seed: int) -> Trial:
    """The block itself, or a smaller one if it is too large or has too many roots."""
    buckets = stack.relative_buckets if block.attention is not None else 0
    if block.parameters(spec.width, spec.width) + buckets * stack.relative_heads <= MAX_WEIGHTS:
        try:
            proof = prove_block(block, spec.width, seed=seed, buckets=buckets, subject=subject)
            return Trial(subject=subject, is_given=True, width=spec.width, proof=proof)
        except SizeError:
            pass
        except InputError as error:
            return Trial(subject=subject, is_given=True, width=spec.width, proof=None, refusal=str(error))
    width = small_width(spec)
    small = shrink_block(block, spec.width, width)
    try:
        proof = prove_block(small, width, seed=seed, buckets=min(buckets, 4), subject=subject)
        return Trial(subject=subject, is_given=False, width=width, proof=proof)
    except AttnGeomError as error:
        return Trial(subject=subject, is_given=False, width=width, proof=None, refusal=str(error))


def _block_standing(stated: Proof, trial: Trial) -> Proof:
    """A theorem stays one; else the rank of this very block decides, and a smaller one does not."""
    if stated.standing == "theorem":
        return stated
    if trial.is_given and trial.agrees and trial.proof is not None:
        return Proof("proven", trial.proof.reason)
    more = f"; the count agrees with the rank at width {trial.width}" if trial.agrees else f"; {trial}"
    return Proof(stated.standing, f"{stated.reason}{more}")


def _prove_whole(spec: TransformerSpec, seed: int) -> Trial:
    """The model itself, or a smaller one; of a single kind of block one layer, where two have too many roots."""
    small = shrink(spec)
    single = len(small.stacks) == 1 and len(small.stack.kinds) == 1
    trials = [(spec, True)] if spec.parameters <= MAX_WEIGHTS else []
    trials += [(small, False), *([(one_layer(small), False)] if single else [])]
    refusal = ""
    for tried, is_given in trials:
        try:
            proof = prove_model(tried, seed=seed)
            return Trial(subject="model", is_given=is_given, width=tried.width, proof=proof)
        except SizeError as error:
            refusal = str(error)
        except InputError as error:
            refusal = str(error)
            break
    return Trial(subject="model", is_given=False, width=small.width, proof=None, refusal=refusal)


def _whole_standing(whole: Trial) -> dict[str, Any]:
    if whole.is_given and whole.agrees and whole.proof is not None:
        return {"standing": "proven", "reason": whole.proof.reason}
    more = f"; the count agrees with the rank at width {whole.width}" if whole.agrees else f"; {whole}"
    return {"standing": "estimate", "reason": f"{WHOLE}{more}"}
