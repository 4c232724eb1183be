"""LoRA adapters: changes s B A of weight matrices, with GL(r) between B and A; counted, compared, in a canonical form.

An adapter folder has adapter_config.json and adapter_model.safetensors with pairs lora_A (r, in) and lora_B (out, r)
per module. (B C⁻¹, C A) is the same change for every invertible C. Only the change is looked at, not what the base
model makes of it. Tensors that are no pair are compared as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from math import isqrt, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from attngeom.errors import InputError
from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.files import read_json
from attngeom.groups import Sampler
from attngeom.groups.gauges import balanced_pair
from attngeom.limits.rounding import FOLDING_ROUNDING, MEAN_ROUNDING, RESIDUAL_MARGIN, TENSORS_AGREE, TENSORS_DIFFER
from attngeom.models.folders import new_folder
from attngeom.models.reading import ROUNDOFF, Tensors, open_file, safe_path
from attngeom.models.residues import P, apply, dot, random_residues
from attngeom.models.writing import WriteError
from attngeom.results import Result, Standing, draw_entropy

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
DOWN, UP = ".lora_A.weight", ".lora_B.weight"


@dataclass(frozen=True, kw_only=True)
class LowRankPair:
    """The change s B A of one module, B (rows, rank) and A (rank, columns); s² is kept, as s may be a root."""

    module: str
    rows: int
    columns: int
    rank: int
    square: Fraction

    @property
    def scale(self) -> float:
        return sqrt(self.square)

    @property
    def redundancy(self) -> int:
        """Parameters less the dimension ρ (rows + columns − ρ) of the matrices of rank ρ = min(rank, rows, columns).

        >>> LowRankPair(module="q", rows=8, columns=6, rank=2, square=Fraction(4)).redundancy
        4
        """
        top = min(self.rank, self.rows, self.columns)
        return self.rank * (self.rows + self.columns) - top * (self.rows + self.columns - top)


@dataclass(frozen=True, eq=False)
class Adapter:
    """The pairs of an adapter folder; values are loaded on demand."""

    path: Path
    config: Mapping[str, Any]
    tensors: Tensors
    pairs: Mapping[str, LowRankPair]
    others: tuple[str, ...]

    def factors(self, module: str) -> tuple[Array, Array]:
        """B and A of a module in float64."""
        pair = self.pairs[module]
        down = self.tensors.load(module + DOWN, (pair.rank, pair.columns))
        return self.tensors.load(module + UP, (pair.rows, pair.rank)), down

    @property
    def parameters(self) -> int:
        return sum(int(np.prod(header.shape, dtype=object)) for header in self.tensors.headers.values())

    @property
    def redundancy(self) -> int:
        return sum(pair.redundancy for pair in self.pairs.values())

    @property
    def dtype(self) -> str:
        types = {header.dtype for header in self.tensors.headers.values()}
        return next((name for name in ("BF16", "F16", "F32") if name in types), "F64")

    def to_json(self) -> dict[str, Any]:
        modules = [
            {"module": p.module, "rows": p.rows, "columns": p.columns, "rank": p.rank, "scale": p.scale,
             "redundancy": p.redundancy}
            for p in self.pairs.values()
        ]  # fmt: skip
        return {
            "family": "lora", "parameters": self.parameters, "redundancy": self.redundancy, "standing": "theorem",
            "group": [f"GL({rank}) per module" for rank in sorted({p.rank for p in self.pairs.values()})],
            "modules": modules, "others": list(self.others),
        }  # fmt: skip


def open_adapter(path: str | Path) -> Adapter:
    """The adapter of a folder, or of a file in it; names, shapes and types of all tensors are checked."""
    folder = Path(path).parent if Path(path).name in (CONFIG, WEIGHTS) else Path(path)
    if not (folder / CONFIG).is_file():
        raise InputError(f"{folder} has no {CONFIG}; a folder of a LoRA adapter is required")
    config = read_json(safe_path(folder, CONFIG))
    if not isinstance(config, dict) or config.get("peft_type") != "LORA":
        raise InputError(f"{folder / CONFIG}: peft_type LORA is required")
    for key, allowed in (("use_dora", (None, False)), ("lora_bias", (None, False)), ("bias", (None, "none"))):
        if config.get(key) not in allowed:
            raise InputError(f"{folder / CONFIG}: {key} = {str(config[key])[:20]!r} given; plain LoRA is required")
    tensors = open_file(safe_path(folder, WEIGHTS))
    pairs = {}
    for name, header in tensors.headers.items():
        if name.endswith(DOWN):
            module = name.removesuffix(DOWN)
            pairs[module] = _pair(tensors, config, module, header.shape, folder)
    lonely = [n for n in tensors.headers if n.endswith(UP) and n.removesuffix(UP) not in pairs]
    if lonely or not pairs:
        what = f"{lonely[0][:80]} has no lora_A" if lonely else "no pairs lora_A, lora_B found"
        raise InputError(f"{folder / WEIGHTS}: {what}; both factors of every module are required")
    others = tuple(sorted(n for n in tensors.headers if not n.endswith((DOWN, UP))))
    return Adapter(folder, config, tensors, dict(sorted(pairs.items())), others)


def _pair(
    tensors: Tensors, config: Mapping[str, Any], module: str, shape: tuple[int, ...], folder: Path
) -> LowRankPair:
    up = tensors.headers.get(module + UP)
    if up is None or len(up.shape) != 2 or len(shape) != 2 or up.shape[1] != shape[0] or not shape[0]:
        given = "none" if up is None else list(up.shape)
        raise InputError(f"{folder / WEIGHTS}: lora_A {list(shape)}, lora_B {given} of {module[-60:]} do not fit")
    tensors.check(module + UP, up.shape)
    tensors.check(module + DOWN, shape)
    alpha = _pattern(config.get("alpha_pattern"), module, config.get("lora_alpha", 8))
    rank = _pattern(config.get("rank_pattern"), module, config.get("r", 8))
    if rank != shape[0] or not isinstance(alpha, int | float) or isinstance(alpha, bool) or not 0 < alpha < 1e12:
        raise InputError(f"{folder / CONFIG}: r {str(rank)[:20]}, alpha {str(alpha)[:20]} do not fit {module[-60:]}")
    square = Fraction(alpha) ** 2 / (shape[0] if config.get("use_rslora") else shape[0] ** 2)
    return LowRankPair(module=module, rows=up.shape[0], columns=shape[1], rank=shape[0], square=square)


def _pattern(table: Any, module: str, default: Any) -> Any:
    """The entry whose key is the end of the name of the module, or the default."""
    for key, value in (table or {}).items() if isinstance(table, dict) else ():
        if re.fullmatch(rf"(.*\.)?{re.escape(str(key))}", module):
            return value
    return default


@dataclass(frozen=True, kw_only=True, eq=False)
class AdapterComparison(Result):
    """Whether two adapters change the weights in the same way, and the modules in which they do not."""

    same_change: bool | None
    level: str
    modules: tuple[dict[str, Any], ...] = ()
    error_probability: float | None = None
    entropy: int | None = None

    @property
    def is_positive(self) -> bool | None:
        return self.same_change

    def to_json(self) -> dict[str, Any]:
        return {
            **self.select("same_change", "level", "standing", "reason", "error_probability", "seed"),
            "modules": list(self.modules),
            **({} if self.entropy is None else {"entropy": str(self.entropy)}),
        }

    def rows(self) -> Mapping[str, Any]:
        word = {True: "same change", False: "different changes", None: "undecided"}[self.same_change]
        wrong = {m["module"]: f"mismatch {m['mismatch']:.2e}, {m['expected']:.1e} expected" for m in self.modules
                 if m["same"] is not True and "mismatch" in m}  # fmt: skip
        return {word: f"({self.level}, {self.standing}) {self.reason}", **wrong}


def compare_adapters(one: Adapter, other: Adapter, *, seed: int = 0) -> AdapterComparison:
    """Compare the changes s B A, module by module: exactly mod 2^61 − 1, then within the rounding of the files."""
    odd = sorted((one.pairs.keys() | set(one.others)) ^ (other.pairs.keys() | set(other.others)))
    shapes = [m for m in one.pairs if m in other.pairs and _shape(one.pairs[m]) != _shape(other.pairs[m])]
    if odd or shapes:
        return AdapterComparison(
            same_change=False, level="shapes", standing="proven", seed=seed,
            reason=f"{(odd or shapes)[0][:120]} is in one adapter only, or has another shape",
        )  # fmt: skip
    verbatim = [n for n in one.others if not np.array_equal(one.tensors.raw(n), other.tensors.raw(n))]
    entropy = draw_entropy()
    exact = {module: _same_exactly(one, other, module, entropy) for module in one.pairs}
    if all(exact.values()) and not verbatim:
        return AdapterComparison(
            same_change=True, level="exact", standing="probabilistic", seed=seed,
            error_probability=min(1.0, 2 * len(exact) / P), reason="all products B A agree mod 2^61 − 1",
            modules=tuple({"module": module, "same": True} for module in exact), entropy=entropy,
        )  # fmt: skip
    unit = max(ROUNDOFF[one.dtype], ROUNDOFF[other.dtype])
    rows = [_measure(one, other, module, unit) for module in one.pairs]
    rows += [{"module": name, "same": False} for name in verbatim]
    verdicts = [row["same"] for row in rows]
    same = False if False in verdicts else None if None in verdicts else True
    worst = max(rows, key=lambda row: row["mismatch"] / row["expected"] if "mismatch" in row else np.inf)
    reason = f"worst {worst['module'][-100:]}" + (
        f": mismatch {worst['mismatch']:.2e}" if "mismatch" in worst else " differs"
    )
    standing: Standing = "undecided" if same is None else "estimate"
    return AdapterComparison(
        same_change=same, level="rounding", standing=standing, seed=seed, reason=reason, modules=tuple(rows)
    )


def _shape(pair: LowRankPair) -> tuple[int, int]:
    return pair.rows, pair.columns


def _same_exactly(one: Adapter, other: Adapter, module: str, entropy: int) -> bool:
    """Whether s zᵀ B A x agree at random residues; False if the quotient of the two s is no fraction."""
    pair, twin = one.pairs[module], other.pairs[module]
    left, right = (_value(adapter, module, entropy) for adapter in (one, other))
    if pair.square == twin.square:
        return left == right
    root = pair.square / twin.square
    top, bottom = (isqrt(n) for n in (root.numerator, root.denominator))
    if Fraction(top, bottom) ** 2 != root:
        return False
    return left * top % P == right * bottom % P


def _value(adapter: Adapter, module: str, entropy: int) -> int:
    up, down = adapter.factors(module)
    x = random_residues(down.shape[1], f"{entropy}/{module}/x")
    z = random_residues(len(up), f"{entropy}/{module}/z")
    return dot(apply(up.T, [z])[:, 0], apply(down, [x])[:, 0])


def _measure(one: Adapter, other: Adapter, module: str, unit: float) -> dict[str, Any]:
    """‖s B A − s' B' A'‖ / ‖s B A‖ and what rounding of the four factors explains, without the large products."""
    sides = []
    for adapter in (one, other):
        up, down = adapter.factors(module)
        sides.append((up * adapter.pairs[module].scale, down))
    whole = product_size(np.concatenate([sides[0][0], -sides[1][0]], axis=1), np.concatenate([s[1] for s in sides]))
    size = product_size(*sides[0])
    noise = sum(2 * ((up**2).sum(axis=0) * (down**2).sum(axis=1)).sum() for up, down in sides)
    mismatch = whole / size if size else float(whole > 0)
    expected = (
        RESIDUAL_MARGIN * MEAN_ROUNDING * max(unit, FOLDING_ROUNDING) * (float(np.sqrt(noise)) / size if size else 1.0)
    )
    ratio = mismatch / expected
    same = True if ratio <= TENSORS_AGREE else False if ratio >= TENSORS_DIFFER else None
    sizes = {"mismatch": float(mismatch), "misfit": float(mismatch), "expected": float(expected)}
    return {"module": module, "same": same, **sizes}


def product_size(up: Array, down: Array) -> float:
    """‖up down‖ by the triangles of both."""
    return float(np.linalg.norm(lapack.triangle(up) @ lapack.triangle(down.T).T))


def canonical_adapter(adapter: Adapter) -> dict[str, Array]:
    """All tensors, pairs balanced: A and B orthogonal, of equal and decreasing norms, signs by the pivots of A."""
    tensors = {name: np.asarray(adapter.tensors.raw(name)) for name in adapter.others}
    for module in adapter.pairs:
        up, down = adapter.factors(module)
        new_down, new_up = balanced_pair(down, up.T)
        tensors[module + DOWN], tensors[module + UP] = new_down, np.ascontiguousarray(new_up.T)
    return tensors


def teleport_adapter(adapter: Adapter, seed: int, condition: float = 9.0) -> dict[str, Array]:
    """All tensors, every pair moved by a random C of GL(r): (B C⁻¹, C A) is the same change."""
    tensors = {name: np.asarray(adapter.tensors.raw(name)) for name in adapter.others}
    for number, module in enumerate(adapter.pairs):
        sampler = Sampler(0, condition)
        sampler.rng = np.random.default_rng([seed, number])
        up, down = adapter.factors(module)
        change = sampler.invertible(1, len(down))[0]
        tensors[module + DOWN], tensors[module + UP] = change @ down, lapack.solve(change.T, up.T).T
    return tensors


def fingerprint_adapter(adapter: Adapter, seed: int = 0) -> dict[str, str]:
    """Per module a digest of the change s B A, the same for every C of GL(r), and one of all: ``adapter``.

    s zᵀ B A x is taken at two random points mod 2^61 − 1; s is q √m with m free of squares, and m goes in by itself.
    """
    prints = {}
    for module, pair in adapter.pairs.items():
        root = 1
        if not _is_square(pair.square):
            root = _square_free(pair.rank)
        ratio = pair.square / root
        factor = Fraction(isqrt(ratio.numerator), isqrt(ratio.denominator))
        scale = factor.numerator * pow(factor.denominator, -1, P) % P
        values = [_value(adapter, module, seed + 2**64 * k) * scale % P for k in (1, 2)]
        text = json.dumps([module, pair.rows, pair.columns, root, *values])
        prints[module] = sha256(text.encode()).hexdigest()[:32]
    others = [adapter.tensors.digest(name) for name in adapter.others]
    return {**prints, "adapter": sha256(json.dumps([*prints.values(), *others]).encode()).hexdigest()[:32]}


def _is_square(number: Fraction) -> bool:
    return all(isqrt(n) ** 2 == n for n in (number.numerator, number.denominator))


def _square_free(number: int) -> int:
    """The part of a rank that is free of squares.

    >>> [_square_free(n) for n in (1, 8, 12, 30)]
    [1, 2, 3, 30]
    """
    for k in range(isqrt(number), 1, -1):
        if number % (k * k) == 0:
            return number // (k * k)
    return number


def write_adapter(adapter: Adapter, tensors: Mapping[str, Array], out: str | Path) -> AdapterComparison:
    """Write other factors of the same change as a new folder, in float64 if the adapter is so, else in float32.

    Checked to be the same change before the folder gets its name.
    """
    kind = np.float64 if adapter.dtype == "F64" else np.float32
    with new_folder(Path(out), adapter.path) as temporary:
        rounded = {n: t.astype(kind) if n.endswith((DOWN, UP)) else t for n, t in tensors.items()}
        # The writer of safetensors takes the bytes as they lie, so that arrays must lie by rows.
        save_file({n: np.ascontiguousarray(t) for n, t in rounded.items()}, temporary / WEIGHTS)
        (temporary / CONFIG).write_text(json.dumps(dict(adapter.config), indent=2, ensure_ascii=False) + "\n")
        check = compare_adapters(adapter, open_adapter(temporary))
        if check.same_change is not True:
            raise WriteError(f"{out} was not written: the result differs from the adapter ({check.reason[:120]})")
    return check
