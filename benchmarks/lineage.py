"""Lineage: derived pairs against independent ones under every disguise, with the rivals in the same run.

Trains tiny Llamas on the spot (`examples/tiny_llamas.py`; torch is needed), derives models from them in nine ways,
disguises each in five ways, and measures every pair by our similarity and by six others, restated here. No pair is left
out: what a rival cannot measure counts as least alike. ``--reference`` writes the table that the package ships,
``--pairs`` all pairs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples"), str(ROOT / "benchmarks")]

import numpy as np  # noqa: E402
from scipy.optimize import linear_sum_assignment  # noqa: E402

from attngeom.models import Model, lineage, open_model, teleport  # noqa: E402
from attngeom.models.ancestry.lineage import Parentage  # noqa: E402
from attngeom.models.ancestry.reference import INDEPENDENT, reference  # noqa: E402
from contract import emit, require  # noqa: E402

TABLE = "derived against independent: area under the curve"
DISGUISES: dict[str, tuple[str, ...]] = {
    "none": (), "orders": ("heads", "units"), "scales": ("norms", "biases"), "gauges": ("qk", "vo"),
    "stream": ("residual",), "all": ("qk", "vo", "heads", "units", "norms", "biases", "residual"),
}  # fmt: skip
SIXTEENTHS = 16
STRANGERS = ("none", "all")
"""Disguises in which independent pairs are measured; those of "none" and "all" together stand against every other."""


@dataclass(frozen=True, eq=False)
class Sample:
    """A model, how it was made, and from which bases."""

    name: str
    kind: str
    size: str
    data: str
    bases: tuple[str, ...]
    model: Model
    layers: tuple[tuple[str, int], ...] = ()
    """Of a merge by layers: base and layer of every layer."""


def make_bases(seeds: int, steps: int, only: int | None = None) -> Iterator[Sample]:
    """Models from first values of their own, or one of them."""
    from tiny_llamas import SIZES, config_of, to_model, train_base

    names = [(size, data, seed) for size in SIZES for data in ("words", "sums") for seed in range(seeds)]
    for number, (size, data, seed) in enumerate(names):
        if only is None or only == number:
            name = f"{size} {data} {seed}"
            weights = train_base(size, data, steps, seed=1000 + number)
            yield Sample(name, "base", size, data, (name,), to_model(weights, config_of(size)))
            print(f"trained {name}", flush=True)


def derive(base: Sample, partner: Sample, number: int, steps: int) -> Iterator[Sample]:
    """One model of every kind; ``partner`` is another base of the same size, for the merge by layers."""
    import torch

    from tiny_llamas import config_of, prune, quantise, start_weights, to_weights, train, upcycle, write_text

    config, weights = config_of(base.size), to_weights(base.model)
    rng = np.random.default_rng([5, number])

    def sample(kind: str, state: Mapping[str, Any], changed: Mapping[str, Any] | None = None, **more: Any) -> Sample:
        arrays = {name: np.ascontiguousarray(np.asarray(w, dtype=np.float32)) for name, w in state.items()}
        bases = more.pop("bases", (base.name,))
        model = open_model(arrays, changed or config)
        return Sample(f"{kind} of {base.name}", kind, base.size, base.data, bases, model, **more)

    other = "sums" if base.data == "words" else "words"
    own_text, other_text = write_text(base.data, 100_000, 500 + number), write_text(other, 100_000, 600 + number)
    light = train(weights, config, own_text, steps // 4, seed=700 + number, rate=1e-3)
    long = train(weights, config, other_text, steps, seed=800 + number, rate=2e-3)
    yield sample("fine-tuned lightly", light)
    yield sample("fine-tuned long", long)
    adapted = [name for name in weights if "proj" in name]
    draws = torch.Generator().manual_seed(number)
    factors = {f"{n}/A": 0.05 * torch.randn(4, weights[n].shape[1], generator=draws) for n in adapted}
    factors |= {f"{n}/B": torch.zeros(weights[n].shape[0], 4) for n in adapted}

    def merged(trained: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {n: w + 4 * trained[f"{n}/B"] @ trained[f"{n}/A"] if n in adapted else w for n, w in weights.items()}

    low = train(factors, config, other_text, steps // 4, seed=900 + number, make=merged)
    yield sample("LoRA merged", merged(low))
    yield sample("averaged", {name: (light[name] + long[name]) / 2 for name in light})
    state = {name: tensor.numpy() for name, tensor in light.items()}
    yield sample("pruned", *prune(state, config))
    yield sample("quantised to 4 bits", {name: quantise(w) for name, w in state.items()})
    yield sample("20 % noise", {n: w * (1 + 0.2 * rng.normal(size=w.shape)) for n, w in state.items()})
    yield sample("upcycled to experts", *upcycle(state, config, rng))
    places: list[tuple[int, int]] = []
    while {which for which, _ in places} != {0, 1}:
        # A merge has layers of both.
        places = [
            (int(rng.integers(2)), int(rng.integers(config["num_hidden_layers"])))
            for _ in range(config["num_hidden_layers"] + 1)
        ]
    states = [state, {name: tensor.numpy() for name, tensor in to_weights(partner.model).items()}]
    stacked = {name: w for name, w in state.items() if ".layers." not in name}
    for place, (which, layer) in enumerate(places):
        own = {n: w for n, w in states[which].items() if f".layers.{layer}." in n}
        stacked |= {n.replace(f".layers.{layer}.", f".layers.{place}."): w for n, w in own.items()}
    names = base.name, partner.name
    yield sample(
        "merged by layers", stacked, {**config, "num_hidden_layers": len(places)}, bases=names,
        layers=tuple((names[which], layer) for which, layer in places),
    )  # fmt: skip
    if number % 3 == 0:
        pupil = train(start_weights(config, 5000 + number), config, own_text, steps, seed=number, teacher=weights)
        yield sample("distilled", pupil)


# The rivals, restated: each takes two models of one width and gives a number that is larger for more alike ones.


def _matrix(model: Model, layer: int, name: str) -> np.ndarray:
    return np.asarray(model.tensors.raw(f"model.layers.{layer}.{name}.weight"), dtype=np.float64)


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    size = np.linalg.norm(one) * np.linalg.norm(other)
    return float((one * other).sum() / size) if size else 0.0


def tensor_cosine(one: Model, other: Model) -> float:
    """Mean cosine of tensors of the same name."""
    return float(np.mean([_cosine(_matrix(one, i, n), _matrix(other, i, n)) for i, n in _names(one, other)]))


def _names(one: Model, other: Model) -> list[tuple[int, str]]:
    parts = [f"self_attn.{p}_proj" for p in "qkvo"] + [f"mlp.{p}_proj" for p in ("gate", "up", "down")]
    return [(i, part) for i in range(min(one.layers, other.layers)) for part in parts]


def _products(model: Model, layer: int, folded: bool) -> list[np.ndarray]:
    """X W_qᵀ W_k Xᵀ, X W_vᵀ W_oᵀ Xᵀ, X W_upᵀ W_downᵀ Xᵀ for the rows X of the tokens, summed over heads."""
    x = np.asarray(model.embedding(), dtype=np.float64)[:96]
    gains = [np.ones(model.spec.width)] * 2
    if folded:
        names = ("input_layernorm", "post_attention_layernorm")
        gains = [np.asarray(model.tensors.raw(f"model.layers.{layer}.{n}.weight"), dtype=np.float64) for n in names]
    q, k, v, o = (_matrix(model, layer, f"self_attn.{part}_proj") for part in "qkvo")
    up, down = (_matrix(model, layer, f"mlp.{part}_proj") for part in ("up", "down"))
    share = len(q) // len(k)
    repeat = np.repeat(np.arange(len(k)).reshape(-1, 16), share, axis=0).ravel()
    q, k, v = q * gains[0], (k * gains[0])[repeat], (v * gains[0])[repeat]
    return [x @ q.T @ k @ x.T, x @ v.T @ o.T @ x.T, x @ (up * gains[1]).T @ down.T @ x.T]


def raw_products(one: Model, other: Model, folded: bool = False) -> float:
    """Mean cosine of products of weights with the embedding between, as HuRef takes them."""
    pairs = [(_products(one, i, folded), _products(other, i, folded)) for i in range(min(one.layers, other.layers))]
    return float(np.mean([_cosine(a, b) for left, right in pairs for a, b in zip(left, right)]))


def folded_products(one: Model, other: Model) -> float:
    """The same with the gains of the norms folded in first."""
    return raw_products(one, other, True)


def _cka(one: np.ndarray, other: np.ndarray) -> float:
    """Linear CKA of centred rows."""
    one, other = (x - x.mean(axis=0) for x in (one, other))
    top = np.linalg.norm(one.T @ other) ** 2
    return float(top / max(np.linalg.norm(one.T @ one) * np.linalg.norm(other.T @ other), 1e-300))


def aligned_cka(one: Model, other: Model) -> float:
    """CKA of W_q and W_k, coordinates of the stream aligned by a signed permutation of the embeddings (as AWM)."""
    left, right = (np.asarray(m.embedding(), dtype=np.float64)[:96] for m in (one, other))
    cosines = (left / np.linalg.norm(left, axis=0)).T @ (right / np.linalg.norm(right, axis=0))
    order = linear_sum_assignment(-np.abs(cosines))[1]
    signs = np.sign(cosines[np.arange(len(order)), order])
    values = []
    for layer in range(min(one.layers, other.layers)):
        for part in "qk":
            near = _matrix(one, layer, f"self_attn.{part}_proj").T
            far = (_matrix(other, layer, f"self_attn.{part}_proj")[:, order] * signs).T
            values.append(_cka(near, far))
    return float(np.mean(values))


def state_cka(one: Model, other: Model) -> float:
    """CKA of the states behind every layer on one text of both kinds (as REEF)."""
    import torch

    from tiny_llamas import LENGTH, run, to_weights, write_text

    texts = np.concatenate([write_text(kind, 8 * LENGTH, 4242).reshape(8, LENGTH) for kind in ("words", "sums")])
    ids = torch.from_numpy(texts)
    with torch.no_grad():
        states = [run(to_weights(m), m.config, ids)[1] for m in (one, other)]
    pairs = [(a.flatten(0, 1).double().numpy(), b.flatten(0, 1).double().numpy()) for a, b in zip(*states)]
    return float(np.mean([_cka(a, b) for a, b in pairs]))


def matched_units(one: Model, other: Model) -> float:
    """Units matched by raw gates, mean cosine of their raw ups."""
    values = []
    for layer in range(min(one.layers, other.layers)):
        rows = [[_matrix(m, layer, f"mlp.{n}_proj") for n in ("gate", "up")] for m in (one, other)]
        unit = [[w / np.linalg.norm(w, axis=1, keepdims=True) for w in pair] for pair in rows]
        place, order = linear_sum_assignment(-(unit[0][0] @ unit[1][0].T))
        values.append((unit[0][1][place] * unit[1][1][order]).sum(axis=1).mean())
    return float(np.mean(values))


RIVALS = {
    "cosine of tensors": tensor_cosine, "raw products": raw_products, "folded products": folded_products,
    "aligned CKA of W_q, W_k": aligned_cka, "CKA of states": state_cka, "matched units": matched_units,
}  # fmt: skip


def rival_scores(child: Model, parent: Model) -> dict[str, float]:
    """What every rival says; −2 where it cannot say anything: shapes or layouts differ."""
    found = {}
    for name, measure in RIVALS.items():
        try:
            value = measure(child, parent)
        except (KeyError, ValueError):
            value = -2.0
        found[name] = value if np.isfinite(value) else -2.0
    return found


def area(derived: list[float], independent: list[float]) -> float:
    """P(a derived pair is more alike than an independent one), ties half.

    >>> area([2.0, 3.0], [1.0, 2.0])
    0.875
    """
    one, other = np.array(derived)[:, None], np.array(independent)[None]
    return float((one > other).mean() + (one == other).mean() / 2)


def measure(
    sample: Sample, number: int, bases: Mapping[str, Sample], disguises: Mapping[str, tuple[str, ...]]
) -> list[dict[str, Any]]:
    """A sample against the bases it was made from in every disguise, against the others of its size in two."""
    rows = []
    near = {name: base for name, base in bases.items() if base.size == sample.size and name != sample.name}
    for place, (disguise, parts) in enumerate(disguises.items()):
        seed = 1000 * number + place
        child = sample.model if not parts else teleport(sample.model, seed, parts=parts).moved()
        chosen = {name: base for name, base in near.items() if name in sample.bases or disguise in STRANGERS}
        if not chosen:
            continue
        answers = lineage(child, [base.model for base in chosen.values()], unused=range(96, 128), seed=seed)
        for (name, base), found in zip(chosen.items(), answers.parents):
            kind = sample.kind if name in sample.bases else INDEPENDENT[base.data != sample.data]
            rows.append(_row(sample, name, kind, disguise, child, base.model, found, len(chosen)))
    print(f"measured {number + 1}: {sample.name}", flush=True)
    return rows


def _row(
    sample: Sample, base: str, kind: str, disguise: str, child: Model, parent: Model, found: Parentage, tries: int
) -> dict[str, Any]:
    assert found.similarity is not None and found.test is not None
    return {
        "child": sample.name, "parent": base, "kind": kind, "disguise": disguise, "ours": found.similarity,
        "largest_layer": max(layer.similarity for layer in found.layers), "own": found.test.own,
        "p": found.test.p / tries, "beyond": found.beyond[1],
        "layers": [[layer.matches, round(layer.similarity, 4)] for layer in found.layers],
        **rival_scores(child, parent),
    }  # fmt: skip


def report(rows: list[dict[str, Any]], disguises: Mapping[str, tuple[str, ...]]) -> dict[str, dict[str, float]]:
    """The areas by measure and disguise; distilled models are not counted as derived."""
    table: dict[str, dict[str, float]] = {}
    for name in ("ours", *RIVALS):
        table[name] = {}
        for disguise in disguises:
            known = (disguise,) if disguise in STRANGERS else STRANGERS
            own = [row for row in rows if row["disguise"] == disguise and row["kind"] != "distilled"]
            derived = [row[name] for row in own if row["kind"] not in INDEPENDENT]
            strangers = [row[name] for row in rows if row["disguise"] in known and row["kind"] in INDEPENDENT]
            table[name][disguise] = area(derived, strangers)
            emit(TABLE, f"disguise: {disguise}", table[name][disguise], "ours" if name == "ours" else name, unit="area")
        can = [row for row in rows if row[name] > -2 and row["kind"] != "distilled"]
        parts = [[row[name] for row in can if (row["kind"] in INDEPENDENT) == here] for here in (False, True)]
        print(f"{name:28s}where it can measure: {area(*parts):.3f}; every pair:  ", end="")
        print("".join(f"{disguise}: {value:.3f}  " for disguise, value in table[name].items()))
    return table


def shorten(row: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a row with five digits."""
    return {name: float(f"{value:.5g}") if isinstance(value, float) else value for name, value in row.items()}


def reference_table(rows: list[dict[str, Any]], made_by: str) -> dict[str, Any]:
    """The table that the package ships: undisguised pairs by kind."""
    plain = [row for row in rows if row["disguise"] == "none"]
    kinds = []
    for kind in dict.fromkeys((*INDEPENDENT, *(row["kind"] for row in plain))):
        values = [row["ours"] for row in plain if row["kind"] == kind]
        if values:
            numbers = [float(np.round(f(values), 4)) for f in (np.min, np.median, np.max)]
            kinds.append(dict(zip(("name", "pairs", "least", "median", "largest"), (kind, len(values), *numbers))))
    strangers = [row for row in plain if row["kind"] in INDEPENDENT]
    return {
        "made_by": made_by, "pairs": len(strangers), "largest_independent": max(row["ours"] for row in strangers),
        "largest_layer": max(row["largest_layer"] for row in strangers), "kinds": kinds,
    }  # fmt: skip


def right_layers(rows: list[dict[str, Any]], samples: list[Sample]) -> tuple[int, int]:
    """Layers of merges whose base is named right by the larger similarity, and how many there are."""
    merged = {sample.name: sample for sample in samples if sample.layers}
    right = total = 0
    for disguise in {row["disguise"] for row in rows}:
        for name, sample in merged.items():
            own = {row["parent"]: row["layers"] for row in rows if (row["child"], row["disguise"]) == (name, disguise)}
            for place, truth in enumerate(sample.layers):
                best = max(own, key=lambda base: own[base][place][1])
                right += (best, own[best][place][0]) == truth
                total += 1
    return right, total


def derive_all(bases: Mapping[str, Sample], steps: int, only: int | None = None) -> Iterator[Sample]:
    """The models derived from every base, or from one of them."""
    for number, base in enumerate(bases.values()):
        alike = [other for other in bases.values() if other.size == base.size and other is not base]
        if only is None or only == number:
            yield from derive(base, alike[number % len(alike)], number, steps)


def conclude(
    rows: list[dict[str, Any]], samples: list[Sample], disguises: Mapping[str, tuple[str, ...]], made_by: str
) -> dict[str, Any]:
    """Print everything, and give the table that the package ships."""
    pairs = len({(row["child"], row["parent"]) for row in rows if row["kind"] in INDEPENDENT})
    derived = [sample for sample in samples if sample.kind != "base"]
    print(
        f"{len(samples) - len(derived)} bases, {len(derived)} derived, {pairs} independent pairs, {len(rows)} measured"
    )
    plain = {(row["child"], row["parent"]): row["ours"] for row in rows if row["disguise"] == "none"}
    moved = max(abs(row["ours"] - plain[row["child"], row["parent"]]) for row in rows)
    print(f"largest change of our similarity by a disguise: {moved:.1e}")
    require(moved < 1e-3, "no disguise moves the similarity")
    limit = max(reference().largest_independent, *(row["ours"] for row in rows if row["kind"] in INDEPENDENT))
    clear = [row for row in rows if row["kind"] not in (*INDEPENDENT, "distilled") and row["ours"] > limit]
    lost = [row for row in clear if row["beyond"] <= limit]
    print(f"{len(clear)} derived pairs are more alike than {limit:.3f}, {len(lost)} of them no more than others are")
    table = report(rows, disguises)
    require(min(table["ours"].values()) > 0.99, "derived pairs are told from independent ones")
    right, total = right_layers(rows, samples)
    print(f"layers of merges whose parent is named right: {right} of {total}")
    if total:
        emit("layers of merges named right", "share", right / total, unit="share")
    strangers = [row["p"] for row in rows if row["kind"] in INDEPENDENT]
    shares = [float(np.mean([p <= level for p in strangers])) for level in (0.05, 0.01)]
    print(f"exact test on 32 unused tokens: independent p ≤ .05, .01: {shares[0]:.3f}, {shares[1]:.3f}; ", end="")
    found = [row["own"] for row in rows if row["kind"] not in INDEPENDENT and row["kind"] != "distilled"]
    print(f"derived: least {min(found)}, median {np.median(found):.0f} of 32 own")
    shipped = reference_table(rows, made_by)
    for kind in shipped["kinds"]:
        print(f"{kind['name']:26s} {kind['pairs']:4d}  {kind['least']:.3f} {kind['median']:.3f} {kind['largest']:.3f}")
    return shipped


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, 60 steps, two disguises")
    parser.add_argument("--seeds", type=int, default=2, help="bases of each size and text")
    parser.add_argument("--steps", type=int, default=120, help="steps of training")
    parser.add_argument("--share", type=int, default=SIXTEENTHS, help="how many sixteenths of the models are measured")
    parser.add_argument("--reference", type=Path, help="write the table that the package ships")
    parser.add_argument("--pairs", type=Path, help="write all pairs")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    seeds, steps = (1, 60) if options.quick else (options.seeds, options.steps)
    disguises = {k: v for k, v in DISGUISES.items() if not options.quick or k in ("none", "all")}
    start = time.process_time()
    bases = {base.name: base for base in make_bases(seeds, steps)}
    samples = [*bases.values(), *derive_all(bases, steps)]
    print(f"{time.process_time() - start:.0f} CPU s of training", flush=True)
    chosen = [(number, s) for number, s in enumerate(samples) if number % SIXTEENTHS < options.share]
    rows = [row for number, sample in chosen for row in measure(sample, number, bases, disguises)]
    made = f"benchmarks/lineage.py --seeds {seeds} --steps {steps} --share {options.share}"
    # Pairs are kept whatever is concluded from them.
    if options.pairs:
        lines = ",\n".join(json.dumps(shorten(row)) for row in rows)
        options.pairs.write_text(f'{{"made_by": {json.dumps(made)}, "rows": [\n{lines}\n]}}\n')
    shipped = conclude(rows, [sample for _, sample in chosen], disguises, made)
    if options.reference:
        options.reference.write_text(json.dumps(shipped, indent=1) + "\n")


if __name__ == "__main__":
    main()
