"""What stands out in the weights of a model: a table of its heads, invisible weights, degenerate cases.

Ranks and singular values are numerical statements about the stored floats (standing: estimate), thresholds are given
with them. Each finding names the layer, the part and a value. Heads and units that the function does not determine,
where differences show nothing about it: keys or values without full rank, heads that write nothing, heads with equal
scores, units that write or read nothing or that read the same as another one. Their thresholds are far below any
rounding of files, so only true degeneracies count.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.limits.rounding import DEGENERATE_SIZE, SCORES_FAR, SLOW_ROTATION
from attngeom.limits.work import ROW_BEGINNING
from attngeom.models.affine import Affine
from attngeom.models.layer import AttentionWeights, LayerWeights, MLPWeights, NormWeights
from attngeom.models.matching import head_features
from attngeom.models.model import Model
from attngeom.models.orbits import Recovered
from attngeom.models.readers import key_bias_is_invisible, switches, value_bias_is_constant
from attngeom.models.reading import ROUNDOFF
from attngeom.models.specification import MLP, Experts, GroupedAttention, Rotary, TransformerBlock
from attngeom.models.symmetry import Units
from attngeom.models.tensor_errors import TensorPart
from attngeom.models.views import ModelView


@dataclass(frozen=True, kw_only=True)
class Remark:
    """One thing that a reader should know."""

    layer: int | None
    part: str
    text: str
    value: float | int | None

    def to_json(self) -> dict[str, Any]:
        return {"layer": self.layer, "part": self.part, "text": self.text, "value": self.value}


@dataclass(frozen=True, kw_only=True)
class HeadRow:
    """One query head: ranks of K and V, condition of the gauge, singular values of KᵀQ and O V, a twin if any."""

    layer: int
    part: str
    head: int
    key_rank: int
    value_rank: int
    condition: float
    query_key: tuple[float, ...]
    value_output: tuple[float, ...]
    twin: int | None

    def to_json(self) -> dict[str, Any]:
        return {
            "layer": self.layer, "part": self.part, "head": self.head, "key_rank": self.key_rank,
            "value_rank": self.value_rank, "condition": self.condition, "query_key": list(self.query_key),
            "value_output": list(self.value_output), "twin": self.twin,
        }  # fmt: skip


def inspect_layer(model: Model, layer: int) -> tuple[list[HeadRow], list[Remark]]:
    """The table of heads and the findings of one layer."""
    block = model.block(layer)
    unit = max(ROUNDOFF[model.dtype], 1e-12)
    view, stored = ModelView(model), model.layer(layer)
    folded = view.fold(layer, view.beside_tables(layer, stored))
    rows: list[HeadRow] = []
    remarks: list[Remark] = []
    for part, spec in block.attentions.items():
        before, after = stored.attentions[part], folded.attentions[part]
        table = _head_rows(layer, part, after, unit, spec.is_centred)
        rows += table
        remarks += _head_findings(layer, part, table, after, spec.is_centred)
        remarks += _constant_findings(layer, part, spec, before)
        remarks += _rotary_findings(layer, part, spec, before)
        if layer == 0 and part == "attention":
            remarks += _clamp_findings(block)
        if layer == 0 and spec.rotary is not None:
            remarks += _context_findings(f"{part} rotary", spec.rotary, model.config.get("max_position_embeddings"))
    remarks += _norm_findings(layer, block, stored)
    remarks += _unit_findings(layer, block, folded)
    return rows, remarks


def _values(inner: Array, outer: Array, share: int) -> Array:
    """Singular values of outer_h inner_g, all heads."""
    if not inner.shape[1]:
        return np.zeros((len(outer), 0))
    small = lapack.triangle(inner.transpose(0, 2, 1))
    cores = lapack.triangle(outer) @ np.repeat(small, share, axis=0).transpose(0, 2, 1)
    return lapack.svdvals(cores)


def _head_rows(layer: int, part: str, weights: AttentionWeights, unit: float, centred: bool) -> list[HeadRow]:
    heads, share = weights.heads, weights.heads // weights.groups
    keys = weights.rows("key") if weights.key_latent is None else weights.key.weight
    # The rows of a centred head sum to zero.
    key_values = lapack.svdvals(keys)[:, : keys.shape[1] - centred]
    value_values = lapack.svdvals(weights.value.weight)
    plain = _values(weights.key.weight, weights.query.weight.transpose(0, 2, 1), share)
    scores = -np.sort(-np.concatenate([plain, np.multiply(*weights.pair_norms)], axis=1), axis=1)
    outputs = _values(weights.value.weight, weights.output, share)
    twins = find_twins(weights, unit)

    def rank(values: Array) -> int:
        return int((values > 4 * unit * max(values[0], 1e-300)).sum())

    rows = []
    for h in range(heads):
        g = h // share
        condition = max(_ratio(key_values[g]), _ratio(value_values[g]))
        rows.append(
            HeadRow(
                layer=layer, part=part, head=h, key_rank=rank(key_values[g]), value_rank=rank(value_values[g]),
                condition=condition, query_key=tuple(map(float, scores[h])),
                value_output=tuple(map(float, outputs[h])), twin=twins.get(h),
            )
        )  # fmt: skip
    return rows


def _ratio(values: Array) -> float:
    return float(values[0] / values[-1]) if values[-1] > 0 else float("inf")


def find_twins(weights: AttentionWeights, unit: float) -> dict[int, int]:
    """Heads with equal scores: their features of KᵀQ agree, and so do KᵀQ themselves."""
    if weights.query_gain is not None or weights.key_latent is not None:
        return {}
    features = head_features(weights)
    heads, share = weights.heads, weights.heads // weights.groups
    twins: dict[int, int] = {}
    scale = max(float(np.abs(features).max()), 1e-300)
    count = features.shape[1] - weights.value.weight.shape[1]
    for i in range(heads):
        gaps = np.abs(features[i + 1 :, :count] - features[i, :count]).max(axis=1, initial=0.0)
        for j in i + 1 + np.flatnonzero(gaps <= 16 * unit * scale):
            if j not in twins and _score_gap(weights, i, int(j), share) <= 16 * unit:
                twins[int(j)] = i
    return twins


def _score_gap(weights: AttentionWeights, i: int, j: int, share: int) -> float:
    """‖S_i − S_j‖ / ‖S_i‖ for the scores S_h = (K_gᵀ Q_h, conj(k_f) q_hfᵀ of every pair), from their factors.

    No matrix of the size of the stream is made: a layer has hundreds of pairs of heads.
    """
    rotated_share = weights.heads // weights.rotated_groups
    (k, q), (l, r) = ((weights.rotated_key.weight[h // rotated_share], weights.rotated_query.weight[h]) for h in (i, j))
    sizes = (np.abs(k) ** 2).sum(axis=1)
    # l = α k + m with m orthogonal to k, so that conj(k) qᵀ − conj(l) rᵀ = conj(k) (q − conj(α) r)ᵀ − conj(m) rᵀ.
    along = np.where(sizes > 0, (k.conj() * l).sum(axis=1) / np.where(sizes > 0, sizes, 1.0), 0.0)
    gaps = sizes * (np.abs(q - along.conj()[:, None] * r) ** 2).sum(axis=1)
    gaps += (np.abs(l - along[:, None] * k) ** 2).sum(axis=1) * (np.abs(r) ** 2).sum(axis=1)
    gap, size = float(gaps.sum()), float((sizes * (np.abs(q) ** 2).sum(axis=1)).sum())
    keys, others = weights.key.weight[i // share], weights.key.weight[j // share]
    queries, rivals = weights.query.weight[i], weights.query.weight[j]
    if len(keys):
        own, theirs = weights.grams["key"][i // share], weights.grams["query"][i]
        whole = float((own * theirs).sum()), float((weights.grams["key"][j // share] * weights.grams["query"][j]).sum())
        apart = sum(whole) - 2 * float(((keys @ others.T) * (queries @ rivals.T)).sum())
        if apart > SCORES_FAR * whole[0]:
            return math.sqrt((gap + apart) / max(size + whole[0], 1e-300))
        # Digits are lost in that difference where the scores are close.
        left = lapack.triangle(np.concatenate([keys, -others]).T[None])[0]
        right = lapack.triangle(np.concatenate([queries, rivals]).T[None])[0]
        gap += float(np.linalg.norm(left @ right.T)) ** 2
        a = len(keys)
        size += float(np.linalg.norm(left[:, :a] @ right[:, :a].T)) ** 2
    return math.sqrt(gap) / max(math.sqrt(size), 1e-300)


def equal_rows(reader: Affine) -> list[list[int]]:
    """Rows of a map that are equal, with their biases: of those whose beginnings are."""
    starts = np.concatenate([reader.piece(part)[:, :ROW_BEGINNING] for part in reader.parts()])
    # Adding zero makes −0.0 to 0.0, so that equal rows have equal bytes.
    biases = reader.bias + 0.0
    beginnings = [start.tobytes() + bias.tobytes() for start, bias in zip(starts + 0.0, biases)]
    counts, classes = Counter(beginnings), dict[bytes, list[int]]()
    for i in (i for i, beginning in enumerate(beginnings) if counts[beginning] > 1):
        digest = sha256((reader.piece(slice(i, i + 1)) + 0.0).tobytes() + biases[i].tobytes()).digest()
        classes.setdefault(digest, []).append(i)
    return [rows for rows in classes.values() if len(rows) > 1]


def _head_findings(
    layer: int, part: str, rows: list[HeadRow], weights: AttentionWeights, centred: bool
) -> list[Remark]:
    remarks = []
    a = weights.key.weight.shape[1] + 2 * weights.rotated_key.weight.shape[1] - centred
    if weights.key_latent is not None:
        a = weights.key.weight.shape[1]
    v = weights.value.weight.shape[1]
    for row in rows:
        if row.key_rank < a:
            text = f"keys of head {row.head} have rank {row.key_rank} of {a}: a larger group acts on them"
            remarks.append(Remark(layer=layer, part=f"{part} key", text=text, value=row.key_rank))
        if row.value_rank < v:
            text = f"values of head {row.head} have rank {row.value_rank} of {v}"
            remarks.append(Remark(layer=layer, part=f"{part} value", text=text, value=row.value_rank))
        if not row.value_output or row.value_output[0] == 0:
            text = f"head {row.head} writes nothing: its queries and keys are invisible"
            remarks.append(Remark(layer=layer, part=f"{part} output", text=text, value=0))
        if row.twin is not None:
            text = f"heads {row.twin} and {row.head} have equal scores: only the sum of their outputs is seen"
            remarks.append(Remark(layer=layer, part=f"{part} heads", text=text, value=row.twin))
    return remarks


def _constant_findings(layer: int, part: str, spec: GroupedAttention, weights: AttentionWeights) -> list[Remark]:
    remarks = []
    if spec.key_bias and key_bias_is_invisible(spec) and np.any(weights.key.bias):
        size = float(np.linalg.norm(weights.key.bias))
        text = f"key biases on {spec.unrotated} unrotated coordinates are invisible and can be set to zero"
        remarks.append(Remark(layer=layer, part=f"{part} key bias", text=text, value=size))
    if spec.value_bias and value_bias_is_constant(spec) and np.any(weights.value.bias):
        home = "the output bias" if spec.output_bias else "one constant of the output"
        size = float(np.linalg.norm(weights.value.bias))
        text = f"value biases are seen only as {home}"
        remarks.append(Remark(layer=layer, part=f"{part} value bias", text=text, value=size))
    return remarks


def _rotary_findings(layer: int, part: str, spec: GroupedAttention, weights: AttentionWeights) -> list[Remark]:
    if spec.rotary is None:
        return []
    remarks = []
    if min(spec.rotary.frequencies) == 0:
        count = sum(1 for f in spec.rotary.frequencies if f == 0)
        text = f"{count} rotary frequencies are zero: those pairs have the group of unrotated coordinates"
        remarks.append(Remark(layer=layer, part=f"{part} rotary", text=text, value=count))
    if len(set(spec.rotary.frequencies)) < len(spec.rotary.frequencies):
        text = "equal rotary frequencies: their pairs mix by a larger group than one phase each"
        remarks.append(Remark(layer=layer, part=f"{part} rotary", text=text, value=None))
    if weights.query_gain is not None and weights.key_gain is not None and not spec.is_centred:
        f = weights.rotated_key.weight.shape[1]
        equal = (weights.query_gain[:, :f] == weights.query_gain[:, f : 2 * f]).all(axis=0)
        equal &= (weights.key_gain[:, :f] == weights.key_gain[:, f : 2 * f]).all(axis=0)
        if equal.any():
            text = f"{int(equal.sum())} pairs have equal QK-norm gains: a phase of each is free"
            remarks.append(Remark(layer=layer, part=f"{part} QK-norm", text=text, value=int(equal.sum())))
    return remarks


def _context_findings(part: str, rotary: Rotary, context: Any) -> list[Remark]:
    """Pairs that the context of the model hardly shows."""
    if not isinstance(context, int) or isinstance(context, bool):
        return []
    remarks = []
    if context <= rotary.dims:
        text = f"contexts of {context} tokens do not determine {rotary.dims} rotated coordinates (Lemma 3)"
        remarks.append(Remark(layer=None, part=part, text=text, value=context))
    slow = sum(1 for f in rotary.frequencies if 0 < f * context < SLOW_ROTATION)
    if slow:
        pairs = f"{slow} of {rotary.dims // 2} pairs"
        text = f"{pairs} turn by less than {SLOW_ROTATION} in {context} tokens: hardly seen in outputs"
        remarks.append(Remark(layer=None, part=part, text=text, value=slow))
    return remarks


def _clamp_findings(block: TransformerBlock) -> list[Remark]:
    """What is assumed of a clamp that not every release of transformers reads from the configuration."""
    limit = block.mlp.expert.limit if isinstance(block.mlp, Experts) else None
    if limit is None:
        return []
    text = f"gates are clamped at {limit:g} and ups at ±{limit:g}: swiglu_limit of the config, 7 if it has none"
    if limit != 7:
        text += "; releases of transformers that do not read the key clamp at 7"
    return [Remark(layer=None, part="experts", text=text, value=limit)]


def _norm_findings(layer: int, block: TransformerBlock, stored: LayerWeights) -> list[Remark]:
    remarks = []
    for name in block.input_norms:
        zeros = int((stored.norms[name].gain == 0).sum())
        if zeros:
            text = f"{zeros} gains are zero: those columns of all readers are invisible"
            remarks.append(Remark(layer=layer, part=f"norm {name}", text=text, value=zeros))
    return remarks


def _unit_findings(layer: int, block: TransformerBlock, folded: LayerWeights) -> list[Remark]:
    remarks = []
    for number, mlp in enumerate(folded.hidden.values()):
        part = "mlp" if isinstance(folded.mlp, MLPWeights) else f"expert {number}"
        dead = int((~np.any(mlp.down, axis=0)).sum())
        if dead:
            text = f"{dead} hidden units write nothing: their rows are invisible"
            remarks.append(Remark(layer=layer, part=part, text=text, value=dead))
        reader = mlp.gate if mlp.gate is not None else mlp.up
        twice = sum(len(units) - 1 for units in equal_rows(reader))
        if twice:
            text = f"{twice} hidden units have the in-weights of another one: only sums of their outputs are seen"
            remarks.append(Remark(layer=layer, part=part, text=text, value=twice))
        relu = isinstance(block.mlp, MLP) and block.mlp.degree > 0 and block.mlp_norms.input is not None
        fixed = int((~switches(mlp, NormWeights.plain(mlp.down.shape[0]))).sum()) if relu else 0
        if fixed:
            text = f"{fixed} ReLU units cannot switch on the sphere that they read: they are zero or affine"
            remarks.append(Remark(layer=layer, part=part, text=text, value=fixed))
    return remarks


Hidden = dict[TensorPart, set[int]]
"""Part of a layer → numbers of the heads or units in which it is not determined."""


def hidden_parts(target: LayerWeights, recovered: Recovered) -> Hidden:
    """What is not determined in the target or in the layer that was moved onto it."""
    hidden: Hidden = {}
    for layer in (target, recovered.aligned):
        for place, weights in layer.attentions.items():
            _add_attention(hidden, place, weights)
        if isinstance(layer.mlp, MLPWeights):
            lost, units = _lost_units(layer.mlp), recovered.deferred["mlp"]
            assert isinstance(units, Units)
            places = np.flatnonzero(lost if layer is target else lost[units.order])
            for part in ("gate", "gate_bias", "up", "up_bias", "down"):
                hidden.setdefault(TensorPart("mlp", part), set()).update(int(unit) for unit in places)
    return hidden


def _deficient(rows: Array) -> Array:
    """Per matrix of a batch, whether its rows are dependent."""
    if not rows.shape[1]:
        return np.zeros(len(rows), bool)
    values = lapack.svdvals(rows @ rows.transpose(0, 2, 1))
    return np.asarray(values[:, -1] <= DEGENERATE_SIZE**1.5 * values[:, 0])


def _add_attention(hidden: Hidden, place: str, weights: AttentionWeights) -> None:
    groups, share = weights.groups, weights.heads // weights.groups

    def note(part: str, numbers: Array) -> None:
        hidden.setdefault(TensorPart(place, part), set()).update(int(number) for number in numbers)

    def spread(flags: Array) -> Array:
        return np.flatnonzero(np.repeat(flags, share))

    keys, values = _deficient(weights.key.weight), _deficient(weights.value.weight)
    for part in ("query", "query_bias"):
        note(part, spread(keys))
    note("key", np.flatnonzero(keys))
    note("output", spread(values))
    note("value", np.flatnonzero(values))
    silent = ~np.any(weights.output.reshape(weights.heads, -1), axis=1)
    twins = find_twins(weights, DEGENERATE_SIZE / 16)
    same = np.array([h in twins or h in twins.values() for h in range(weights.heads)])
    for part in ("query", "query_bias", *weights.head_numbers, *weights.head_tables):
        note(part, np.flatnonzero(silent))
    whole = (silent | same).reshape(groups, share).any(axis=1)
    for part in ("key", "key_bias", "value", "value_bias"):
        note(part, np.flatnonzero(whole))
    note("output", np.flatnonzero(same))
    if silent.any() or same.any():
        # Order and matching of the other heads stay fixed, but queries of the heads concerned do not.
        note("query", np.flatnonzero(np.repeat(whole, share)))


def _lost_units(mlp: MLPWeights) -> Array:
    """Per unit, whether it reads what another one reads, or reads or writes nothing."""
    reader = mlp.gate if mlp.gate is not None else mlp.up
    lost = ~np.any(mlp.down, axis=0)
    lost[[unit for units in equal_rows(reader) for unit in units]] = True
    reads = np.concatenate([np.any(mlp.up.piece(part), axis=1) for part in mlp.up.parts()])
    return np.asarray(lost | ~(reads | (mlp.up.bias != 0)))
