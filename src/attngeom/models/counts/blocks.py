"""Redundant dimensions of a block: the orbits of its factors, and the constants that sublayers can hand to each other.

Each count is a theorem for generic weights: the group acts with orbits of this dimension (upper bound of the
dimension), and Lemmas 1 to 6 of docs/theorems/models.md say that nothing else is lost.

Constants are the one override: biases of outputs and what the biases of values add up to are vectors that a block adds
to its stream, and each sublayer can take from the next what only the sum, or the sum without its mean, shows. So their
group acts on all sublayers at once, and its orbits are counted for the block as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from attngeom.models.counts.hypotheses import check_block
from attngeom.models.specification import MLP, GroupedAttention, Norm, RecurrentMixer, TransformerBlock
from attngeom.models.surroundings import PlacedSublayer, Surroundings, surroundings
from attngeom.models.symmetry.block import factors
from attngeom.models.symmetry.factor import PartName, RedundantPart


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
    around = surroundings(block, width, incoming=incoming, source=source, mean_seen=mean_seen)
    terms = [term for factor in factors(block) for term in factor.orbits(around)]
    return [term for term in (*terms, *_constant_terms(block, around)) if term.count]


@dataclass(frozen=True, kw_only=True)
class Constants:
    """Vectors that a sublayer adds to every token: ``biases`` free vectors, and Σ O_h b of the values."""

    biases: int = 0
    value_size: int = 0
    own_values: bool = False
    any_values: bool = False

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
            more = width * (self.biases - 1)
            return [
                RedundantPart(
                    part="value_bias", count=values, group=f"R^{values}, into the output bias", lemma="Lemma 1"
                ),
                RedundantPart(part="norm", count=width - written, group="output bias along 1", lemma="Lemma 4"),
                RedundantPart(
                    part="value_bias",
                    count=more,
                    group=f"R^{more} between biases of which the sum is seen",
                    lemma="Lemma 1",
                ),
            ]
        seen = min(written, self.value_size) if self.any_values else 0
        part: PartName = "value_bias" if self.own_values else "norm"
        # Without own biases the norm's bias makes the constants; the rows of V were counted as if none were seen.
        return [
            RedundantPart(part=part, count=values - seen, group="value constants beyond the width", lemma="Lemma 1")
        ]

    def reaches_mean(self, width: int) -> bool:
        """Whether the constants contain the direction 1."""
        return self.biases > 0 or (self.any_values and self.value_size >= width)


def _constants(reading: PlacedSublayer) -> Constants:
    """The constants of a sublayer; where a sink takes a share, value constants are no constants and count as seen."""
    part = reading.sublayer.map
    if isinstance(part, GroupedAttention):
        constant = part.shares_sum_to_one
        return Constants(
            biases=int(part.output_bias),
            value_size=part.groups * part.value_dim,
            own_values=part.value_bias and constant,
            any_values=part.latent is None and reading.source.has_constant(part.value_bias) and constant,
        )
    if isinstance(part, RecurrentMixer):
        return Constants(biases=int(part.output_bias))
    if isinstance(part, MLP):
        return Constants(biases=int(part.down_bias))
    # A vector added to the biases of all experts is a constant if the weights of the router add up to one.
    shared = part.shared is not None and part.shared.down_bias and not part.shared_gate
    return Constants(biases=shared + (part.sums_to_constant and part.expert.down_bias))


def _constant_terms(block: TransformerBlock, around: Surroundings) -> Iterator[RedundantPart]:
    """What the constants of a block do not show, sublayer by sublayer; of a parallel block their sum."""
    width = around.width
    if block.parallel:
        pool = Constants()
        for reading in around.readings.values():
            pool = pool.merged(_constants(reading))
        yield from pool.terms(width, width - (not around.mean_seen))
        return
    last_mean = False
    for reading in around.readings.values():
        pool, norms = _constants(reading), reading.sublayer.norms
        if norms.stream is not None:
            yield from _post_norm_terms(pool, reading, norms.stream, width)
        else:
            yield from pool.terms(width, reading.written)
        plain = norms.output is None and norms.stream is None
        mean = around.mean_seen and pool.reaches_mean(width) and plain
        if last_mean and norms.input is not None and norms.input.kind == "layer":
            yield RedundantPart(part="norm", count=int(mean), group="(c1, −c1) of two biases", lemma="Lemma 4")
        else:
            last_mean = mean


def _post_norm_terms(pool: Constants, reading: PlacedSublayer, outgoing: Norm, width: int) -> Iterator[RedundantPart]:
    """norm(x + f(x)) with x behind the norm ``incoming``: its bias joins the constants, its gain is seen through x."""
    incoming = reading.incoming
    if incoming is not None and incoming.bias:
        values = pool.value_size * pool.own_values
        yield RedundantPart(part="value_bias", count=values, group="into the next bias", lemma="Lemma 1")
        yield RedundantPart(part="norm", count=width * pool.biases, group="bias of the norm before", lemma="Lemma 4")
        yield RedundantPart(part="norm", count=width - reading.written, group="output bias along 1", lemma="Lemma 4")
    else:
        yield from pool.terms(width, reading.written)
    if incoming is not None and incoming.gain and outgoing.eps == 0:
        yield RedundantPart(part="norm", count=1, group="R+ scale between two norms", lemma="Lemma 5, eps = 0")
