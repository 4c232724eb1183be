"""What streams of different widths leave to compare: singular values of score forms and value maps.

They need no R, and say little: independent models have much the same ones. They are told and decide nothing.
"""

from __future__ import annotations

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.limits.rounding import CONTENT_ZERO, GRAM_RIDGE
from attngeom.models.ancestry.content import Forms, content_of
from attngeom.models.ancestry.similarity import assign
from attngeom.models.views import ModelView


def compare_spectra(child: ModelView, parent: ModelView) -> float:
    """Mean over layers of the child of the likeness of spectra with the most alike layer of the parent, at most 1."""
    near, far = ([_layer_spectra(view, i) for i in range(view.model.layers)] for view in (parent, child))
    return float(np.mean([max(_likeness(own, other) for other in near) for own in far]))


def _layer_spectra(view: ModelView, layer: int) -> tuple[Array, Array]:
    """Spectra of the scores and of the value maps of all heads, of norm 1 each."""
    heads = content_of(view, layer).heads[0]
    scores = [spectrum(forms) for forms in (heads.rotary, heads.plain) if forms is not None]
    return _normalised(np.concatenate(scores, axis=1)), _normalised(spectrum(heads.values))


def spectrum(forms: Forms) -> Array:
    """The singular values of the form of every head, decreasing; of rotary forms the sizes of all frequencies."""
    left, right = forms.left[forms.groups], forms.right
    if forms.each:
        sizes = np.linalg.norm(left, axis=-1) * np.linalg.norm(right, axis=-1)
        return np.asarray(-np.sort(-sizes, axis=1))
    roots = []
    for side in (left, right):
        gram = (side @ side.transpose(0, 2, 1)).astype(np.float64)
        ridge = GRAM_RIDGE * np.trace(gram, axis1=1, axis2=2)[:, None, None] + CONTENT_ZERO
        roots.append(lapack.cholesky(gram + ridge * np.eye(gram.shape[-1])))
    return lapack.svdvals(roots[0].transpose(0, 2, 1) @ roots[1])


def _normalised(rows: Array) -> Array:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), CONTENT_ZERO))


def _likeness(child: tuple[Array, Array], parent: tuple[Array, Array]) -> float:
    """Median cosine of spectra of value maps, heads matched by those of their scores."""
    (scores, values), (other_scores, other_values) = child, parent
    rows, columns = assign(_padded(scores, other_scores))
    return float(np.median(_padded(values, other_values)[rows, columns]))


def _padded(one: Array, other: Array) -> Array:
    """Cosines of spectra; shorter ones end in zeros."""
    count = min(one.shape[1], other.shape[1])
    return np.asarray(one[:, :count] @ other[:, :count].T)
