"""Real transformers: which weights compute the same function, counted, recovered, compared and moved."""

from attngeom.models.comparison import ModelComparison, compare
from attngeom.models.families import FAMILIES, family_of, specify
from attngeom.models.fingerprint import Fingerprint, fingerprint
from attngeom.models.folding import express, fold
from attngeom.models.forward import forward
from attngeom.models.gauges import canonical
from attngeom.models.layer import LayerWeights
from attngeom.models.layer_comparison import LayerComparison
from attngeom.models.model import Model, open_model
from attngeom.models.recovery import recover
from attngeom.models.redundancy import Redundancy, redundancy
from attngeom.models.rewriting import align, canonicalize, teleport
from attngeom.models.sampling import Sampler, random_symmetry
from attngeom.models.specification import TransformerSpec
from attngeom.models.symmetry import act, compose, inverse
from attngeom.models.writing import write_model

__all__ = [
    "FAMILIES",
    "Fingerprint",
    "LayerComparison",
    "LayerWeights",
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
    "compose",
    "express",
    "family_of",
    "fingerprint",
    "fold",
    "forward",
    "inverse",
    "open_model",
    "random_symmetry",
    "recover",
    "redundancy",
    "specify",
    "teleport",
    "write_model",
]
