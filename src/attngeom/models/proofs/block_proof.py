"""Proof of the redundancy of a block: the rank of its program from below, proven symmetries from above."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from attngeom.errors import InputError, SizeError
from attngeom.limits.memory import JACOBIAN_WEIGHTS
from attngeom.models.checked import require
from attngeom.models.counts.hypotheses import check_block
from attngeom.models.counts.redundancy import block_redundancy
from attngeom.models.programs import block_program
from attngeom.models.programs.attention import check_frequencies
from attngeom.models.specification import MLP, Experts, GroupedAttention, TransformerBlock
from attngeom.models.surroundings import mlps, stream, sublayers
from attngeom.programs import Program
from attngeom.programs.arithmetic import CHAIN
from attngeom.rank.hypotheses import exponents_are_independent, prove_free_rank
from attngeom.rank.lower import bound_rank
from attngeom.rank.upper import bound_above

RELATED = "arguments of exponentials are related, or too few points were found to see that they are not"


@dataclass(frozen=True, kw_only=True)
class RankProof:
    """lower <= dimension of the set of functions <= upper, for generic weights of the described sizes.

    ``lower`` is the rank of the derivative at a point mod p; ``upper`` the number of acting weights minus the orbit of
    symmetries that were proven for all weights and inputs, or another proven bound. ``formula`` is what `redundancy`
    says; None if no formula is known for the kind. ``obstacle`` says why the rank proves nothing, if it does not.
    """

    subject: str
    parameters: int
    lower: int
    upper: int
    formula: int | None
    prime: int
    seed: int
    samples: int
    obstacle: str = ""

    @property
    def standing(self) -> Literal["proven", "undecided"]:
        return "proven" if self.lower == self.upper else "undecided"

    @property
    def redundancy(self) -> int | None:
        """parameters − dimension, if proven."""
        return self.parameters - self.upper if self.lower == self.upper else None

    @property
    def agrees(self) -> bool | None:
        """Whether the formula gives the proven number; None if one of the two is missing."""
        return None if self.redundancy is None or self.formula is None else self.redundancy == self.formula

    @property
    def reason(self) -> str:
        if self.obstacle:
            return self.obstacle
        if self.lower < self.upper:
            return f"the rank found, {self.lower}, is below the bound {self.upper} that the known symmetries give"
        text = f"rank {self.lower} mod {self.prime} and {self.parameters - self.upper} independent symmetries add up"
        verdict = {True: "; the formula agrees", False: f"; the formula says {self.formula}", None: ""}
        return text + verdict[self.agrees]

    def to_json(self) -> dict[str, Any]:
        derived = {"standing": self.standing, "redundancy": self.redundancy, "agrees": self.agrees}
        return asdict(self) | derived | {"reason": self.reason}

    def __str__(self) -> str:
        return f"{self.subject}: {self.standing}, {self.reason}"


def prove_program(
    program: Program, size: int, formula: int | None, seed: int, subject: str, wider: Program | None = None
) -> RankProof:
    """Bounds of the dimension of the functions of a program, whose weights stand for ``size`` stored ones.

    The formula only says where the search for a larger rank may stop. ``wider``: a program with the same weights and
    two other tokens, for which symmetries are proven, if their scores are independent (Lemma 7).
    """
    if wider is not None and not exponents_are_independent(wider, seed):
        return _undecided(program, size, formula, seed, subject, RELATED)
    expected = None if formula is None else min(size - formula, program.num_parameters)
    try:
        lower = bound_rank(program, seed, expected=expected)
    except InputError as error:
        return _undecided(program, size, formula, seed, subject, str(error))
    lower, rank_proof = prove_free_rank(lower)
    is_proven = rank_proof.standing == "proven"
    return RankProof(
        subject=subject,
        parameters=size,
        lower=lower.value if is_proven else 0,
        upper=bound_above(lower, seed, quick=True, wider=wider).value,
        formula=formula,
        prime=lower.prime,
        seed=seed,
        samples=len(lower.samples),
        obstacle="" if is_proven else rank_proof.reason,
    )


def _undecided(program: Program, size: int, formula: int | None, seed: int, subject: str, obstacle: str) -> RankProof:
    return RankProof(
        subject=subject, parameters=size, lower=0, upper=program.num_parameters, formula=formula, prime=CHAIN[0],
        seed=seed, samples=0, obstacle=obstacle,
    )  # fmt: skip


FEW_TOKENS = "more symmetries than the count has are proven for three tokens only, behind a norm of the output"


def check_provable(block: TransformerBlock, width: int) -> None:
    """Refuse with InputError what programs of blocks do not describe."""
    check_block(block, width)
    for own in (block.attention, block.cross):
        if own is not None:
            _check_attention(own)
    if block.cross is not None:
        plain = block.cross.rotary is None and block.cross.window is None and block.cross.latent is None
        require(plain, "cross-attention with a rotation, a window or latents given; proofs by rank do not describe it")
    drawn = isinstance(block.mlp, Experts) and block.mlp.router == "sparsemixer"
    require(not drawn, "a router that draws one expert after the other given; proofs by rank do not describe it")
    for mlp in mlps(block.mlp) if block.mlp is not None else ():
        smooth = mlp.limit is None or mlp.activation not in ("gelu", "gelu_tanh")
        require(smooth, "gelu with a limit given; proofs by rank do not describe its value at the limit")
    text = "a norm of one dimension with eps 0 given; it shows a sign, which proofs by rank do not describe"
    require(all(size > 1 for size in _dimensions_without_eps(block, width)), text)


def _dimensions_without_eps(block: TransformerBlock, width: int) -> Iterator[int]:
    """How many independent squares are under the roots of norms with eps = 0: the root of a single one is no root."""
    for sublayer in sublayers(block):
        norms, part = sublayer.norms, sublayer.map
        for norm in (sublayer.before, norms.stream):
            if norm is not None and norm.eps == 0:
                yield stream(width, norm).seen
        seen = stream(width, sublayer.before).seen
        own = part if isinstance(part, GroupedAttention) else None
        if own is not None and own.head_norm is not None and own.head_norm.eps == 0:
            yield min(seen, own.head_dim - own.is_centred)
        if own is not None and own.latent is not None:
            ranks = ((own.latent.query_rank, own.latent.query_norm), (own.latent.key_rank, own.latent.key_norm))
            yield from (min(seen, rank or 0) for rank, norm in ranks if norm is not None and norm.eps == 0)
        if norms.output is not None and norms.output.eps == 0:
            columns = part.width if isinstance(part, MLP) else 2
            if own is not None:
                one_token = min(seen, own.heads * own.value_dim)
                columns = one_token if own.reach == 1 else own.heads * min(seen, own.value_dim)
            yield min(width, columns)


def _check_attention(own: GroupedAttention) -> None:
    contents = "scores of contents against positions given; proofs by rank do not describe them"
    require(own.disentangled is None, contents)
    if own.rotary is not None:
        check_frequencies(own.rotary.frequencies)
        plain, turning = own.rotations
        fixed = not own.rotary.lengthening or (plain == own.unrotated and max(turning.values()) == 1)
        require(fixed, "equal or zero frequencies that change with the context given; proofs by rank do not see them")
    for norm in () if own.latent is None else (own.latent.query_norm, own.latent.key_norm):
        require(norm is None or norm.kind == "rms", "a latent with a LayerNorm given; proofs by rank need rms")


def prove_block(
    block: TransformerBlock, width: int, *, seed: int = 0, buckets: int = 0, subject: str = "block"
) -> RankProof:
    """Bounds of the dimension of the functions of a block; equal bounds are a proof.

    The rank needs one other token beside the last one; symmetries are proven for two, which is enough for any number
    (docs/theorems/models.md, section 5).

    Inputs are arbitrary residual vectors, any number of tokens, seen through the window. ``buckets`` > 0 adds a
    relative position table. Kinds that are not described are refused.

    >>> from attngeom.models.specification import MLP, Norm, Norms
    >>> mlp = MLP(width=2, activation="silu", gated=True)
    >>> norms = Norms(input=Norm(kind="rms", eps=1e-6))
    >>> prove_block(TransformerBlock(attention=None, mlp=mlp, mlp_norms=norms), 3).redundancy
    5
    """
    check_provable(block, width)
    table = buckets * block.attention.heads if buckets and block.attention is not None else 0
    size = block.parameters(width, width) + table
    if size > JACOBIAN_WEIGHTS:
        raise SizeError(f"a block of {size} weights given; at most {JACOBIAN_WEIGHTS} are proved by rank: shrink it")
    program = block_program(block, width, buckets=buckets)
    wider = None if block.attention is None else block_program(block, width, buckets=buckets, others=2)
    assert wider is None or wider.parameters == program.parameters
    proof = prove_program(program, size, _formula(block, width, buckets), seed, subject, wider)
    own, output = block.attention, block.attention_norms.output
    if own is None or output is None or proof.formula is None or proof.agrees is not False:
        return proof
    longer = own.heads > 2 and (own.reach is None or own.reach > 3)
    if output.eps == 0 or longer:
        # More symmetries than the count has, for all contexts: Lemma 7 does not say that these keep longer ones.
        return replace(proof, upper=size - proof.formula, obstacle=FEW_TOKENS)
    return proof


def _formula(block: TransformerBlock, width: int, buckets: int) -> int:
    """What the formula says, with one shift of the relative table per head, and the bucket that is never used."""
    total = block_redundancy(block, width).total
    if not buckets or block.attention is None:
        return total
    own = block.attention
    return total + own.heads * (own.forgets_shifts + own.sees_later)
