"""Heads of random layers: time and error of the search in floats, exactly, and of generic proofs.

``python benchmarks/heads.py [--quick | --wide]``; --wide adds width 768. Every run is printed. The error is that of the
projectors onto the heads, ‖P − P'‖/‖P‖ in the Frobenius norm, the largest of all heads; the norm of P is printed
as well.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable

import numpy as np

from attngeom.exact import QQ, RR
from attngeom.heads import find_heads
from attngeom.heads.float_heads import WeightSlices, find_float_heads
from attngeom.heads.generic import contact_locus
from attngeom.network import Architecture, random_weights
from attngeom.results import Failure
from contract import emit, require

TUPLES = [
    (3, 3, 1, 1, 4), (3, 3, 2, 2, 2), (4, 4, 2, 2, 3), (4, 4, 3, 3, 2), (4, 4, 1, 1, 8), (4, 4, 4, 2, 2),
    (5, 5, 2, 2, 4), (6, 6, 3, 3, 4), (8, 8, 4, 4, 8), (4, 4, 4, 4, 2), (3, 3, 3, 3, 2), (2, 2, 1, 1, 2),
    (3, 2, 1, 1, 4), (3, 3, 1, 1, 3), (3, 3, 1, 2, 3), (4, 4, 2, 2, 2), (4, 4, 2, 2, 4), (4, 4, 1, 1, 6),
    (4, 4, 2, 1, 4), (5, 5, 2, 2, 3), (5, 5, 3, 3, 3), (5, 4, 2, 2, 3), (6, 6, 2, 2, 6), (6, 6, 3, 3, 3),
    (6, 6, 1, 1, 12), (2, 2, 1, 1, 4), (2, 2, 2, 2, 2),
]  # fmt: skip


def projectors(O: np.ndarray, parts: Iterable[slice]) -> list[np.ndarray]:
    """The projectors onto the heads in the space of outputs, each along the others; ``parts`` are their columns."""
    inverse = np.linalg.inv(O)
    return [O[:, part] @ inverse[part] for part in parts]


def run_floats(d: int, heads: int, seed: int, noise: float = 0.0) -> None:
    weights = random_weights(Architecture((d, d), d // heads, heads=heads), RR, seed)
    source = WeightSlices(weights)
    if noise:
        exact, rng = source.contract, np.random.default_rng(seed)

        def contract(Z: np.ndarray) -> np.ndarray:
            T = exact(Z)
            return T + noise * np.linalg.norm(T) / np.sqrt(T.size) * rng.standard_normal(T.shape)

        source.contract = contract  # type: ignore[method-assign]
    start = time.process_time()
    found = find_float_heads(source, heads if noise else None, (d, d), noise, seed)
    seconds = time.process_time() - start
    if isinstance(found, Failure):
        # A failure is an answer, but its time is none of a search that found the heads.
        emit("heads in floats: not found", f"d = {d}, H = {heads}, noise {noise:.0e}, seed {seed}", 1, unit="layers")
        print(f"{d:4}/{heads:2}  noise {noise:.0e}  not found: {found.reason}")
        return
    require(len(found.blocks.sizes) == heads, f"{heads} heads are found")
    emit("heads in floats", f"d = {d}, H = {heads}, noise {noise:.0e}, seed {seed}", seconds)
    O, v = np.concatenate([head.O for head in weights.layers[0]], axis=1), d // heads
    true = projectors(O, [slice(k, k + v) for k in range(0, d, v)])
    given = projectors(found.basis @ found.blocks.B, [rows for rows, _ in found.blocks.spans()])
    errors = [min(np.linalg.norm(p - q) / np.linalg.norm(p) for q in given) for p in true]
    case = f"d = {d}, H = {heads}, noise {noise:.0e}, seed {seed}"
    require(max(errors) < 1e-2, "the heads are those of the layer")
    emit("heads in floats: error of the projectors", case, max(errors), unit="relative error")
    print(
        f"{d:4}/{heads:2}  noise {noise:.0e}  error {max(errors):.1e}  ‖P‖ {max(map(np.linalg.norm, true)):.0f}"
        f"  residual of the heads {found.residual:.1e}  gap {found.blocks.gap:.0e}"
        f"  amplification {found.blocks.amplification:.0e}  {seconds:.2f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wide", action="store_true", help="width 768 too")
    parser.add_argument("--quick", action="store_true", help="small widths, the first tuples")
    options = parser.parse_args()
    widths = [(8, 2), (16, 4), (64, 8), *([] if options.quick else [(256, 8)]), *([(768, 12)] if options.wide else [])]
    print("floats: d/H")
    for d, heads in widths:
        run_floats(d, heads, 0)
    for noise in (1e-12, 1e-9, 1e-6):
        for seed in range(1 if options.quick else 3):
            run_floats(64, 8, seed, noise)
    print("exact: d/H")
    for d, heads in ((4, 2), (8, 2), (8, 4), (12, 3), (16, 4)):
        weights = random_weights(Architecture((d, d), d // heads, heads=heads), QQ, 0)
        start = time.process_time()
        outcome = find_heads(weights)
        seconds = time.process_time() - start
        require(outcome.outcome == "found" and outcome.unique and outcome.is_proven, "heads are found, unique, proven")
        emit("heads over Q, unique and proven", f"d = {d}, H = {heads}", seconds, size=d)
        print(
            f"{d:4}/{heads:2}  {outcome.outcome}, unique {outcome.unique}  {seconds:.2f} s",
            flush=True,
        )
    print("generic: d, d_out, a, v, H")
    for sizes in TUPLES[:6] if options.quick else TUPLES:
        start = time.process_time()
        proof = contact_locus(*sizes)
        seconds = time.process_time() - start
        require(proof.tangent_rank is not None or proof.contact is not None, "the contact locus is computed")
        emit("generic uniqueness by the contact locus", f"(d, d_out, a, v, H) = {sizes}", seconds)
        print(
            f"{sizes}  {proof.contact}  tangent rank {proof.tangent_rank} of {proof.expected}"
            f"  contact rank {proof.contact_rank}  {seconds:.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
