"""The least corrections of two float networks after which they are one function.

Two networks are one function if they are sums of the same terms, layer by layer: A_h = c_h A_k for the heads of a term,
W_k = R C_k and W'_k = D C_k for its values, in bases R, D of the hidden tokens that the next layer reads; after the
last layer W_k = W'_k. These equations are solved by Gauss–Newton steps for the weights of both and for c, R, D, C.
Of all solutions near the given weights that one is taken whose corrections are least, each relative to the error that
its entry may have: zeros stay zeros, and a small head is corrected relative to its own size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from attngeom.comparison.float_terms import CommonTerms, Member, readers, seen_part
from attngeom.comparison.samples import beside
from attngeom.exact import lapack
from attngeom.exact.domains import Array
from attngeom.limits.rounding import (
    COMPLEX_STEP,
    CORRECTED_LARGEST,
    CORRECTED_LEAST,
    CORRECTION_CLEAR,
    CORRECTION_RANKS,
    CORRECTIONS_DIVERGE,
    CORRECTIONS_STILL,
    EQUATION_ROUNDING,
    EQUATION_ROUNDINGS,
    EQUATIONS_SOLVED,
    NOISE_EXPLAINS,
    SUM_ROUNDING,
)
from attngeom.limits.trials import CORRECTION_REPEATS, RANDOM_ERRORS
from attngeom.limits.work import CORRECTED_EQUATIONS, CORRECTED_WEIGHTS
from attngeom.network import Weights
from attngeom.network.symmetry import tensors_of, weights_of
from attngeom.network.symmetry.factor import Tensors


@dataclass(frozen=True)
class Corrections:
    """The largest correction and the root mean square, relative to the errors that the entries may have."""

    largest: float
    mean: float

    @property
    def are_explained(self) -> bool:
        """Whether errors of the weights may be the cause: no correction exceeds 4 of them, and on average one."""
        return self.largest <= NOISE_EXPLAINS and self.mean <= 1


def least_corrections(
    networks: tuple[Weights, Weights], layers: list[CommonTerms], tolerance: float
) -> Corrections | None:
    """The corrections that make two networks the same sums of terms; None if the steps towards such a pair fail.

    Errors are τ of an entry, and rounding errors; for τ = 0 rounding errors alone.

    >>> from attngeom.comparison.float_terms import common_terms
    >>> from attngeom.exact import RR
    >>> from attngeom.network import Architecture, random_symmetry, random_weights
    >>> w = random_weights(Architecture((2, 2), 1), RR, seed=0)
    >>> pair = w, random_symmetry(w.architecture, RR, seed=1).apply(w)
    >>> least_corrections(pair, common_terms(pair, 0.0, 1e-12), 1e-9).largest < 1e-5
    True
    """
    if networks[0].architecture.num_parameters > CORRECTED_WEIGHTS:
        return None
    system = _System(_in_units(networks, layers), layers)
    if not system.is_affordable:
        return None
    errors = system.errors(tolerance)
    known, count = errors > 0, len(errors)
    x, corrections, is_complete = system.start(), np.full(int(known.sum()), np.inf), False
    for step, cut in enumerate((*CORRECTION_RANKS, 0.0)):
        values, slopes = system.equations(x[None])[0], system.slopes(x)
        if not np.all(np.isfinite(values)) or not np.all(np.isfinite(slopes)):
            break
        # Most equations between zeros say nothing.
        is_said = (values != 0) | slopes.any(axis=1)
        values, slopes = values[is_said], slopes[is_said]
        weighted, free = slopes[:, :count][:, known] * errors[known], slopes[:, system.free]
        before, corrections = corrections, (x[:count] - system.given)[known] / errors[known]
        largest = float(np.max(np.abs(corrections), initial=0.0))
        # What errors do not change, they do not explain; and a solution is one only where the next step stays.
        sizes, floors = _lengths(weighted), EQUATION_ROUNDING * np.abs(slopes) @ np.abs(x)
        is_still = np.max(np.abs(corrections - before), initial=0.0) <= CORRECTIONS_STILL * max(1.0, largest)
        if (
            is_complete
            and is_still
            and np.all(np.abs(values) <= EQUATIONS_SOLVED * sizes + EQUATION_ROUNDINGS * floors)
        ):
            return Corrections(largest, float(np.sqrt(np.mean(corrections**2))))
        if not cut or (step > 3 and largest > CORRECTIONS_DIVERGE):
            break

        def curvature(z: Array, y: Array, at: Array = x, J: Array = slopes, is_said: Array = is_said) -> Array:
            """What steps change equations by, beyond the first order."""
            steps = np.zeros((len(z), system.count))
            steps[:, np.flatnonzero(known)], steps[:, system.free] = errors[known] * z, y
            return system.equations(at + steps)[:, is_said] - system.equations(at[None])[:, is_said] - steps @ J.T

        z, y, is_complete = _least_step(
            *(weighted, free, values, corrections), sizes=sizes, floors=floors, cut=cut, curvature=curvature
        )
        x = x.copy()
        x[:count][known] = system.given[known] + errors[known] * z
        x[system.free] += y
    return None


def _least_step(
    *given: Array, sizes: Array, floors: Array, cut: float, curvature: Callable[[Array, Array], Array]
) -> tuple[Array, Array, bool]:
    """The shortest z, and a y, with values + M (z − at) + G y = 0 for the given M, G, values, at; is nothing left out?

    ``sizes`` are the lengths of the rows of M, ``floors`` the rounding errors of equations, ``curvature`` what steps
    change them by beyond the first order. Singular values below ``cut`` are taken as zero; in directions that z moves
    by less than rounding errors and the second order of allowed errors, only what these do not explain is solved for.
    """
    M, G, values, at = given
    rows, columns = 1 / _nonzero(sizes + floors), np.ones(G.shape[1])
    for _ in range(2):
        columns /= _nonzero(np.max(np.abs(rows[:, None] * G * columns), axis=0, initial=0.0))
        rows = rows / np.maximum(1.0, np.max(np.abs(rows[:, None] * G * columns), axis=1, initial=0.0))
    M, G, goal = rows[:, None] * M, rows[:, None] * G * columns, rows * (M @ at - values)
    left, sizes, right = lapack.svd(G) if G.size else (np.eye(len(G)), np.zeros(0), np.zeros((0, 0)))
    rank = int(np.sum(sizes > cut * sizes.max(initial=0.0)))
    back = (right[:rank].T / sizes[:rank]) @ left[:, :rank].T
    rest = left[:, rank:].T
    bound = rest @ M
    units = _nonzero(np.linalg.norm(bound, axis=1))
    left, sizes, right = lapack.svd(bound / units[:, None], full_matrices=False)
    seen = left.T @ (rest / units[:, None])
    tried = np.random.default_rng(0).standard_normal((RANDOM_ERRORS, M.shape[1]))
    second = curvature(tried, -(tried @ M.T) @ back.T * columns) * rows
    explained = np.sqrt(seen**2 @ (rows * floors) ** 2 + np.mean((second @ seen.T) ** 2, axis=0))
    is_moved, is_clear = sizes > cut * sizes.max(initial=0.0), sizes >= np.minimum(explained, CORRECTION_CLEAR)
    z, y = np.zeros(M.shape[1]), np.zeros(G.shape[1])
    # What a solution misses is solved for again: small entries become exact relative to themselves.
    for _ in range(CORRECTION_REPEATS):
        missing = seen @ (goal - M @ z - G @ y)
        unexplained = np.sign(missing) * np.maximum(np.abs(missing) - explained, 0.0)
        missing = np.where(is_moved, np.where(is_clear, missing, unexplained), 0.0)
        z = z + right.T @ (missing / _nonzero(sizes))
        y = y + back @ (goal - M @ z - G @ y)
    missing, floor = seen @ (goal - M @ z - G @ y), EQUATION_ROUNDING * np.abs(seen) @ np.abs(goal)
    return z, y * columns, bool(np.all(is_moved | (np.abs(missing) <= NOISE_EXPLAINS * (explained + floor))))


def _lengths(a: Array) -> Array:
    """The lengths of rows; small numbers do not vanish."""
    largest = np.max(np.abs(a), axis=1, initial=0.0)
    return np.asarray(largest * np.linalg.norm(a / _nonzero(largest)[:, None], axis=1))


def _in_units(networks: tuple[Weights, Weights], layers: list[CommonTerms]) -> tuple[Weights, Weights]:
    """The same equations between numbers of moderate size.

    They are homogeneous in the A of a term, and in its values unless Σ V is seen, which is homogeneous in those of the
    layer: so all heads of a term, or of a layer, are multiplied by one power of two.
    """
    seen = networks[0].architecture.view
    sides = [tensors_of(weights) for weights in networks]
    for index, layer in enumerate(layers):
        everybody = [Member(side, head, 0.0) for side in (0, 1) for head in range(networks[0].architecture.heads)]
        paired = {(member.side, member.head) for term in layer.terms for member in term}
        alone = [[member] for member in everybody if (member.side, member.head) not in paired]
        for members in (*layer.terms, *alone):
            _scale_together(sides, index, members, ("Q", "K"))
        for members in [everybody] if seen in ("signed", "nothing") else (*layer.terms, *alone):
            _scale_together(sides, index, members, ("V", "O"))
    architecture, domain = networks[0].architecture, networks[0].domain
    return weights_of(architecture, sides[0], domain), weights_of(architecture, sides[1], domain)


def _scale_together(sides: list[Tensors], index: int, members: list[Member], letters: tuple[str, str]) -> None:
    """Multiply the products of two tensors of all members by one power of two, each pair of them evened."""
    present = [x for x in letters if (index, 0, x) in sides[0]]
    pairs = [[(index, member.head, x) for x in present] for member in members]
    sizes = [[_exponent(sides[member.side][place]) for place in pair] for member, pair in zip(members, pairs)]
    total = max(sum(size) for size in sizes)
    for member, pair, size in zip(members, pairs, sizes):
        gap = sum(size) - total
        for number, (place, exponent) in enumerate(zip(pair, size)):
            share = gap // len(pair) if number == 0 else gap - gap // len(pair)
            sides[member.side][place] = np.ldexp(sides[member.side][place], share - exponent)


def _exponent(a: Array) -> int:
    return int(np.frexp(np.max(np.abs(a), initial=0.0))[1])


def _nonzero(sizes: Array) -> Array:
    return np.where(sizes > 0, sizes, 1.0)


class _System:
    """The equations of two networks that are the same sums of terms, and all unknowns as one vector."""

    def __init__(self, networks: tuple[Weights, Weights], layers: list[CommonTerms]) -> None:
        self.architecture, self.networks = networks[0].architecture, networks
        self.layers = layers
        self.seen = self.architecture.view
        self.tensors = [tensors_of(weights) for weights in networks]
        self.given = np.concatenate([a.ravel() for side in self.tensors for a in side.values()])
        self.places: dict[tuple[object, ...], tuple[slice, tuple[int, ...]]] = {}
        self.initial: list[Array] = []
        end = 0
        for key, a in self._unknowns():
            self.places[key] = slice(end, end + a.size), a.shape
            self.initial.append(a.ravel())
            end += a.size
        self.count = end
        fixed = [place for index in range(len(layers)) for place in (*self._chosen(index), *self._zeros(index))]
        self.free = np.setdiff1d(np.arange(len(self.given), end), fixed)

    def _unknowns(self) -> Iterator[tuple[tuple[object, ...], Array]]:
        for side, tensors in enumerate(self.tensors):
            for place, a in tensors.items():
                yield ("tensor", side, *place), a
        for index, layer in enumerate(self.layers):
            if self.seen == "scaled":
                for term in layer.terms:
                    for member in term[1:]:
                        yield ("factor", index, member), np.array([[member.factor]])
            if layer.bases is not None:
                for side in (0, 1):
                    yield ("basis", index, side), layer.bases[side]
                rank, width = layer.bases[0].shape[1], self._input_rank(index)
                for k in range(len(layer.terms) + (self.seen in ("signed", "nothing"))):
                    yield ("share", index, k), np.zeros((rank, width))

    def _input_rank(self, index: int) -> int:
        before = self.layers[index - 1].bases if index else None
        return self.architecture.widths[index] if before is None else before[0].shape[1]

    def _chosen(self, index: int) -> list[int]:
        """Entries of C that are kept as they are, a basis of its columns: (R g, D g, g⁻¹ C) is the same for all g."""
        if self.layers[index].bases is None:
            return []
        numbers, keys = np.arange(self.count)[None], [key for key in self.places if key[:2] == ("share", index)]
        places = np.concatenate([self._get(numbers, *key)[0] for key in keys], axis=1)
        C = self.start()[places]
        _, order = lapack.pivoted_qr(C / _nonzero(np.linalg.norm(C, axis=0)))
        return [int(place) for place in places[:, order[: len(C)]].ravel()]

    def _zeros(self, index: int) -> Iterator[int]:
        """Rows of R and D for hidden units that are always zero, and columns of C that nothing reads."""
        numbers, x = np.arange(self.count)[None], self.start()
        for key in self.places:
            if key[0] in ("basis", "share") and key[1] == index:
                places = self._get(numbers, *key)[0]
                lines = places if key[0] == "basis" else places.T
                yield from (int(place) for place in lines[~x[lines].any(axis=1)].ravel())

    @property
    def is_affordable(self) -> bool:
        """Whether there are few unknowns, of moderate size: products of them neither overflow nor vanish."""
        exponents = np.frexp(self.given[self.given != 0])[1]
        is_moderate = bool(np.all((exponents < CORRECTED_LARGEST) & (exponents > CORRECTED_LEAST)))
        return is_moderate and self.equations(self.start()[None]).shape[1] <= CORRECTED_EQUATIONS

    def errors(self, tolerance: float) -> Array:
        """τ of each entry, and rounding errors beside the others of its row and column; zeros are exact."""
        sizes = (
            np.where(a != 0, np.hypot(tolerance * a, SUM_ROUNDING * beside(a)), 0.0)
            for side in self.tensors
            for a in side.values()
        )
        return np.concatenate([size.ravel() for size in sizes])

    def start(self) -> Array:
        """The given weights, the guessed bases, and the C that fit these best."""
        x = np.concatenate(self.initial)
        for index, layer in enumerate(self.layers):
            if layer.bases is None:
                continue
            parts = [list(self._sums(x[None], index, side)) for side in (0, 1)]
            readers = [self._reader(index, side) for side in (0, 1)]
            joined = np.concatenate([E @ basis for E, basis in zip(readers, layer.bases)])
            for k, (one, two) in enumerate(zip(*parts)):
                target = np.concatenate([readers[0] @ one[0], readers[1] @ two[0]])
                size = lapack.norm(target)
                place, _ = self.places["share", index, k]
                if size:
                    x[place] = (lapack.lstsq(joined, target / size) * size).real.ravel()
        return x

    def _get(self, x: Array, *key: object) -> Array:
        place, shape = self.places[key]
        return x[:, place].reshape(len(x), *shape)

    def _reader(self, index: int, side: int) -> Array:
        """Rows that span what the next layer reads of the tokens after a layer: those orthogonal to the rest."""
        unread = self.layers[index].unread[side]
        width = self.architecture.widths[index + 1]
        return lapack.svd(unread)[0][:, unread.shape[1] :].T if unread.size else np.eye(width)

    def _basis(self, x: Array, index: int, side: int) -> Array | None:
        """R or D before a layer."""
        if index == 0 or self.layers[index - 1].bases is None:
            return None
        return self._get(x, "basis", index - 1, side)

    def _scores(self, x: Array, index: int, member: Member) -> Array:
        Q, K = (self._get(x, "tensor", member.side, index, member.head, name) for name in "QK")
        B = self._basis(x, index, member.side)
        if B is not None:
            Q, K = Q @ B, K @ B
        return seen_part(self.architecture, np.swapaxes(K, -1, -2) @ Q)

    def _values(self, x: Array, index: int, side: int, head: int) -> Array:
        V = self._get(x, "tensor", side, index, head, "V")
        B = self._basis(x, index, side)
        if B is not None:
            V = V @ B
        return self._get(x, "tensor", side, index, head, "O") @ V if self.architecture.is_factored else V

    def _factor(self, x: Array, index: int, member: Member, term: list[Member]) -> Array | float:
        if self.seen == "scaled" and member is not term[0]:
            return self._get(x, "factor", index, member)
        return member.factor

    def _sums(self, x: Array, index: int, side: int) -> Iterator[Array]:
        """Σ V where that is seen, and W_k of one network for all terms."""
        heads = range(self.architecture.heads)
        maps = [self._values(x, index, side, head) for head in heads]
        zero = np.zeros_like(maps[0])
        if self.seen in ("signed", "nothing"):
            yield sum(maps, zero)
        for term in self.layers[index].terms:
            own = [member for member in term if member.side == side]
            yield sum((self._factor(x, index, member, term) * maps[member.head] for member in own), zero)

    def equations(self, x: Array) -> Array:
        """What all equations miss, for several vectors of unknowns (N, n)."""
        rows: list[Array] = []
        for index, layer in enumerate(self.layers):
            for term in layer.terms:
                lead = self._scores(x, index, term[0])
                rows += [
                    self._scores(x, index, member) - self._factor(x, index, member, term) * lead for member in term[1:]
                ]
            rows += [self._scores(x, index, member) for member in layer.idle]
            sums = [list(self._sums(x, index, side)) for side in (0, 1)]
            if layer.bases is None:
                rows += [one - two for one, two in zip(*sums)]
                continue
            for side in (0, 1):
                basis, E = self._get(x, "basis", index, side), self._reader(index, side)
                rows += [E @ (W - basis @ self._get(x, "share", index, k)) for k, W in enumerate(sums[side])]
                rows += list(self._unread_parts(x, index, side))
        return np.concatenate([part.reshape(len(x), -1) for part in rows], axis=1)

    def _unread_parts(self, x: Array, index: int, side: int) -> Iterator[Array]:
        """What the next layer reads of directions that it should not read."""
        unread = self.layers[index].unread[side]
        if unread.size:
            for place, head in enumerate(self.networks[side].layers[index + 1]):
                for name in readers(self.architecture, head, self.layers[index].close):
                    yield self._get(x, "tensor", side, index + 1, place, name) @ unread

    def slopes(self, x: Array) -> Array:
        """The derivative of all equations: exact up to rounding, for they are polynomials, by imaginary steps."""
        sizes = COMPLEX_STEP * np.where(x != 0, np.abs(x), 1.0)
        moved = x[None] + 1j * np.diag(sizes)
        return np.asarray(self.equations(moved).imag.T / sizes)
