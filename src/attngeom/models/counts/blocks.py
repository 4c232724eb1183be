"""Redundant dimensions of a block: its parts, its norms, and the constants that sublayers can hand to each other."""

from __future__ import annotations

from dataclasses import dataclass

from attngeom.models.counts.hypotheses import check_block
from attngeom.models.counts.parts import PartName, RedundantPart, attention_terms, mlp_terms
from attngeom.models.counts.streams import Stream, stream
from attngeom.models.counts.sublayers import Sublayer, sublayers
from attngeom.models.specification import MLP, Experts, GroupedAttention, Norm, Norms, TransformerBlock


@dataclass(frozen=True, kw_only=True)
class Constants:
    """Vectors that a sublayer adds to every token: ``biases`` free vectors, and Σ O_h b of the values."""

    biases: int
    value_size: int
    own_values: bool
    any_values: bool

    def merged(self, other: Constants) -> Constants:
        values = self if self.any_values or not other.any_values else other
        return Constants(
            biases=self.biases + other.biases,
            value_size=values.value_size,
            own_values=values.own_values,
            any_values=values.any_values,
        )

    def terms(self, width: int, written: int) -> list[RedundantPart]:
        """What of the constants is not seen: with a free vector everything but ``written`` dimensions of the sum."""
        values = self.value_size * self.own_values
        if self.biases:
            return [
                RedundantPart(part="value_bias", count=values, group=f"R^{values}, into the output bias", lemma="L1"),
                RedundantPart(part="norm", count=width - written, group="output bias along 1", lemma="L4"),
                RedundantPart(
                    part="value_bias",
                    count=width * (self.biases - 1),
                    group=f"R^{width * (self.biases - 1)} between biases of which the sum is seen",
                    lemma="L1",
                ),
            ]
        seen = min(written, self.value_size) if self.any_values else 0
        part: PartName = "value_bias" if self.own_values else "norm"
        # Without own biases the norm's bias makes the constants; the rows of V were counted as if none were seen.
        return [RedundantPart(part=part, count=values - seen, group="value constants beyond the width", lemma="L1")]

    def reaches_mean(self, width: int) -> bool:
        """Whether the constants contain the direction 1."""
        return self.biases > 0 or (self.any_values and self.value_size >= width)


def constants(part: GroupedAttention | MLP | Experts, source: Stream) -> Constants:
    """The constants of a sublayer; where a sink takes a share, value constants are no constants and count as seen."""
    if isinstance(part, GroupedAttention):
        silent = not part.shares_sum_to_one
        return Constants(
            biases=int(part.output_bias),
            value_size=part.groups * part.value_dim,
            own_values=part.value_bias and not silent,
            any_values=part.latent is None and source.has_constant(part.value_bias) and not silent,
        )
    if isinstance(part, MLP):
        biases = int(part.down_bias)
    else:
        # A vector added to the biases of all experts is a constant if the weights of the router add up to one.
        shared = part.shared is not None and part.shared.down_bias
        biases = shared + (part.sums_to_constant and part.expert.down_bias)
    return Constants(biases=biases, value_size=0, own_values=False, any_values=False)


def block_terms(
    block: TransformerBlock,
    width: int,
    *,
    incoming: Norm | None = None,
    source: Norm | None = None,
    mean_seen: bool = True,
) -> list[RedundantPart]:
    """The redundancy of a block whose input is an arbitrary stream, or one behind the norm ``incoming`` (post-LN).

    ``source`` is the norm behind which cross-attention finds the encoder's stream; None: arbitrary vectors. The
    gain of ``incoming`` and the parameters of ``source`` are counted by the caller. ``mean_seen`` False: nothing that
    reads the output of the block sees its mean (whole models with LayerNorm).
    """
    check_block(block, width)
    terms: list[RedundantPart] = []
    if block.parallel:
        terms += _parallel_terms(block, width, width - (not mean_seen))
    else:
        last_mean = False
        for sublayer in sublayers(block):
            part, norms = sublayer.map, sublayer.norms
            before = incoming if norms.stream is not None else norms.input
            own = stream(width, before)
            other = stream(width, source) if sublayer.is_cross else own
            hidden = not mean_seen and norms.output is None
            if norms.stream is not None:
                hidden = norms.stream.kind == "layer"
            written = width - hidden
            terms += _map_terms(part, own, other, written)
            pool = constants(part, other)
            if norms.stream is not None:
                pool_terms, incoming = _post_norm_terms(pool, incoming, norms.stream, width, written)
                terms += pool_terms
            else:
                terms += pool.terms(width, written)
            terms += [*_norm_terms(norms, width), *_output_terms(sublayer, width)]
            mean = mean_seen and pool.reaches_mean(width) and norms.output is None and norms.stream is None
            if last_mean and norms.input is not None and norms.input.kind == "layer":
                if mean:
                    terms.append(RedundantPart(part="norm", count=1, group="(c1, −c1) of two biases", lemma="L4"))
                last_mean = True
            else:
                last_mean = mean
    return [term for term in terms if term.count]


def _map_terms(part: GroupedAttention | MLP | Experts, own: Stream, other: Stream, written: int) -> list[RedundantPart]:
    if isinstance(part, GroupedAttention):
        return attention_terms(part, own, other, written)
    return mlp_terms(part, own, written)


def _norm_terms(norms: Norms, width: int) -> list[RedundantPart]:
    """Gain and bias of an input norm go into its readers; of an output norm only the scale, and only if eps = 0."""
    terms = []
    if norms.input is not None:
        count = norms.input.parameters(width)
        terms.append(RedundantPart(part="norm", count=count, group=f"(R*)^{width} gains, biases", lemma="L4"))
    return terms


def _output_terms(sublayer: Sublayer, width: int) -> list[RedundantPart]:
    """gain ∘ n(W y): the scale of W if eps = 0; gains that the lengths of W y do not fix, if y has few coordinates."""
    norm, part = sublayer.norms.output, sublayer.map
    if norm is None:
        return []
    terms = []
    if norm.eps == 0:
        terms.append(
            RedundantPart(part="norm", count=1, group="R+ scale of what an output norm reads", lemma="L5, eps = 0")
        )
    if isinstance(part, Experts):
        return terms
    if isinstance(part, GroupedAttention):
        inner, bias = part.heads * part.value_dim, part.output_bias
    else:
        inner, bias = part.width, part.down_bias
    inner += bias
    # With a bias among the columns eps is one more coefficient of the length, and the scale is free again.
    loose = max(0, width - inner * (inner + 1) // 2 + (bias and norm.eps > 0)) * norm.gain
    return [*terms, RedundantPart(part="norm", count=loose, group="gains against rows of few columns", lemma="L5")]


def _parallel_terms(block: TransformerBlock, width: int, written: int) -> list[RedundantPart]:
    """Attention and MLP of the same x: of their biases only the sum is seen."""
    terms: list[RedundantPart] = []
    pool = Constants(biases=0, value_size=0, own_values=False, any_values=False)
    for sublayer in sublayers(block):
        own = stream(width, sublayer.before)
        terms += _map_terms(sublayer.map, own, own, written)
        terms += _norm_terms(sublayer.norms, width)
        pool = pool.merged(constants(sublayer.map, own))
    return terms + pool.terms(width, written)


def _post_norm_terms(
    pool: Constants, incoming: Norm | None, outgoing: Norm, width: int, written: int
) -> tuple[list[RedundantPart], Norm]:
    """norm(x + f(x)) with x behind the norm ``incoming``: its bias joins the constants, its gain is seen through x."""
    terms = []
    if incoming is not None and incoming.bias:
        joined = Constants(biases=pool.biases + 1, value_size=0, own_values=False, any_values=False)
        terms += [
            RedundantPart(
                part="value_bias", count=pool.value_size * pool.own_values, group="into the next bias", lemma="L1"
            ),
            RedundantPart(part="norm", count=width * (joined.biases - 1), group="bias of the norm before", lemma="L4"),
            RedundantPart(part="norm", count=width - written, group="output bias along 1", lemma="L4"),
        ]
    else:
        terms += pool.terms(width, written)
    if incoming is not None and incoming.gain and outgoing.eps == 0:
        terms.append(RedundantPart(part="norm", count=1, group="R+ scale between two norms", lemma="L5, eps = 0"))
    return terms, outgoing
