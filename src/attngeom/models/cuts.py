"""Convolutions that a file has in thirds of equal length, as transformers 5 writes those that it keeps as one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.families import Places
from attngeom.models.reading import Header, Tensors


def evenly_cut(tensors: Tensors, places: Places) -> Tensors:
    """The tensors with parts of a convolution cut where its maps are; others are returned as they are."""
    cuts = {name: rows for part in _parts(places, tensors) for name, rows in part.items()}
    if not cuts:
        return tensors
    headers = dict(tensors.headers)
    for name, (first, last, names) in cuts.items():
        like = tensors.headers[names[0]]
        headers[name] = Header((last - first, *like.shape[1:]), like.dtype, tensors.headers[name].home)

    def fetch(name: str) -> Array:
        if name not in cuts:
            return tensors.raw(name)
        first, last, names = cuts[name]
        return np.concatenate([tensors.raw(part) for part in names])[first:last]

    return Tensors(headers, fetch, tensors.name, (evenly_cut, (tensors, places)))


Cut = tuple[int, int, tuple[str, ...]]
"""The rows of a part in the whole, and the parts of the whole."""


def _parts(places: Places, tensors: Tensors) -> Iterator[dict[str, Cut]]:
    """For each mixer whose convolutions do not have the rows of their maps: where they are in the whole."""
    for layout in places.blocks.values():
        mixer = layout.mixer
        if mixer is None or any(len(packed.parts) > 1 for packed in mixer.convolutions) or not mixer.convolutions:
            continue
        homes = {packed.parts: packed.name for packed in mixer.maps}
        end = layout.prefix.partition("{}")[2]
        tail = f"{mixer.convolutions[0].name}.weight"
        for name in tensors:
            below = name.removesuffix(tail)
            if not name.endswith(tail) or not below.endswith(end):
                continue
            convolutions = [f"{below}{packed.name}.weight" for packed in mixer.convolutions]
            maps = [f"{below}{homes.get(packed.parts, '')}.weight" for packed in mixer.convolutions]
            if not all(part in tensors for part in (*convolutions, *maps)):
                continue
            have, want = ([tensors.headers[part].shape[0] for part in own] for own in (convolutions, maps))
            if have == want or sum(have) != sum(want):
                continue
            ends = np.cumsum([0, *want]).tolist()
            rows = zip(convolutions, ends, ends[1:])
            yield {part: (start, stop, tuple(convolutions)) for part, start, stop in rows}
