"""Two networks in NumPy: a head of softmax attention, and a multilayer perceptron with a gate.

attngeom net network.py:attention
attngeom net network.py:mlp --weights layers --input 3
"""

import numpy as np

weights = {"Q": (2, 3), "K": (2, 3), "V": (2, 3)}
inputs = [(3, 2)]
layers = {"gate": (3, 3), "up": (3, 3), "down": (3, 3)}


def attention(w, x):
    scores = x.T @ w["K"].T @ (w["Q"] @ x)
    e = np.exp(scores - scores.max(axis=0, keepdims=True))
    return w["V"] @ x @ (e / e.sum(axis=0, keepdims=True))


def mlp(w, x):
    gate = w["gate"] @ x
    return w["down"] @ (gate / (1 + np.exp(-gate)) * (w["up"] @ x))


def branch(w, x):
    return w["V"] @ x if x.sum() > 0 else w["Q"] @ x
