"""Dimensions of the kinds beyond the papers against float ranks of layers written from their definitions.

The layers below share no code with the package: a state S_i = S_{i−1} T_i + b_i v_i k_iᵀ, o_i = S_i q_i, or scores.
Derivatives are complex steps, ranks those of singular values; sizes go down to 1.
"""

from random import Random

import numpy as np
import pytest

from attngeom.dimensions import dimension
from attngeom.errors import InputError
from attngeom.network import Architecture

RECURRENT = ["retnet", "scalar_gate", "ssd", "gla", "deltanet", "gated_deltanet", "kda"]
CASES = [
    *((kind, {}) for kind in RECURRENT),
    ("retnet", {"decay": "learned"}),
    ("scalar_gate", {"gate": "biased"}),
    ("scalar_gate", {"gate": "mamba"}),
    ("gated_deltanet", {"gate": "biased"}),
    ("gated_deltanet", {"gate": "mamba"}),
    ("deltanet", {"normalised_keys": True}),
    ("gated_deltanet", {"normalised_keys": True}),
    ("kda", {"normalised_keys": True}),
    ("linear", {}),
    ("linear", {"feature": "square", "unnormalised": True}),
    ("linear", {"feature": "silu", "unnormalised": True}),
    ("differential", {}),
    ("lightning", {"bias": True}),
    ("softmax", {"bias": True}),
    ("lightning", {"alibi": "learned"}),
    ("softmax", {"alibi": "learned"}),
    ("lightning", {"rope": True}),
    ("softmax", {"rope": True}),
    ("lightning", {"window": 1}),
    ("softmax", {"window": 2}),
    ("lightning", {"memory": 1}),
    ("softmax", {"memory": 2}),
]
ANGLES = (1.0, 0.3)


def sigma(z):
    return 1 / (1 + np.exp(-z))


def tokens(W, X):
    return np.einsum("ad,ndt->nat", W, X)


def gate(w, X, form):
    line = tokens(w["u"], X)[:, 0]
    if form == "sigmoid":
        return sigma(line)
    line = line + w["c"][0, 0]
    return sigma(line) if form == "biased" else np.exp(-np.exp(w["eta"][0, 0]) * np.log(1 + np.exp(line)))


def unit(y):
    return y / np.sqrt((y * y).sum(axis=1, keepdims=True))


def recurrence(kind, options, w, X, place):
    q, k, v = (tokens(w[x], X) for x in "QKV")
    if options.get("normalised_keys"):
        q, k = unit(q), unit(k)
    N, a, t = k.shape
    one = np.ones((N, t))
    decay, beta, write = np.ones((N, a, t)), 0 * one, one
    if kind == "retnet":
        decay = decay * (w["gamma"][0, 0] if "gamma" in w else 1 - 2.0 ** -(5 + place))
    if kind in ("scalar_gate", "gated_deltanet"):
        decay = decay * gate(w, X, options.get("gate", "sigmoid"))[:, None]
    if kind == "ssd":
        write = np.log(1 + np.exp(tokens(w["u"], X)[:, 0] + w["c"][0, 0]))
        decay = decay * np.exp(-np.exp(w["eta"][0, 0]) * write)[:, None]
    if kind in ("gla", "kda"):
        decay = sigma(tokens(w["G"], X))
    if kind in ("deltanet", "gated_deltanet", "kda"):
        beta = write = sigma(tokens(w["w"], X)[:, 0])
    S, outputs = np.zeros((N, v.shape[1], a), dtype=X.dtype), []
    for i in range(t):
        ki = k[:, :, i]
        # S T with T = diag(decay) (1 − β k kᵀ).
        S = S * decay[:, None, :, i]
        S = S - beta[:, i, None, None] * np.einsum("nca,na,nb->ncb", S, ki, ki)
        S = S + write[:, i, None, None] * np.einsum("nc,na->nca", v[:, :, i], ki)
        outputs.append(np.einsum("nca,na->nc", S, q[:, :, i]))
    return np.stack(outputs, axis=2)


def visible(options, causal, t):
    j, i = np.indices((t, t))
    seen = j <= i if causal else np.ones((t, t), dtype=bool)
    if options.get("window"):
        seen = seen & (abs(i - j) < options["window"])
    if options.get("memory"):
        seen = (j < options["memory"]) & (i >= options["memory"])
    return seen


def scored(kind, options, w, X, causal):
    def read(x):
        return tokens(w[x], X) + (w[f"b{x}"][None] if options.get("bias") else 0)

    def rotated(y):
        if not options.get("rope"):
            return y
        t, out = np.arange(y.shape[2]), y.copy()
        for p in range(y.shape[1] // 2):
            c, s = np.cos(ANGLES[p] * t), np.sin(ANGLES[p] * t)
            out[:, 2 * p], out[:, 2 * p + 1] = (
                c * y[:, 2 * p] - s * y[:, 2 * p + 1],
                s * y[:, 2 * p] + c * y[:, 2 * p + 1],
            )
        return out

    def shares(mark, weights):
        q, k = rotated(read(f"Q{mark}")), rotated(read(f"K{mark}"))
        if kind == "linear" and options.get("feature") == "square":
            q, k = q * q, k * k
        if kind == "linear" and options.get("feature") == "silu":
            q, k = q * sigma(q), k * sigma(k)
        P = np.einsum("naj,nai->nji", k, q)
        if options.get("alibi"):
            j, i = np.indices(P.shape[1:])
            P = P - w["m"][0, 0] * abs(i - j)
        seen = visible(options, causal, X.shape[2])
        P = np.where(seen, np.exp(P) if weights == "exp" else P, 0)
        if weights == "plain":
            return P
        return P / np.where(seen.any(axis=0), P.sum(axis=1, keepdims=True), 1)

    v = read("V")
    if kind == "linear" and options.get("feature") == "silu":
        v = v * sigma(v)
    if kind == "differential":
        P = shares("", "exp") - w["lambda"][0, 0] * shares("2", "exp")
    else:
        sums = kind == "linear" and not options.get("unnormalised")
        P = shares("", "exp" if kind == "softmax" else "sum" if sums else "plain")
    return np.einsum("ncj,nji->nci", v, P)


def output(network, vector, X):
    """The network at inputs (N, d, t), with weights in the order of its tensors."""
    kind, options = network.kind, network.options.to_json()
    start, tensors = 0, {}
    for name, shape in network.tensor_shapes():
        tensors[name] = vector[start : start + shape[0] * shape[1]].reshape(shape)
        start += shape[0] * shape[1]
    for index, layer in enumerate(network.layers):
        total = X if network.residual else 0
        for place in range(layer.heads):
            w = {x: tensors[network.tensor_name(index, place, x)] for x in layer.tensor_shapes}
            own = recurrence(kind, options, w, X, place) if kind in RECURRENT else scored(
                kind, options, w, X, network.causal)  # fmt: skip
            total = total + (np.einsum("ov,nvt->not", w["O"], own) if "O" in w else own)
        for x, _ in layer.shared:
            total = total + tensors[network.tensor_name(index, None, x)][None]
        X = total
    return X


def rank_of(network, seed):
    """The rank of the differential at random weights and inputs, and the gap behind it."""
    rng, count = np.random.default_rng(seed), network.num_parameters
    vector = rng.standard_normal(count) * 0.7
    X = rng.standard_normal((2 * count + 8, network.widths[0], network.tokens)) * rng.choice([0.4, 1, 2], (1,))
    steps = [output(network, vector + 1e-30j * unit, X.astype(complex)).imag * 1e30 for unit in np.eye(count)]
    J = np.stack([step.ravel() for step in steps], axis=1)
    sizes = np.linalg.norm(J, axis=1)
    # Near a pole rounding errors are blown up.
    kept = (sizes > 0) & (sizes < 20 * np.median(sizes[sizes > 0]))
    values = np.linalg.svd(J[kept] / sizes[kept, None], compute_uv=False)
    rank = int((values > 1e-9 * values[0]).sum())
    return rank, values[rank - 1] / max(values[rank] if rank < len(values) else 0.0, 1e-16 * values[0])


def draw(kind, options, rng):
    """Random sizes, many of them 1; None where the kind does not exist there."""
    residual, layers = rng.random() < 0.3, rng.choice([1, 1, 2])
    d = rng.choice([1, 2, 3])
    widths = (d,) * (layers + 1) if residual else tuple(rng.choice([1, 2, 3]) for _ in range(layers + 1))
    heads = rng.choice([1, 1, 2])
    sizes = dict(attention=rng.choice([2, 4] if options.get("rope") else [1, 1, 2, 3]), tokens=rng.choice([1, 2, 3, 4]))
    sizes |= dict(heads=heads, value_width=rng.choice([1, 2]) if heads > 1 or rng.random() < 0.3 else None)
    causal = kind not in RECURRENT and ("window" in options or rng.random() < 0.5)
    try:
        return Architecture(widths, kind=kind, residual=residual, causal=causal, **sizes, **options)
    except InputError:
        return None


def check(case, rng, number):
    """Compare so many networks of a case; those whose singular values show no gap are passed over."""
    kind, options = case
    compared = 0
    while compared < number:
        network = draw(kind, options, rng)
        # Roots mod p are rare in larger networks.
        if network is None or network.num_parameters > (14 if options.get("normalised_keys") else 24):
            continue
        ranks = [rank for rank, gap in (rank_of(network, rng.randrange(10**6)) for _ in range(3)) if gap > 1e5]
        if not ranks:
            continue
        answer = dimension(network)
        assert max(ranks) <= answer.upper_bound, (network, ranks, answer.reason)
        if answer.standing in ("theorem", "proven"):
            assert max(ranks) == answer.dimension, (network, ranks, answer.reason)
        compared += 1


@pytest.mark.parametrize("case", CASES, ids=str)
def test_dimensions_are_ranks_of_the_definitions(case):
    check(case, Random(f"oracle {case}"), 1)
