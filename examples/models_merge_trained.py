"""Merge trained models: loss of the plain average, after permutations alone, and after `attngeom.models.merge`.

Trains tiny Llamas on the spot (needs torch). Three pairs: two fine-tuned copies of one base; the same pair after one of
them was moved along its orbit, stream included; two models trained from different first values.

    python examples/models_merge_trained.py
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

from attngeom.models import merge, teleport
from tiny_llamas import Weights, batches, config_of, loss_of, to_model, to_weights, train, train_base, write_text

CONFIG = config_of("small")
EVERYTHING = ("qk", "vo", "heads", "units", "norms", "biases", "residual")
STEPS = 300


def loss(weights: Weights, kinds: Sequence[str]) -> float:
    """Mean over fresh text of these kinds."""
    with torch.no_grad():
        texts = [batches(write_text(kind, 50_000, 99), 4, 5).flatten(0, 1) for kind in kinds]
        return float(np.mean([float(loss_of(weights, CONFIG, ids)) for ids in texts]))


def average(one: Weights, other: Weights) -> Weights:
    return {name: (one[name] + other[name]) / 2 for name in one}


def match(one: torch.Tensor, other: torch.Tensor) -> np.ndarray:
    """The order of the rows of ``other`` with the largest sum of products with the rows of ``one``."""
    return np.asarray(linear_sum_assignment(-(one @ other.T).numpy())[1])


def permuted(one: Weights, other: Weights) -> Weights:
    """The other model with its stream, groups of heads, heads and units in the order nearest to the first: no gauges.

    What re-basin does, restated: coordinates of the stream by the tables, then heads and units by all their weights.
    """
    width = match(one["model.embed_tokens.weight"].T, other["model.embed_tokens.weight"].T)
    found = {}
    for name, w in other.items():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            found[name] = w[width]
        else:
            found[name] = w[..., width]
    a, groups = CONFIG["head_dim"], CONFIG["num_key_value_heads"]
    share = CONFIG["num_attention_heads"] // groups
    for layer in range(CONFIG["num_hidden_layers"]):
        base = f"model.layers.{layer}."
        q, k, v, o = (f"{base}self_attn.{part}_proj.weight" for part in "qkvo")
        sides = []
        for side in (one, found):
            parts = [side[q].reshape(groups, -1), side[k].reshape(groups, -1), side[v].reshape(groups, -1)]
            parts.append(side[o].T.reshape(groups, -1))
            sides.append(torch.cat(parts, dim=1))
        order = match(*sides)
        narrow = (order[:, None] * a + np.arange(a)).ravel()
        heads = []
        for place, group in enumerate(order):
            rows = [side[q].reshape(groups, share, -1)[i] for side, i in ((one, place), (found, group))]
            heads += [int(group) * share + int(h) for h in match(*rows)]
        wide = (np.array(heads)[:, None] * a + np.arange(a)).ravel()
        found |= {q: found[q][wide], o: found[o][:, wide], k: found[k][narrow], v: found[v][narrow]}
        gate, up, down = (f"{base}mlp.{part}_proj.weight" for part in ("gate", "up", "down"))
        units = match(*(torch.cat([side[gate], side[up], side[down].T], dim=1) for side in (one, found)))
        found |= {gate: found[gate][units], up: found[up][units], down: found[down][:, units]}
    return found


def measure(one: Weights, other: Weights, kinds: Sequence[str]) -> dict[str, float]:
    """Losses of both and of their averages, on the kinds of text that they were trained on."""
    ours = merge([to_model(one, CONFIG), to_model(other, CONFIG)]).moved()
    found = {"first": one, "second": other, "plain average": average(one, other)}
    found |= {"permutations": average(one, permuted(one, other)), "ours": to_weights(ours)}
    return {name: loss(weights, kinds) for name, weights in found.items()}


def main() -> dict[str, dict[str, float]]:
    torch.set_num_threads(1)
    base = train_base("small", "words", STEPS, seed=0)
    tuned = [
        train(base, CONFIG, write_text(kind, 100_000, 40 + k), STEPS // 3, seed=50 + k, rate=1e-3)
        for k, kind in enumerate(("words", "sums"))
    ]
    hidden = to_weights(teleport(to_model(tuned[1], CONFIG), seed=1, parts=EVERYTHING).moved())
    stranger = train_base("small", "words", STEPS, seed=1)
    found = {
        "fine-tuned siblings": measure(tuned[0], tuned[1], ("words", "sums")),
        "one of them disguised": measure(tuned[0], hidden, ("words", "sums")),
        "independent models": measure(base, stranger, ("words",)),
    }
    columns = list(next(iter(found.values())))
    print(f"{'loss':24s}" + "".join(f"{column:>16s}" for column in columns))
    for name, row in found.items():
        print(f"{name:24s}" + "".join(f"{row[column]:16.3f}" for column in columns))
    return found


if __name__ == "__main__":
    main()
