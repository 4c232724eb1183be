"""Real transformers: which weights compute the same function, counted, recovered, compared and moved.

The names below are loaded when they are first used, so that a command imports only what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attngeom.rooms import names_of, open_room

if TYPE_CHECKING:
    from attngeom.groups import Sampler
    from attngeom.models.ancestry.lineage import Lineage, lineage
    from attngeom.models.comparison import ModelComparison, compare
    from attngeom.models.counts.redundancy import Redundancy, redundancy
    from attngeom.models.evaluation import forward
    from attngeom.models.families import FAMILIES, family_of, specify
    from attngeom.models.fingerprints import Fingerprint, fingerprint
    from attngeom.models.folding import express, fold
    from attngeom.models.gguf import compare_gguf, open_gguf
    from attngeom.models.layer import LayerWeights
    from attngeom.models.layer_comparison import LayerComparison
    from attngeom.models.merging import merge, write_merge
    from attngeom.models.model import Model, open_model
    from attngeom.models.orbits import canonical, random_symmetry, recover
    from attngeom.models.rewriting import align, canonicalize, teleport
    from attngeom.models.specification import TransformerSpec
    from attngeom.models.symmetry import act, compose, inverse
    from attngeom.models.writing import write_model, write_teleport

_HOMES = {
    "ancestry.lineage": ("Lineage", "lineage"),
    "comparison": ("ModelComparison", "compare"),
    "counts.redundancy": ("Redundancy", "redundancy"),
    "evaluation": ("forward",),
    "families": ("FAMILIES", "family_of", "specify"),
    "fingerprints": ("Fingerprint", "fingerprint"),
    "folding": ("express", "fold"),
    "gguf": ("compare_gguf", "open_gguf"),
    "layer": ("LayerWeights",),
    "layer_comparison": ("LayerComparison",),
    "merging": ("merge", "write_merge"),
    "model": ("Model", "open_model"),
    "orbits": ("Sampler", "canonical", "random_symmetry", "recover"),
    "rewriting": ("align", "canonicalize", "teleport"),
    "specification": ("TransformerSpec",),
    "symmetry": ("act", "compose", "inverse"),
    "writing": ("write_model", "write_teleport"),
}
_NAMES = names_of(_HOMES)

__all__ = [
    "FAMILIES",
    "Fingerprint",
    "LayerComparison",
    "LayerWeights",
    "Lineage",
    "Model",
    "ModelComparison",
    "Redundancy",
    "Sampler",
    "TransformerSpec",
    "act",
    "align",
    "canonical",
    "canonicalize",
    "compare",
    "compare_gguf",
    "compose",
    "express",
    "family_of",
    "fingerprint",
    "fold",
    "forward",
    "inverse",
    "lineage",
    "merge",
    "open_gguf",
    "open_model",
    "random_symmetry",
    "recover",
    "redundancy",
    "specify",
    "teleport",
    "write_merge",
    "write_model",
    "write_teleport",
]


__getattr__, __dir__ = open_room(__name__, _NAMES)
