"""The factor of RG-LRU: scales between what its convolutions write and all that reads it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.groups import Gauge, RealScales, Sampler
from attngeom.groups.pivots import first_largest
from attngeom.limits.rounding import COLLINEAR_ROWS
from attngeom.limits.trials import LEAST_NORM_STEPS
from attngeom.models.affine import Affine
from attngeom.models.layer import LayerWeights
from attngeom.models.specification import TransformerBlock
from attngeom.models.surroundings import Surroundings
from attngeom.models.symmetry.factor import Freedom, Part, RedundantPart
from attngeom.models.symmetry.mixers import MixerFactor, against_mean, cosines
from attngeom.models.tensor_errors import Along, Errors, Noise, TensorPart, by_entry


@dataclass(frozen=True, eq=False)
class FilteredScale(Part):
    """What convolutions of values write times ``scale`` (H, v), all columns that read it divided by it."""

    scale: Array

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        mixer, scale = layer.mixer, self.scale
        assert mixer is not None and mixer.value_taps is not None and mixer.value_shift is not None
        changes: dict[str, object] = {
            "value_taps": mixer.value_taps * scale[..., None],
            "value_shift": mixer.value_shift * scale,
            "output": mixer.output / scale[:, None],
        }
        changes |= {name: Affine(own.weight / scale[:, None], own.bias) for name, own in mixer.inner.items()}
        return layer.with_(mixer=mixer.with_(**changes))

    def inverse(self) -> FilteredScale:
        return FilteredScale(1 / self.scale)


@dataclass(frozen=True)
class FilteredValues(MixerFactor):
    """(R*) of every channel of RG-LRU between its convolution and what reads it: both gates, and the output.

    No activation stands between them, and the state of a channel follows its scale.
    """

    topic = "vo"

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        count = prod(self.own.channels["value"])
        text = f"(R*)^{count} between convolutions and what reads them"
        yield RedundantPart(part="value_output", count=count, group=text, lemma="definition")

    def freedoms(self) -> Iterator[Freedom]:
        text = "one scale of either sign for each channel, between taps and all columns that read it"
        yield Freedom(f"convolved values of {self.place}", text, "none")

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        shape = self.own.channels["value"]
        yield FilteredScale(sampler.scales(*shape) * sampler.signs(*shape))

    def match(self, target: LayerWeights, source: LayerWeights) -> Part:
        """By the convolutions; by what is written where that fits and these do not."""
        (goal, wanted), (taps, written) = (self._rows(layer) for layer in (target, source))
        group = RealScales(goal.shape[1])
        by_output = cosines(goal, taps) < COLLINEAR_ROWS * cosines(wanted, written)
        return FilteredScale(np.where(by_output, 1 / group.match(wanted, written), group.match(goal, taps)))

    def _rows(self, layer: LayerWeights) -> tuple[Array, Array]:
        """Taps with shifts, and columns of the output, (H, v, ·)."""
        mixer = self.mixer(layer)
        assert mixer.value_taps is not None and mixer.value_shift is not None
        taps = np.concatenate([mixer.value_taps, mixer.value_shift[..., None]], axis=-1)
        return taps, mixer.output.transpose(0, 2, 1)

    def fix(self, layer: LayerWeights, gauge: Gauge) -> LayerWeights:
        """The point of the orbit in the gauge, of taps against what is written; of least norm with those of rows."""
        if gauge != "echelon":
            return self._evened(layer)
        taps, written = self._rows(layer)
        group = RealScales(taps.shape[1])
        fixed = np.stack([group.fix(*rows, gauge, taps.shape[-1] - 1)[0] for rows in zip(taps, written)])
        layer = FilteredScale(group.match(fixed, taps)).act(self.block, layer)
        return layer.with_(mixer=self.mixer(layer).with_(value_taps=fixed[..., :-1], value_shift=fixed[..., -1]))

    def _evened(self, layer: LayerWeights) -> LayerWeights:
        """Rows times s, taps times t/s, shifts times t, what reads them divided by t, of least norm; positive pivots.

        With the norms r, τ, σ, w of these s² = tτ/r, and t > 0 is the root of rτt³ + σ²t⁴ = w².
        """
        mixer = self.mixer(layer)
        (taps, written), shift = self._rows(layer), mixer.value_shift
        assert shift is not None
        squares = (written**2).sum(axis=-1) + sum((own.weight**2).sum(axis=1) for own in mixer.inner.values())
        sizes = np.sqrt((mixer.value.rows**2).sum(axis=-1)), np.sqrt((taps[..., :-1] ** 2).sum(axis=-1))
        alive = (sizes[0] > 0) & (sizes[1] > 0) & (squares > 0)
        r, tau, w = (np.where(alive, own, 1.0) for own in (*sizes, squares))
        t = np.cbrt(w / (r * tau))  # too large: Newton's method comes down from there
        for _ in range(LEAST_NORM_STEPS):
            t = t - (r * tau * t**3 + shift**2 * t**4 - w) / (3 * r * tau * t**2 + 4 * shift**2 * t**3)
        s, pivots = np.sqrt(t * tau / r), first_largest(np.abs(taps[..., :-1]))[..., None]
        signs = np.where(np.take_along_axis(taps, pivots, axis=-1)[..., 0] < 0, -1.0, 1.0)
        s, t = np.where(alive, s, 1.0), np.where(alive, t, 1.0) * signs
        layer = FilteredScale(t).act(self.block, layer)
        mixer = self.mixer(layer)
        assert mixer.value_taps is not None
        moved = mixer.with_(value=mixer.value.scaled(s), value_taps=mixer.value_taps / s[..., None])
        return layer.with_(mixer=moved)

    def errors(self, target: LayerWeights, aligned: LayerWeights, move: Part | None, noise: Noise) -> Iterator[Errors]:
        one, other = self.mixer(target), self.mixer(aligned)
        for name, own in one.inner.items():
            twin = other.inner[name]
            weight, bias = by_entry(own.weight, twin.weight), by_entry(own.bias, twin.bias)
            yield Errors(TensorPart(self.place, name, Along.HEAD), weight, bias)
        assert one.value_shift is not None and other.value_shift is not None
        squares = by_entry(one.value_shift, other.value_shift)
        yield Errors(TensorPart(self.place, "value_shift", Along.HEAD), against_mean(squares))
