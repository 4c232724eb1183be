"""Modules of PyTorch as people write them: dimensions against ranks of the Jacobian in float64, at several weights."""

import numpy as np
import pytest

import attngeom

torch = pytest.importorskip("torch", reason="the PyTorch door is tested where PyTorch is installed: make doors-test")
nn, F = torch.nn, torch.nn.functional


class Written(nn.Module):
    """A function of named weights as a module."""

    def __init__(self, function, /, **shapes):
        super().__init__()
        self.function = function
        for name, shape in shapes.items():
            setattr(self, name, nn.Parameter(torch.randn(shape)))

    def forward(self, *inputs):
        return self.function(self, *inputs)


def chain(*layers):
    return nn.Sequential(*layers)


def hats(w, x):
    """Splines of degree 1 by comparisons, as KANs have them."""
    knots, x = torch.linspace(-1, 1, 4, dtype=x.dtype), x[..., None]
    steps = ((x >= knots[:-1]) & (x < knots[1:])).to(x.dtype)
    rising = (x - knots[:-2]) / (knots[1:-1] - knots[:-2]) * steps[..., :-1]
    falling = (knots[2:] - x) / (knots[2:] - knots[1:-1]) * steps[..., 1:]
    return torch.einsum("bik,iko->bo", rising + falling, w.c) + F.silu(x[..., 0]) @ w.w


def cayley(w, x):
    eye, skew = torch.eye(3, dtype=x.dtype), w.a - w.a.T
    return x @ torch.linalg.solve(eye + skew, eye - skew)


def retention(w, x):
    ages = (torch.arange(3)[:, None] - torch.arange(3)[None, :]).clamp(min=0)
    return ((x @ w.q) @ (x @ w.k).T * torch.tril(torch.sigmoid(w.g) ** ages)) @ (x @ w.v)


def cosines(w, x):
    return torch.softmax(F.normalize(x @ w.q, dim=-1) @ F.normalize(x @ w.k, dim=-1).T * w.t, -1) @ (x @ w.v)


def agents(w, x):
    return torch.softmax((x @ w.q) @ w.a.T, -1) @ (torch.softmax(w.a @ (x @ w.k).T, -1) @ (x @ w.v))


PLACES = torch.tensor([2, 0, 2])
HEAD = {"q": (3, 2), "k": (3, 2), "v": (3, 2)}
SMALL = {"q": (2, 2), "k": (2, 2), "v": (2, 2)}
MODULES = {
    "splines": (lambda: Written(hats, c=(2, 2, 2), w=(2, 2)), [(1, 2)]),
    "Cayley": (lambda: Written(cayley, a=(3, 3)), [(1, 3)]),
    "retention": (lambda: Written(retention, **HEAD, g=()), [(3, 3)]),
    "cosine attention": (lambda: Written(cosines, **SMALL, t=()), [(2, 2)]),
    "agents": (lambda: Written(agents, **HEAD, a=(2, 2)), [(3, 3)]),
    "normed": (lambda: Written(lambda w, x: F.normalize(x @ w.a, dim=-1) @ w.b, a=(3, 3), b=(3, 2)), [(1, 3)]),
    "cosines": (lambda: Written(lambda w, x: F.cosine_similarity(x @ w.a, w.c), a=(3, 2), c=(4, 2)), [(1, 3)]),
    "inverse": (lambda: Written(lambda w, x: x @ torch.linalg.inv(w.a), a=(3, 3)), [(1, 3)]),
    "determinant": (lambda: Written(lambda w, x: torch.linalg.det(w.a + x), a=(3, 3)), [(3, 3)]),
    "triangular": (
        lambda: Written(lambda w, x: torch.linalg.solve_triangular(w.a, x, upper=True, left=False), a=(3, 3)), [(2, 3)]
    ),
    "cumulative product": (
        lambda: Written(lambda w, x: torch.cumprod(torch.sigmoid(x @ w.a), 0) @ w.b, a=(2, 2), b=(2, 2)), [(3, 2)]
    ),
    "scatter": (
        lambda: Written(lambda w, x: x.new_zeros(3).scatter_add(0, PLACES, torch.tanh(w.a @ x)), a=(3, 2)), [(2,)]
    ),
    "distances": (
        lambda: Written(lambda w, x: torch.exp(-(torch.cdist(x, w.c) ** 2)) @ w.o, c=(3, 2), o=(3, 2)), [(1, 2)]
    ),
    "logsumexp": (lambda: Written(lambda w, x: torch.logsumexp(x @ w.a + w.b, -1), a=(2, 3), b=(3,)), [(1, 2)]),
    "norm behind biases": (lambda: chain(nn.Linear(2, 4), nn.LayerNorm(4), nn.Linear(4, 3)), [(1, 2)]),
    "RMS norm behind biases": (lambda: chain(nn.Linear(3, 4), nn.RMSNorm(4), nn.Linear(4, 2)), [(1, 3)]),
    "interpolation": (
        lambda: chain(nn.Conv2d(1, 2, 1), nn.Upsample(scale_factor=2, mode="bilinear"), nn.Tanh(), nn.Conv2d(2, 1, 1)),
        [(1, 1, 2, 2)],
    ),
    "pools": (
        lambda: chain(nn.Conv2d(1, 2, 2), nn.Tanh(), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(2, 2)),
        [(1, 1, 3, 3)],
    ),
    "transposed convolution": (
        lambda: chain(nn.ConvTranspose1d(2, 2, 2, stride=2), nn.Tanh(), nn.Conv1d(2, 1, 1)), [(1, 2, 3)]
    ),
    "random slopes": (lambda: chain(nn.Linear(2, 3), nn.RReLU(), nn.Linear(3, 2)), [(1, 2)]),
    "bags": (lambda: chain(nn.EmbeddingBag(5, 3, mode="sum"), nn.Linear(3, 2)), [torch.tensor([[0, 1], [2, 3]])]),
}  # fmt: skip
"""By name: what makes the module, and its inputs."""


def rank(module, inputs):
    """The largest numerical rank at three random weights; singular values below 1e-11 of the largest are 0."""
    module, best = module.double().eval(), 0
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)

        def draw(shape, generator=generator):
            return torch.randn(shape, generator=generator, dtype=torch.float64)

        weights, rows = {name: draw(x.shape) for name, x in module.named_parameters()}, []
        count = sum(x.numel() for x in weights.values())
        while sum(map(len, rows)) < 2 * count + 8:
            given = [draw(x) if isinstance(x, tuple) else x for x in inputs]
            whole = torch.func.jacrev(
                lambda w, given=given: torch.func.functional_call(module, w, tuple(given)).ravel()
            )(weights)
            rows.append(np.concatenate([x.reshape(len(x), -1).numpy() for x in whole.values()], axis=1))
        values = np.linalg.svd(np.concatenate(rows), compute_uv=False)
        best = max(best, int((values > 1e-11 * values[0]).sum()))
    return best


@pytest.mark.parametrize("name", MODULES)
def test_dimensions_are_ranks_of_floats(name):
    make, inputs = MODULES[name]
    torch.manual_seed(0)
    answer = attngeom.analyze(make(), *inputs)
    assert (answer.dimension, answer.standing) == (rank(make(), inputs), "proven"), answer.reason
