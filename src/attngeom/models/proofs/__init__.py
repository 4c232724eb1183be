"""Proof by rank: the derivative of a block or a model over GF(p), and its infinitesimal symmetries."""

from attngeom.models.proofs.answer import RedundancyProof, prove_redundancy
from attngeom.models.proofs.block_proof import RankProof, prove_block
from attngeom.models.proofs.model_proof import prove_model
from attngeom.models.proofs.shrink import shrink

__all__ = ["RankProof", "RedundancyProof", "prove_block", "prove_model", "prove_redundancy", "shrink"]
