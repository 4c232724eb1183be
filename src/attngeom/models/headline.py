"""Which tensors make two models differ: the smallest set, by their entries first, then by the alignment of contents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom import digits
from attngeom.limits.memory import CACHED_ENTRIES
from attngeom.limits.shown import LISTED_NAMES
from attngeom.models.affine import row_blocks
from attngeom.models.layer_comparison import LayerComparison
from attngeom.models.mismatches import Mismatch
from attngeom.models.model import Model
from attngeom.models.names import file_name


@dataclass(frozen=True, kw_only=True)
class Blame:
    """The tensors that explain a difference; ``changed`` are all tensors whose entries differ, None if most do."""

    tensors: tuple[str, ...] = ()
    changed: frozenset[str] | None = None
    equal: int = 0
    """How many tensors of both files have equal entries."""

    def to_json(self) -> dict[str, Any]:
        return {"tensors": list(self.tensors), "equal_tensors": self.equal}

    def is_equal(self, name: str) -> bool:
        """Whether both files have the same entries in a tensor that does not fit."""
        return self.changed is not None and file_name(name) not in self.changed


def find_blame(one: Model, other: Model, layers: Sequence[LayerComparison]) -> Blame:
    """The smallest set of tensors that explains what does not fit.

    Where the files agree in some tensors, one was edited: of what was changed, the tensors that do not fit, or all that
    were changed in that layer if a tensor does not fit that was not changed. Where no tensor is the same, the model was
    moved, and the tensors that do not fit are all that is known.
    """
    unfit = {layer.layer: _unfit(layer) for layer in layers if layer.same is not True}
    changed, equal = changed_tensors(one, other)
    if not equal:
        return Blame(tensors=tuple(name for names in unfit.values() for name in names))
    names_of_blame: list[str] = []
    for layer, names in unfit.items():
        own = [name for name in changed if name in _tensors_of(one, other, layer)]
        fitting = [name for name in names if name in own]
        names_of_blame += fitting if len(fitting) == len(names) else own
    return Blame(tensors=tuple(dict.fromkeys(names_of_blame or changed)), changed=frozenset(changed), equal=equal)


def _unfit(layer: LayerComparison) -> list[str]:
    """The tensors of a layer that do not fit, the worst first."""
    rows = sorted((*layer.wrong, *layer.suspects), key=lambda row: -row[1].ratio)
    return list(dict.fromkeys(file_name(name) for name, _ in rows))


def _tensors_of(one: Model, other: Model, layer: int | str) -> set[str]:
    """Names in the files of a layer, or of everything outside the layers."""
    tensors: set[str] = set()
    for model in (one, other):
        if isinstance(layer, int):
            model, number = model.origin(layer)
            tensors |= {model.stored(name) for name in model.layer_names(number)}
            continue
        inside = {model.stored(name) for i in range(model.layers) for name in _names_of(model, i)}
        tensors |= set(model.tensors) - inside
    return tensors


def _names_of(model: Model, layer: int) -> dict[str, tuple[int, ...]]:
    source, number = model.origin(layer)
    return source.layer_names(number)


def changed_tensors(one: Model, other: Model) -> tuple[list[str], int]:
    """Tensors whose entries differ or that one file lacks, in the order of the files, and the number of equal ones."""
    left, right = one.tensors, other.tensors
    names = [*left, *(name for name in right if name not in left)]
    changed = [name for name in names if not _is_equal(one, other, name)]
    return changed, len(names) - len(changed)


def _is_equal(one: Model, other: Model, name: str) -> bool:
    left, right = one.tensors, other.tensors
    if name not in left or name not in right or left.headers[name].shape != right.headers[name].shape:
        return False
    starts = [tensors.beginning(name, CACHED_ENTRIES) for tensors in (left, right)]
    if starts[0] is not None and starts[1] is not None and not np.array_equal(starts[0], starts[1]):
        return False
    one_raw, other_raw = (np.atleast_1d(tensors.raw(name)) for tensors in (left, right))
    return all(np.array_equal(one_raw[part], other_raw[part]) for part in row_blocks(one_raw))


def sentence(blame: Blame, worst: tuple[str, Mismatch] | None) -> str:
    """One sentence that names what differs."""
    names = list(blame.tensors[:3])
    if not names:
        return "" if worst is None else measured(*worst)
    text = " and ".join(names) if len(names) < 3 else ", ".join(names)
    if len(blame.tensors) > len(names):
        text += f" and {len(blame.tensors) - len(names)} more tensors"
    verb = "differs" if len(blame.tensors) == 1 else "differ"
    rest = f", {blame.equal} tensors are equal" if blame.equal else ""
    return f"{text} {verb}{rest}" + ("" if worst is None else f"; {measured(*worst)}")


VERDICTS = {False: ("differs", "differ"), None: ("undecided", "undecided"), True: ("agrees", "agree")}
"""What is said of one layer and of several."""


def measured(name: str, mismatch: Mismatch) -> str:
    """A mismatch and the bound that decides.

    >>> from attngeom.models.tensor_errors import Along, TensorPart
    >>> query = TensorPart("attention", "query", Along.HEAD)
    >>> measured("q", Mismatch(of=query, index=2, value=0.5, expected=1e-3, factor=3.0))
    'q, head 2: mismatch 5.00e-01, 3.00e-03 allowed'
    """
    place = f", {mismatch.place}" if mismatch.place else ""
    return f"{name}{place}: mismatch {digits.error(mismatch.value, 2)}, {digits.error(mismatch.allowed, 2)} allowed"


def lines_of(
    layers: Sequence[LayerComparison], settings: Mapping[str, Sequence[Any]], blame: Blame, every: bool
) -> list[str]:
    """Settings that differ, a summary by layer, then tensors, the worst first; five of each, or every one."""
    lines = [f"  config {key}: {_short(a)} and {_short(b)}" for key, (a, b) in settings.items()]
    lines = _cut(lines, "settings", every)
    rows = [(layer.layer, *row) for layer in layers for row in (*layer.wrong, *layer.suspects)]
    rows.sort(key=lambda row: (blame.is_equal(row[1]), -row[2].ratio))
    written = []
    for layer, name, mismatch in rows:
        place = name if mismatch.index is None else f"{name} [{mismatch.index}]"
        mark = " (equal entries)" if blame.is_equal(name) else ""
        sizes = f"{digits.error(mismatch.value)}, {digits.error(mismatch.allowed)}"
        written.append(f"  layer {layer}: {place} mismatch {sizes} allowed{mark}")
    return lines + by_layer(layers) + _cut(written, "tensors", every)


def by_layer(layers: Sequence[LayerComparison]) -> list[str]:
    """One line of which layers agree and which differ, by how much; none where there is only one verdict to tell.

    >>> from attngeom.models.tensor_errors import TensorPart
    >>> differing = Mismatch(of=TensorPart("mlp", "up"), index=0, value=0.5, expected=1e-3, factor=3.0)
    >>> same = [LayerComparison(layer=i, same=True, worst=None, tensor=None) for i in (0, 1, 3)]
    >>> by_layer([*same[:2], LayerComparison(layer=2, same=False, worst=differing, tensor="u"), same[2]])
    ['  layers: 2 differs (mismatch 5.0e-01); 0 to 1, 3 agree']
    """
    groups = {words: [layer for layer in layers if layer.same is same] for same, words in VERDICTS.items()}
    texts = []
    for words, own in groups.items():
        if not own or len(layers) < 2 or all(layer.same for layer in layers):
            continue
        numbers = [layer.layer for layer in own if isinstance(layer.layer, int)]
        runs = digits.runs(numbers, " to ") + [str(layer.layer) for layer in own if not isinstance(layer.layer, int)]
        more = len(runs) - LISTED_NAMES
        named = ", ".join(runs[:LISTED_NAMES]) + (f" and {more} more" if more > 0 else "")
        sizes = sorted(layer.worst.value for layer in own if layer.worst is not None)
        ends = [digits.error(size) for size in dict.fromkeys((sizes[0], sizes[-1]))] if sizes else []
        mismatches = f" (mismatch{'es' * (len(ends) > 1)} {' to '.join(ends)})" if ends and not own[0].same else ""
        texts.append(f"{named} {words[len(own) > 1]}{mismatches}")
    return [f"  layers: {'; '.join(texts)}"] if texts else []


def _cut(lines: list[str], what: str, every: bool) -> list[str]:
    more = len(lines) - LISTED_NAMES
    return lines if every or more <= 0 else [*lines[:LISTED_NAMES], f"  … and {more} more {what}: --all lists them"]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
