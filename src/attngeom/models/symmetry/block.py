"""The symmetry group of a block: the list of its factors, sublayer by sublayer, option by option."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from attngeom.models.readers import post_norms
from attngeom.models.specification import MLP, GroupedAttention, Norm, TransformerBlock
from attngeom.models.surroundings import sublayers
from attngeom.models.symmetry.attention import (
    GatedValueOutput,
    GroupedQueryKey,
    GroupedValueOutput,
    OrderOfHeads,
    OrderOfValues,
    RotaryScales,
)
from attngeom.models.symmetry.constants import AttentionBiases, OutputNorm, RelativeShift, StreamConstants
from attngeom.models.symmetry.factor import Factor
from attngeom.models.symmetry.filters import FilteredValues
from attngeom.models.symmetry.latents import Latents
from attngeom.models.symmetry.lengths import TurnedCoordinates, TurnedPairs
from attngeom.models.symmetry.mixers import (
    KeyChannels,
    MixerGains,
    OrderOfChannels,
    QueryChannels,
    StepConstants,
    ValueChannels,
)
from attngeom.models.symmetry.normalised import CentredQueryKey, NormalisedQueryKey, ShiftedQueryKey
from attngeom.models.symmetry.norms import InputNorm, MeanDirections, OutputScales
from attngeom.models.symmetry.units import CorrectionShift, HiddenUnits, OrderOfExperts, RouterShift


@lru_cache(maxsize=256)
def factors(block: TransformerBlock, ordered: bool = False) -> tuple[Factor, ...]:
    """The factors of the group of a block; ``ordered``: a table of relative positions gives every head its place.

    >>> from attngeom.models.presets import published
    >>> [type(factor).__name__ for factor in factors(published("gpt2").stack.block(0))[4:]]
    ['RotaryScales', 'GroupedQueryKey', 'GroupedValueOutput', 'AttentionBiases', 'OrderOfHeads', 'HiddenUnits']
    """
    return (*_norms(block), *_mixer(block), *_attentions(block, ordered), *_stream(block), *_units(block))


def _norms(block: TransformerBlock) -> Iterator[Factor]:
    yield from (InputNorm(block, name) for name in block.input_norms)
    yield from (MeanDirections(block, sublayer.place) for sublayer in sublayers(block))
    if block.scales_outputs:
        yield from (OutputScales(block, sublayer.place) for sublayer in sublayers(block))
    if any(norms.output is not None for norms in block.norms):
        yield OutputNorm(block, "output")


def _stream(block: TransformerBlock) -> Iterator[Factor]:
    # Behind the constants of attention: what is written along 1 is told when those lie in their places.
    if post_norms(block):
        yield StreamConstants(block, "stream")


def _mixer(block: TransformerBlock) -> Iterator[Factor]:
    if block.mixer is not None:
        if block.mixer.norm is not None:
            yield MixerGains(block, "mixer")
        if block.mixer.convolves:
            kinds = {"query": QueryChannels, "key": KeyChannels, "value": ValueChannels}
            yield from (kinds[name](block, "mixer") for name in block.mixer.channels)
        if not block.mixer.has_keys:
            yield FilteredValues(block, "mixer")
        if block.mixer.bias and block.mixer.has_steps:
            yield StepConstants(block, "mixer")
        yield OrderOfChannels(block, "mixer")


def _attentions(block: TransformerBlock, ordered: bool) -> Iterator[Factor]:
    for place, spec in block.attentions.items():
        if spec.latent is not None:
            yield Latents(block, place)
        if spec.head_norm is not None:
            yield from _normed_keys(block, place, spec, spec.head_norm)
        else:
            yield from (RotaryScales(block, place), GroupedQueryKey(block, place))
        yield GatedValueOutput(block, place) if spec.output_gate else GroupedValueOutput(block, place)
        yield AttentionBiases(block, place)
        if spec.relative is not None:
            yield RelativeShift(block, place)
        if not spec.alibi and not (ordered and place == "attention"):
            yield OrderOfHeads(block, place)
        if spec.output_gate:
            yield OrderOfValues(block, place)


def _normed_keys(block: TransformerBlock, place: str, spec: GroupedAttention, norm: Norm) -> Iterator[Factor]:
    if not norm.gain:
        yield from (TurnedPairs(block, place), TurnedCoordinates(block, place))
    elif spec.shifts_heads:
        yield ShiftedQueryKey(block, place)
    else:
        yield CentredQueryKey(block, place) if spec.is_centred else NormalisedQueryKey(block, place)


def _units(block: TransformerBlock) -> Iterator[Factor]:
    yield from (HiddenUnits(block, name) for name in block.hidden)
    if block.mlp is not None and not isinstance(block.mlp, MLP):
        yield OrderOfExperts(block, "experts")
        if block.mlp.router == "softmax":
            yield RouterShift(block, "experts")
        if block.mlp.correction:
            yield CorrectionShift(block, "experts")
