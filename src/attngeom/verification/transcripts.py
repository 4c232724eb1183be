"""Recheck a matrix-free lower bound for a dimension from its transcript, with a few hundredths of the products.

The transcript holds blocks W_0, …, W_c of vectors mod p and a sequence of matrices S_k. What it says about them is
W_{i+1} = B^s W_i and S_{is+j} = Uᵀ B^{j+1} W_i for j < s, with the operator B = F M Δ that seeds determine. Both are
linear in W, so a few random combinations of all W_i are carried through s products and compared after each one; they
are drawn afresh, after the file was written. If anything is wrong, each of them hides it with probability at most
1/p. The rest is a proof: the block Hankel matrix of the S_k has rank at most rank M, see :mod:`attngeom.exact.hankel`.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from math import ceil, log2, prod
from typing import Any

import numpy as np

from attngeom.errors import FormatError
from attngeom.exact.domains import Array, BalancedField
from attngeom.exact.hankel import hankel_rank
from attngeom.limits.recheck import BLAS_PRODUCTS, SAMPLE_ENTRIES, TRANSCRIPT_BITS
from attngeom.network.architecture import Architecture
from attngeom.results import Proof
from attngeom.verification.budget import afford
from attngeom.verification.cleared_operator import ClearedOperator
from attngeom.verification.reading import read_integer, read_object, require

KEYS: tuple[str, ...] = ("method", "prime", "seed", "tokens", "samples", "support", "free", "pivots")
KEYS += ("left", "right", "step", "blocks", "sequence")


def check_transcript(architecture: Architecture, value: int, record: Any) -> Proof:
    """Why the Jacobian has at least this rank; Unproven if the transcript does not show it."""
    record = read_object(record, KEYS, "lower")
    if record["method"] != "krylov":
        raise FormatError("the method of a lower bound must be krylov, or absent for a minor")
    operator = ClearedOperator(architecture, record)
    field, n = operator.field, operator.size
    left, right = (read_integer(record[key], 1, n, key) for key in ("left", "right"))
    step = read_integer(record["step"], 1, 4 * n + 16, "step")
    sequence = read_residues(record["sequence"], (-1, left, right), field, "sequence")
    count, length = len(sequence) // step, len(sequence)
    require(count >= 1 and count * step == length, "the sequence must fill whole steps")
    blocks = read_residues(record["blocks"], (-1, right, n), field, "blocks")
    require(len(blocks) == count + 1, f"{count + 1} blocks are required")
    checks = ceil(TRANSCRIPT_BITS / log2(field.p))
    _afford(operator, step * checks, length, left, right)
    _check_sequence(operator, blocks, sequence, step, checks)
    rows = min(ceil(n / left) + 1, length)
    rank = operator.cleared + hankel_rank(sequence, rows, field)
    require(rank == value, f"the transcript proves rank {rank}, not {value}")
    return Proof(
        "probabilistic",
        f"a block Hankel matrix mod {field.p} gives rank {rank}, and {checks} fresh random combinations,"
        f" which miss a wrong sequence with probability at most {field.p}^-{checks}, found its sequence right",
    )


def _afford(operator: ClearedOperator, products: int, length: int, left: int, right: int) -> None:
    """Bound the multiplications of the derivatives and of the Hankel matrix, all of them in BLAS."""
    architecture = operator.architecture
    width = max(max(x.d_in, x.d_out, x.attention, x.value_width or 0) for x in architecture.layers)
    each = operator.samples * operator.tokens * width * (5 * width + 4 * operator.tokens)
    pushes = products * each * architecture.num_layers * architecture.heads
    hankel = (left + right) * (length * right) ** 2 // 2
    afford(pushes + hankel, BLAS_PRODUCTS, "multiplications for a transcript")


def _check_sequence(operator: ClearedOperator, blocks: Array, sequence: Array, step: int, checks: int) -> None:
    """Random combinations, drawn now, of all blocks at once."""
    field, (length, left, right) = operator.field, sequence.shape
    count = length // step
    # Unpredictable for whoever wrote the file: a stored seed would let a forger aim at it.
    rng = np.random.default_rng(secrets.randbits(128))
    mix = field.random((checks, count * right), rng)
    vectors = field.matmul(mix, blocks[:-1].reshape(count * right, -1))
    terms = np.moveaxis(sequence.reshape(count, step, left, right), 3, 1).reshape(count * right, step, left)
    for j in range(step):
        vectors = operator.apply(vectors)
        expected = field.matmul(mix, np.ascontiguousarray(terms[:, j]))
        require(field.is_zero(vectors[:, :left] - expected), "the sequence is not that of the Jacobian")
    require(field.is_zero(vectors - field.matmul(mix, blocks[1:].reshape(count * right, -1))), "a block is wrong")


def read_residues(value: Any, shape: tuple[int, ...], field: BalancedField, name: str) -> Array:
    """Residues in base64, one byte each for p < 2^8, else four; the first axis is as long as the text says."""
    if type(value) is not str:
        raise FormatError(f"{name}: base64 text is required")
    afford(len(value), 4 * SAMPLE_ENTRIES, f"characters of {name} in memory")
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise FormatError(f"{name}: base64 text is required") from None
    width = 1 if field.p < 2**8 else 4
    each = width * prod(shape[1:])
    if not data or len(data) % each:
        raise FormatError(f"{name}: a multiple of {each} bytes is required, {len(data)} found")
    residues = np.frombuffer(data, dtype=np.uint8 if width == 1 else "<u4")
    if residues.max() >= field.p:
        raise FormatError(f"{name}: residues below {field.p} are required")
    balanced = residues.astype(field.dtype)
    balanced[balanced > field.p // 2] -= field.p
    return balanced.reshape(shape)
