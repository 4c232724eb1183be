"""Was this model made from that one? The question, the answer, and the sentence that says what the answer is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from attngeom import digits
from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.limits.rounding import LAYER_SHARED, LAYERS_ALIKE, REFERENCE_WIDTH, STREAM_DOUBT, UNIT_ALIKE
from attngeom.limits.work import COMPARED_UNITS, SINGLE_PRECISION_WIDTH
from attngeom.models.ancestry.content import content_of, view_of
from attngeom.models.ancestry.reference import Reference, reference
from attngeom.models.ancestry.shared import SharedPart, shared_layer, shared_outside
from attngeom.models.ancestry.similarity import LayerLikeness, Sketch, compare_contents, compare_spectra
from attngeom.models.ancestry.streams import StreamChange, changes_by_moments, find_change, match_tokens
from attngeom.models.ancestry.unused import UnusedTest, Vocabulary, read_vocabulary, unused_test, unused_tokens
from attngeom.models.crews import Crew, Progress, each_layer, hired
from attngeom.models.model import Model
from attngeom.models.views import ModelView
from attngeom.results import Result, Standing


@dataclass(frozen=True, kw_only=True)
class LayerMatch:
    """A layer of the child, the layer of the parent that is most like it, and how alike they are."""

    layer: int
    matches: int
    similarity: float
    heads: tuple[float, ...]
    units: float
    """The median over units."""
    found: float
    """The share of units that are found again."""
    beyond: tuple[float | None, float | None] = (None, None)
    """What of the likeness of heads, and of units, pairs lack that were not matched; None where those agree, too."""

    def to_json(self) -> dict[str, Any]:
        return {
            "layer": self.layer, "matches": self.matches, "similarity": self.similarity, "heads": list(self.heads),
            "units": self.units, "found": self.found, "beyond_common": list(self.beyond),
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Parentage:
    """One possible parent: how alike, layer by layer, and what is shared exactly."""

    path: str
    similarity: float | None
    heads: float | None
    units: float | None
    layers: tuple[LayerMatch, ...] = ()
    shared: tuple[SharedPart, ...] = ()
    width: int = 0
    """Of the stream."""
    stream: str = ""
    """What the change of the stream rests on: tokens or moments."""
    left_out: str = ""
    """Why contents were not compared; empty where they were."""
    spectra: float | None = None
    """Where contents were not compared, how alike singular values of heads are; that decides nothing."""
    table: Array | None = None
    """Layers of the child × layers of the parent: likeness of sketches."""
    test: UnusedTest | None = None
    untested: str = ""
    """Why there is no test."""

    @property
    def beyond(self) -> tuple[str, float]:
        """Heads or units, which of them is less alike beyond what pairs of one recipe have in common; how much."""
        means = []
        for name, values in zip(("heads", "units"), zip(*(layer.beyond for layer in self.layers))):
            known = [value for value in values if value is not None]
            means += [(name, float(np.mean(known)))] if known else []
        return min(means, key=lambda part: digits.ranking(part[1]), default=("heads", 0.0))

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path, "similarity": self.similarity, "heads": self.heads, "units": self.units,
            "layers": [layer.to_json() for layer in self.layers], "shared": [part.to_json() for part in self.shared],
            "stream": self.stream, "left_out": self.left_out or None, "spectra": self.spectra,
            "map": None if self.table is None else self.table.tolist(),
            "test": None if self.test is None else self.test.to_json(), "untested": self.untested or None,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Lineage(Result):
    """Whether a model was made from others: parents in the order given, held against pairs of known history."""

    child: str
    parents: tuple[Parentage, ...]
    table: Reference
    verdict: bool | None

    @property
    def is_positive(self) -> bool | None:
        return self.verdict

    @property
    def best(self) -> Parentage:
        """The parent that is most like the child."""
        return _best(self.parents)

    @property
    def tested(self) -> Parentage | None:
        """The parent of least p, which is times the number of parents; of a merge, that of the token table."""
        tests = [(parent.test.p, i) for i, parent in enumerate(self.parents) if parent.test is not None]
        return self.parents[min(tests)[1]] if tests else None

    def to_json(self) -> dict[str, Any]:
        tested, test = self.tested, None
        if tested is not None and tested.test is not None:
            test = {"parent": tested.path, **tested.test.to_json()}
        return {
            "child": self.child, "parents": [parent.to_json() for parent in self.parents],
            "reference": self.table.to_json(), "test": test,
            "untested": (self.best.untested or None) if test is None else None,
            **self.select("standing", "reason", "seed"),
        }  # fmt: skip

    def rows(self) -> Mapping[str, Any]:
        rows: dict[str, Any] = {"verdict": self.reason}
        for parent in self.parents:
            if parent.similarity is None:
                rows[parent.path] = f"contents not compared: {parent.left_out}"
                continue
            rows[parent.path] = (
                f"similarity {parent.similarity:.3f} (heads {parent.heads:.3f}, units {parent.units:.3f})"
            )
        tests = [parent.test.sentence for parent in self.parents if parent.test is not None]
        return {**rows, **({"test": "; ".join(tests)} if tests else {}), "standing": self.standing, "seed": self.seed}

    def text(self, *, every: bool = False) -> str:
        """One sentence, then parent by parent the layers, the five least alike first, and a map of layers."""
        from attngeom.models.ancestry.pictures import describe

        return describe(self, every=every)

    def __str__(self) -> str:
        return self.text()

    def plot(self) -> Any:
        """A heat map for every parent, layers of the child × layers of the parent."""
        from attngeom.models.ancestry.pictures import draw_lineage

        return draw_lineage(self)


def lineage(
    child: Model, parents: Sequence[Model], *, unused: Sequence[int] | None = None, seed: int = 0, crew: Crew = 1,
    progress: Progress | None = None,
) -> Lineage:  # fmt: skip
    """How much of the child's content lies in each of the parents; an estimate, held against pairs of known history.

    The similarity is a function on orbits: no symmetry of either model moves it beyond rounding. ``unused`` are ids of
    tokens that the parents never saw, for the exact test; by default tokenizer files beside the weights tell them. A
    ``crew`` works on several layers at once.

    >>> from attngeom.models.samples import LLAMA, random_model
    >>> from attngeom.models import teleport
    >>> base = random_model(LLAMA, seed=1)
    >>> found = lineage(teleport(base, seed=2).moved(), [base])
    >>> round(found.parents[0].similarity, 9), found.standing
    (1.0, 'estimate')
    """
    if not parents:
        raise InputError("no parent given; at least one model to hold the child against is required")
    total = sum(child.layers * 2 + parent.layers for parent in parents)
    done = 0

    def step(count: int, _: int) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(min(done, total), total)

    with hired(crew) as crew:
        answers = tuple(_compare(child, parent, unused, seed, len(parents), crew, step) for parent in parents)
    return _judged(child.whereabouts, answers, reference(), seed)


def _compare(
    child: Model, parent: Model, unused: Sequence[int] | None, seed: int, tries: int, crew: Crew, step: Progress
) -> Parentage:
    near, far = view_of(parent), view_of(child)
    left_out = _why_not(child, parent)
    if left_out:
        return _uncompared(near, far, left_out)
    words, other_words = read_vocabulary(parent.path), read_vocabulary(child.path)
    tokens = None
    if words is not None and other_words is not None:
        tokens = match_tokens(words.ids, other_words.ids, parent.spec.vocabulary, child.spec.vocabulary)
    change = find_change(near, far, tokens=tokens)
    if change.rank is not None and change.rank < REFERENCE_WIDTH:
        return _uncompared(near, far, f"{change.source}, too few; tokens of the same names would give more")
    aligned = _align(near, far, change, crew, step)
    if aligned.similarity < STREAM_DOUBT and change.source == "tokens" and child.spec.width < SINGLE_PRECISION_WIDTH:
        # Tokens may have other names, or layers come from elsewhere: what has no names is asked as well.
        others = (_align(near, far, other, crew, step) for other in changes_by_moments(near, far))
        aligned = max(aligned, *others, key=lambda change: digits.ranking(change.similarity))
    change, matches = aligned.change, aligned.matches
    shared = shared_outside(child, parent)
    close = [pair for pair in matches if pair.similarity >= LAYER_SHARED]
    turns = change.change if change.rank is None else None
    items = [(child, pair.layer, parent, pair.matches, turns) for pair in close]
    shared += [part for part in each_layer(shared_layer, items, crew) if part is not None]
    kinds, untested = _kinds(parent, words, unused)
    test = unused_test(near, far, kinds, seed=seed, tries=tries, tokens=tokens) if kinds else None
    if kinds and test is None:
        untested = "fewer than two unused tokens are in both vocabularies with rows of their own in the parent"
    return Parentage(
        path=parent.whereabouts, similarity=aligned.similarity, heads=aligned.heads, units=aligned.units,
        layers=matches, shared=tuple(shared), width=change.rank or child.spec.width, stream=change.source,
        table=aligned.table, test=test, untested=untested,
    )  # fmt: skip


def _uncompared(parent: ModelView, child: ModelView, left_out: str) -> Parentage:
    """Two models whose contents have no common stream: spectra are all that is told."""
    return Parentage(
        path=parent.model.whereabouts, similarity=None, heads=None, units=None, left_out=left_out, untested=left_out,
        spectra=compare_spectra(child, parent),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _AlignedStream:
    """The layers of two models, compared after one change of the stream."""

    change: StreamChange
    table: Array
    matches: tuple[LayerMatch, ...]
    heads: float
    units: float

    @property
    def similarity(self) -> float:
        return float(np.mean([match.similarity for match in self.matches]))


def _align(near: ModelView, far: ModelView, change: StreamChange, crew: Crew, step: Progress) -> _AlignedStream:
    table = _map(near, far, change, crew, step)
    items = [(near, far, layer, table[layer], change) for layer in range(far.model.layers)]
    best = each_layer(_best_layer, items, crew, step)
    matches = tuple(
        LayerMatch(
            layer=layer, matches=match, similarity=likeness.similarity, heads=tuple(float(x) for x in likeness.heads),
            units=_median(likeness.units), found=_share(likeness.units), beyond=likeness.beyond,
        )
        for layer, (match, likeness) in enumerate(best)
    )  # fmt: skip
    heads, units = (np.concatenate([getattr(x, part) for _, x in best]) for part in ("heads", "units"))
    return _AlignedStream(change, table, matches, _median(heads), _median(units))


def _median(values: Array) -> float:
    return float(np.median(values)) if len(values) else 0.0


def _share(values: Array) -> float:
    """The share of units that are found again."""
    return float(np.mean(values >= UNIT_ALIKE)) if len(values) else 0.0


def _why_not(child: Model, parent: Model) -> str:
    """Why contents of two models cannot be compared; empty where they can."""
    if child.spec.width != parent.spec.width:
        return f"streams of width {child.spec.width} and {parent.spec.width}; contents live in one width"
    if [stack.name for stack in child.spec.stacks] != [stack.name for stack in parent.spec.stacks]:
        return "an encoder, a decoder or both against another kind; contents live in one stream"
    return ""


def _map(parent: ModelView, child: ModelView, change: StreamChange, crew: Crew, step: Progress) -> Array:
    """Likeness of sketches, layers of the child × layers of the parent."""
    near, far = (
        each_layer(
            _sketch, [(view, i, None if own is None else own[view.model.place(i)[0].name])
            for i in range(view.model.layers)], crew, step,
        )
        for view, own in ((parent, change.near), (child, change.change))
    )  # fmt: skip
    stacks = [[view.model.place(layer)[0].name for layer in range(view.model.layers)] for view in (child, parent)]
    table = np.full((len(far), len(near)), -1.0)
    for i, j in product(range(len(far)), range(len(near))):
        if stacks[0][i] == stacks[1][j]:
            table[i, j] = far[i].likeness(near[j])
    return table


def _sketch(view: ModelView, layer: int, change: Array | None) -> Sketch:
    return Sketch.of(content_of(view, layer), change)


def _best(parents: Sequence[Parentage]) -> Parentage:
    """The parent that is most like the child, the first of several."""
    return max(parents, key=lambda parent: -2.0 if parent.similarity is None else digits.ranking(parent.similarity))


def _best_layer(
    parent: ModelView, child: ModelView, layer: int, row: Array, change: StreamChange
) -> tuple[int, LayerLikeness]:
    """The layer of the parent that is most like a layer of the child, compared in full."""
    order = sorted(range(len(row)), key=lambda match: -digits.ranking(float(row[match])))[:2]
    tried = [match for match in order if row[match] >= row[order[0]] - LAYERS_ALIKE]
    content = content_of(child, layer, change.change, COMPARED_UNITS)
    likenesses = [(match, compare_contents(content, content_of(parent, match, change.near))) for match in sorted(tried)]
    return max(likenesses, key=lambda pair: digits.ranking(pair[1].similarity))


def _kinds(
    parent: Model, words: Vocabulary | None, unused: Sequence[int] | None
) -> tuple[dict[str, Sequence[int]], str]:
    """Unused tokens of the parent by kind, or why there are none."""
    rows = parent.spec.vocabulary
    if not rows:
        return {}, "the models read no tokens"
    if unused is not None:
        beyond = [i for i in unused if i >= rows]
        if beyond:
            raise InputError(f"unused token {beyond[0]} given; the parent has ids 0 to {rows - 1}")
        return {"given": unused}, ""
    if words is None:
        return {}, "no tokenizer.json or vocab.json beside the parent's weights; --unused names tokens it never saw"
    kinds = unused_tokens(words, rows)
    return dict(kinds), "" if kinds else "the parent's tokenizer uses every id; --unused names tokens it never saw"


def _judged(child: str, parents: tuple[Parentage, ...], table: Reference, seed: int) -> Lineage:
    """The verdict: above all independent pairs, among them, or between."""
    best = _best(parents)
    if best.similarity is None:
        return Lineage(
            standing="undecided", reason=best.left_out, seed=seed, child=child, parents=parents, table=table,
            verdict=None,
        )  # fmt: skip
    top = max((layer.similarity for layer in best.layers), default=-1.0)
    text = f"{best.path}: similarity {best.similarity:.3f}"
    verdict: bool | None = False
    part, beyond = best.beyond
    if best.similarity > table.largest_independent >= beyond:
        verdict = None
        reason = (
            f"{text}, but of {part} {beyond:.3f} beyond what those have in common that were not matched: independent "
            "models of one recipe can be so alike"
        )
    elif best.similarity > table.largest_independent and best.width < REFERENCE_WIDTH and best.similarity < UNIT_ALIKE:
        verdict = None
        reason = (
            f"{text}; the reference has streams of width {REFERENCE_WIDTH} and more, in narrower ones chance makes more"
        )
    elif best.similarity > table.largest_independent:
        verdict = True
        reason = f"{text}, more alike than all {table.pairs} independent pairs of the reference"
    elif top > table.largest_layer:
        layer = max(best.layers, key=lambda match: digits.ranking(match.similarity))
        verdict = None
        reason = (
            f"{text}, among the {table.pairs} independent pairs of the reference, but layer {layer.layer} is more like "
            f"layer {layer.matches} ({top:.3f}) than any layer of these"
        )
    else:
        reason = f"{text}, among the {table.pairs} independent pairs of the reference"
    standing: Standing = "undecided" if verdict is None else "estimate"
    return Lineage(
        standing=standing, reason=reason, seed=seed, child=child, parents=parents, table=table, verdict=verdict,
    )  # fmt: skip
