"""Second moments of contents, which have no names: R from them where tokens cannot tell.

Moments S of one model are R S' Rᵀ of the other, for all heads and units together. R ↦ Σ ⟨S, R S' Rᵀ⟩ is brought to a
maximum by polar factors, from the eigenvectors of the sums; their signs are those on which the moments agree. R and −R
have the same second moments: the mean row that switches units tells them apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.limits.rounding import CONTENT_ZERO, GRAM_RIDGE
from attngeom.limits.trials import MOMENT_STEPS
from attngeom.models.ancestry.content import Content, Forms


@dataclass(frozen=True, eq=False)
class Moments:
    """Second moments by name, each of norm 1, and the mean of the rows that switch units."""

    named: Mapping[str, Array]
    mean: Array


def layer_moments(content: Content) -> Moments:
    """AᵀA, A Aᵀ, WᵀW and W Wᵀ summed over heads of norm 1, and the same of units; no gauge moves them."""
    heads = content.heads[0]
    sums: dict[str, Array] = {}

    def add(name: str, rows: Array, weights: Array | None = None) -> None:
        flat = rows.reshape(-1, rows.shape[-1])
        moment = (flat.conj() if weights is None else flat.conj() * weights[:, None]).T @ flat
        sums[name] = sums.get(name, 0.0) + moment.real.astype(np.float64)

    for name, forms in (("plain", heads.plain), ("values", heads.values), ("rotary", heads.rotary)):
        if forms is not None:
            left, right = _halves(forms)
            add(f"{name} left", left)
            add(f"{name} right", right)
    mean = np.zeros(heads.values.left.shape[-1])
    for units in content.mlps:
        up, down, switch = units.incoming.take(), units.down.take(), units.switch.take()
        sizes, downs = np.linalg.norm(up, axis=1), np.linalg.norm(down, axis=1)
        add("up", up, downs**2)
        add("down", down, sizes**2)
        if units.up is not None:
            add("switch", switch)
        if not units.is_odd:
            mean += (sizes * downs / np.maximum(np.linalg.norm(switch, axis=1), CONTENT_ZERO)) @ switch
    return Moments({name: moment / (np.linalg.norm(moment) or 1.0) for name, moment in sums.items()}, mean)


def _halves(forms: Forms) -> tuple[Array, Array]:
    """Rows whose Gram matrices are A Aᵀ and AᵀA of every head, of norm 1 each."""
    left, right = forms.left[forms.groups], forms.right
    sizes = np.maximum(forms.sizes, CONTENT_ZERO)[:, None, None]
    if forms.each:
        lengths = [np.linalg.norm(side, axis=-1, keepdims=True) for side in (left, right)]
        return left * lengths[1] / sizes, right * lengths[0] / sizes
    roots = []
    for side in (left, right):
        gram = side @ side.transpose(0, 2, 1)
        ridge = GRAM_RIDGE * np.trace(gram, axis1=1, axis2=2)[:, None, None] + CONTENT_ZERO
        roots.append(lapack.cholesky(gram + ridge * np.eye(gram.shape[-1])).transpose(0, 2, 1))
    return roots[1] @ left / sizes, roots[0] @ right / sizes


def thirds(layers: Sequence[Moments]) -> list[Moments]:
    """The moments of the first, middle and last layers, summed."""
    computed = []
    for part in range(3):
        own = [moments for i, moments in enumerate(layers) if 3 * i // len(layers) == part]
        if own:
            names = set.intersection(*(set(moments.named) for moments in own))
            sums = {name: np.sum([moments.named[name] for moments in own], axis=0) for name in sorted(names)}
            computed.append(Moments(sums, np.sum([moments.mean for moments in own], axis=0)))
    return computed


def most_alike(near: Sequence[Moments], far: Sequence[Moments]) -> tuple[int, int]:
    """The two layers whose moments have the most alike eigenvalues, which no R changes."""
    spectra = [[{n: lapack.eigvalsh(s) for n, s in m.named.items()} for m in side] for side in (near, far)]

    def gap(i: int, j: int) -> float:
        one, other = spectra[0][i], spectra[1][j]
        return float(np.mean([np.abs(one[name] - other[name]).sum() for name in sorted(one.keys() & other.keys())]))

    return min(((i, j) for i in range(len(near)) for j in range(len(far))), key=lambda place: gap(*place))


def match_moments(near: Sequence[Moments], far: Sequence[Moments]) -> Array:
    """R with R S' Rᵀ nearest to S, for lists of moments that belong together."""
    pairs = [
        (one.named[name], other.named[name])
        for one, other in zip(near, far)
        for name in sorted(one.named.keys() & other.named.keys())
    ]
    bases = [lapack.eigh(np.sum(side, axis=0))[1] for side in zip(*pairs)]
    agreement = np.sum([(bases[0].T @ s @ bases[0]) * (bases[1].T @ t @ bases[1]) for s, t in pairs], axis=0)
    np.fill_diagonal(agreement, 0.0)
    signs = np.where(lapack.eigh(agreement)[1][:, -1] < 0, -1.0, 1.0)
    change = (bases[0] * signs) @ bases[1].T
    reached = -np.inf
    for _ in range(MOMENT_STEPS):
        gradient = np.sum([s @ change @ t for s, t in pairs], axis=0)
        value = float((gradient * change).sum())
        if value <= reached * (1 + 1e-12):
            break
        reached = value
        left, _, right = lapack.svd(gradient)
        change = left @ right
    agree = sum(float(one.mean @ change @ other.mean) for one, other in zip(near, far))
    return np.asarray(change if agree >= 0 else -change)
