"""Comparison for kinds of attention beyond the papers: by the invariants of heads, or an input that separates.

Layers of any kind of attention matched by their invariants, one after the other, with the bases between them.

Without skip connections outputs of a layer are known up to a change of basis: columns of its value maps that are a
basis become unit vectors, on both sides the same ones, and the next layer is read in these coordinates. Constants that
biases of the next layer can take back are added to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from attngeom.comparison.results import Comparison, Report, Separation
from attngeom.comparison.samples import error_sizes, spread
from attngeom.errors import DomainError, InputError, SingularError
from attngeom.exact.domains import QQ, RR, Array, Balls, Domain
from attngeom.exact.lapack import pivoted_qr
from attngeom.exact.precise import measured_rank
from attngeom.limits.memory import SAMPLE_TOKENS
from attngeom.limits.rounding import NOISE_EXCLUDED, NOISE_EXPLAINS, SEPARATING_BITS, SUM_ROUNDING
from attngeom.limits.trials import NOISE_COPIES, SEPARATING_INPUTS, SEPARATING_SHRINK
from attngeom.network import Head, Weights, forward
from attngeom.network.invariants import HeadInvariants, exchanged, head_invariants, output_bias, pivot_of
from attngeom.network.programs import is_rational
from attngeom.network.symmetry.factor import READING
from attngeom.network.symmetry.translation import BIASES, has_translations

Same = Callable[[Array, Array], bool]
"""Whether two arrays (copies, entries) agree: exactly, or within the noise that the copies show."""


@dataclass(frozen=True, eq=False)
class _ReadLayers:
    """One network with its copies, layer by layer: the next one reads basis · y + constant for hidden coordinates y."""

    copies: list[Weights]
    bases: list[Array] | None = None
    constants: list[Array] | None = None

    @property
    def domain(self) -> Domain:
        return self.copies[0].domain

    def heads(self, index: int, place: int) -> list[Head]:
        """One head of all copies, as it reads the hidden coordinates."""
        return [self._read(n, copy.layers[index][place]) for n, copy in enumerate(self.copies)]

    def _read(self, n: int, head: Head) -> Head:
        own = dict(head.tensors)
        for letter in READING:
            if letter not in own:
                continue
            if self.constants is not None:
                bias = BIASES.get(letter, f"b{letter}")
                own[bias] = self.domain.add(own[bias], self.domain.matmul(own[letter], self.constants[n]))
            if self.bases is not None:
                own[letter] = self.domain.matmul(own[letter], self.bases[n])
        return Head.of(own)

    def biases(self, index: int) -> list[Array] | None:
        """What the layer adds to its outputs, with the constants of the layers before it where it reads them."""
        kind, listed = self.copies[0].architecture.mechanism, []
        for n, copy in enumerate(self.copies):
            heads = [self._read(n, head) for head in copy.layers[index]]
            bias = output_bias(heads, copy.shared[index] if copy.shared else {}, kind, self.domain)
            if bias is not None:
                listed.append(bias)
        return listed or None


def match_layers(first: list[Weights], second: list[Weights], same: Same) -> bool:
    """Whether all layers have the same invariants, heads in some order; each side with its copies.

    True proves that the functions are the same, to the accuracy of ``same``; False proves nothing.
    """
    architecture = first[0].architecture
    one, two = _ReadLayers(first), _ReadLayers(second)
    for index in range(architecture.num_layers):
        last = index == architecture.num_layers - 1
        step = _match_layer(one, two, index, same, is_hidden=not last and not architecture.residual)
        if step is None:
            return False
        moves = has_translations(architecture) and not last
        biases = one.biases(index), two.biases(index)
        if architecture.residual and moves:
            one, two = (_carried(side, own) for side, own in zip((one, two), biases))
            continue
        if architecture.residual and last:
            biases = _added(one, biases[0]), _added(two, biases[1])
        own, other = biases
        if last or not moves:
            if own is not None and other is not None and not _agree(own, other, same):
                return False
            if not last:
                one, two = step
            continue
        one, two = (replace(side, constants=values) for side, values in zip(step, biases))
    return True


def _added(side: _ReadLayers, biases: list[Array] | None) -> list[Array] | None:
    """Constants that skip connections carry to the end, and those of the last layer."""
    if side.constants is None:
        return biases
    return side.constants if biases is None else [side.domain.add(*pair) for pair in zip(side.constants, biases)]


def _carried(side: _ReadLayers, biases: list[Array] | None) -> _ReadLayers:
    return replace(side, constants=_added(side, biases))


def _agree(one: list[Array], two: list[Array], same: Same) -> bool:
    return one[0].shape == two[0].shape and same(np.stack([x.ravel() for x in one]), np.stack([x.ravel() for x in two]))


def _match_layer(
    one: _ReadLayers, two: _ReadLayers, index: int, same: Same, is_hidden: bool
) -> tuple[_ReadLayers, _ReadLayers] | None:
    """Both sides behind the layer; None if heads, or what they write, do not agree."""
    kind = one.copies[0].architecture.mechanism
    remaining = list(range(len(two.copies[0].layers[index])))
    maps: tuple[list[Array], list[Array]] = ([], [])
    for place in range(len(one.copies[0].layers[index])):
        heads = one.heads(index, place)
        pivot = pivot_of(heads[0], kind, one.domain, is_hidden)
        own = next(_variants(one, heads, pivot, is_hidden), None)
        if own is None:
            return None
        for candidate in remaining if kind.orders_heads else [place]:
            variants = _variants(two, two.heads(index, candidate), pivot, is_hidden)
            matches = (_matched_values(own, x, same, is_hidden, kind.has_linear_values) for x in variants)
            values = next((x for x in matches if x is not None), None)
            if values is not None:
                break
        else:
            return None
        remaining.remove(candidate)
        maps[0].append(own.values)
        maps[1].append(values)
    return _in_bases(one, two, maps, same) if is_hidden else (replace(one, bases=None), replace(two, bases=None))


def _in_bases(
    one: _ReadLayers, two: _ReadLayers, maps: tuple[list[Array], list[Array]], same: Same
) -> tuple[_ReadLayers, _ReadLayers] | None:
    """Both sides with columns of their value maps as bases of the hidden coordinates; None if the others differ."""
    domain = one.domain
    stacks = [np.concatenate(parts, axis=2) for parts in maps]
    columns = _independent(stacks[0][0], domain)
    sides, coordinates = [], []
    for side, stack in zip((one, two), stacks):
        bases = [W[:, columns] for W in stack]
        try:
            inside = np.stack([_coordinates(B, W, domain) for B, W in zip(bases, stack)])
        except SingularError:
            return None
        back = np.stack([domain.matmul(B, Y) for B, Y in zip(bases, inside)])
        is_whole = len(columns) == stack.shape[1]
        if not is_whole and not same(back.reshape(len(back), -1), stack.reshape(len(stack), -1)):
            return None
        others = np.delete(inside, columns, axis=2)
        coordinates.append(others.reshape(len(others), -1))
        sides.append(replace(side, bases=bases))
    return (sides[0], sides[1]) if same(*coordinates) else None


def _independent(W: Array, domain: Domain) -> list[int]:
    """Columns of W that are a basis of their span."""
    if domain.is_exact:
        return list(domain.rref(W).pivots)
    return sorted(pivoted_qr(W)[1][: measured_rank(W, domain).value].tolist())


def _coordinates(B: Array, W: Array, domain: Domain) -> Array:
    """Y with B Y = W where there is one: the least squares solution."""
    return domain.matmul(domain.inverse(domain.matmul(B.T, B)), domain.matmul(B.T, W))


def _variants(side: _ReadLayers, heads: list[Head], pivot: int, is_hidden: bool) -> Iterator[HeadInvariants]:
    """The invariants of a head for all copies, and with its two maps exchanged where it has two."""
    kind, domain = side.copies[0].architecture.mechanism, side.domain
    choices = [heads]
    if "lambda" in heads[0].extra and not domain.is_zero(heads[0].extra["lambda"]):
        choices.append([exchanged(head, domain) for head in heads])
    for choice in choices:
        try:
            listed = [head_invariants(head, kind, domain, pivot, is_hidden) for head in choice]
        except (InputError, SingularError):
            continue
        yield HeadInvariants(
            whole=np.stack([x.whole for x in listed]),
            channels=np.stack([x.channels for x in listed]),
            rows=np.stack([x.rows for x in listed]),
            values=np.stack([x.values for x in listed]),
        )


def _matched_values(
    own: HeadInvariants, other: HeadInvariants, same: Same, is_hidden: bool, is_linear: bool
) -> Array | None:
    """The values of the other head, its channels in the order of the own ones; None if the heads do not agree.

    Where the layer is hidden, values may still differ by a change of basis.
    """
    if own.whole.shape != other.whole.shape or own.values.shape != other.values.shape:
        return None
    if not same(own.whole, other.whole) or _matched_rows(own.channels, other.channels, same) is None:
        return None
    if is_linear:
        agrees = is_hidden or same(*(x.values.reshape(len(x.values), -1) for x in (own, other)))
        return other.values if agrees else None
    rows = [x.rows if is_hidden else np.concatenate([x.rows, x.values.swapaxes(1, 2)], axis=2) for x in (own, other)]
    order = _matched_rows(rows[0], rows[1], same)
    return None if order is None else other.values[:, :, order]


def _matched_rows(one: Array, two: Array, same: Same) -> list[int] | None:
    """The places of equal rows in the second of two arrays (copies, rows, entries); None if there are none."""
    remaining, places = list(range(two.shape[1])), []
    for row in range(one.shape[1]):
        equal = next((k for k in remaining if same(one[:, row], two[:, k])), None)
        if equal is None:
            return None
        remaining.remove(equal)
        places.append(equal)
    return places


SAME = "heads with the same invariants, on which the function depends at every number of tokens"
NOT_TOLD = "no symmetry of single layers carries one to the other, and no input that was tried separates them"


def compare_kinds(first: Weights, second: Weights, tolerance: float, seed: int, report: Report) -> Comparison:
    """Whether two networks of a kind beyond the papers, or with options, are one function.

    Same: layer by layer, heads have the same invariants in some order. Different: an input with different outputs,
    exactly, in balls, or for floats beyond what weights known to ``tolerance`` explain. Else it cannot be told.
    """
    if first.domain.rounds:
        return _compare_floats(first, second, tolerance, seed, report)
    if first.domain != QQ:
        raise DomainError(f"weights over {first.domain.name} given; rational or float weights are required")
    report("invariants", 0, None)
    if match_layers([first], [second], QQ.equal):
        return Comparison.proven(True, SAME, seed=seed)
    separation = _separate(first, second, seed)
    if separation is not None:
        return Comparison.proven(False, "an input with different outputs", separation=separation, seed=seed)
    return Comparison(same_function=None, standing="undecided", reason=NOT_TOLD, seed=seed)


def _separate(first: Weights, second: Weights, seed: int) -> Separation | None:
    """An input at which exact outputs differ, or balls do not overlap."""
    architecture = first.architecture
    rng = np.random.default_rng(seed)
    shape = (architecture.widths[0], min(architecture.tokens, SAMPLE_TOKENS))
    rational = is_rational(architecture)
    for number in range(SEPARATING_INPUTS):
        X = QQ.convert(rng.integers(-9, 10, size=shape)) / SEPARATING_SHRINK ** (number % 4)
        for domain in [QQ] if rational else [Balls(bits) for bits in SEPARATING_BITS]:
            try:
                outputs = [forward(weights.to(domain), domain.convert(X)) for weights in (first, second)]
            except (SingularError, DomainError):
                continue
            if not domain.equal(*outputs):
                return Separation(X, (outputs[0], outputs[1]), domain)
    return None


def _compare_floats(first: Weights, second: Weights, tolerance: float, seed: int, report: Report) -> Comparison:
    """Floats: differences of invariants within four times their noise, or of outputs beyond thirty times theirs."""
    report("invariants", 0, None)
    copies = [_copies(weights, tolerance, seed) for weights in (first, second)]
    if match_layers(copies[0], copies[1], _is_within_noise):
        reason = f"{SAME}, to the accuracy {tolerance:g}"
        return Comparison(same_function=True, standing="estimate", reason=reason, tolerance=tolerance, seed=seed)
    rng = np.random.default_rng(seed)
    architecture = first.architecture
    shape = (SEPARATING_INPUTS, architecture.widths[0], min(architecture.tokens, SAMPLE_TOKENS))
    X = rng.standard_normal(shape) / float(SEPARATING_SHRINK) ** (np.arange(SEPARATING_INPUTS) % 4)[:, None, None]
    with np.errstate(all="ignore"):
        outputs = [np.stack([forward(weights, X) for weights in side]) for side in copies]
        difference = np.abs(outputs[0][0] - outputs[1][0])
        noise = np.hypot(*(spread(side) for side in outputs))
    # Exponentials of large scores overflow: such inputs tell nothing.
    told = np.all(np.isfinite(difference + noise), axis=(1, 2), keepdims=True)
    difference, noise = np.where(told, difference, 0.0), np.where(told, noise, 0.0)
    if np.any(difference > NOISE_EXCLUDED * noise):
        place = int(np.argmax((difference / np.maximum(noise, 1e-300)).max(axis=(1, 2))))
        separation = Separation(X[place], (outputs[0][0][place], outputs[1][0][place]), RR)
        return Comparison(
            same_function=False,
            standing="estimate",
            reason="an input with outputs farther apart than inaccurate weights explain",
            separation=separation,
            tolerance=tolerance,
            difference=float(difference[place].max()),
            noise=float(noise[place].max()),
            seed=seed,
        )
    return Comparison(same_function=None, standing="undecided", reason=NOT_TOLD, tolerance=tolerance, seed=seed)


def _copies(weights: Weights, tolerance: float, seed: int) -> list[Weights]:
    """The weights, and copies with the errors that a tolerance allows."""
    rng = np.random.default_rng(seed)
    tensors = dict(weights.tensors())
    sizes = {name: error_sizes(array, tolerance) for name, array in tensors.items()}
    copies = [weights]
    for _ in range(NOISE_COPIES):
        noisy = {name: array + sizes[name] * rng.standard_normal(array.shape) for name, array in tensors.items()}
        copies.append(Weights.from_tensors(weights.architecture, noisy, RR))
    return copies


def _is_within_noise(one: Array, two: Array) -> bool:
    """Whether every entry differs by at most four times its noise, and by rounding errors."""
    noise = np.hypot(spread(one), spread(two))
    return bool(np.all(np.abs(one[0] - two[0]) <= NOISE_EXPLAINS * noise + SUM_ROUNDING * np.abs(one[0])))
