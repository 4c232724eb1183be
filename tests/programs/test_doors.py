"""The networks of :mod:`tests.programs.modules` through the doors of PyTorch and JAX: the same source, other arrays."""

import math
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from attngeom.rank.analysis import analyze
from tests.effort import choose
from tests.programs import modules

NAMES = [module.name for module in modules.MODULES]
QUICK = NAMES[::4]


def rewritten(**texts):
    """The module once more, with other texts in its source."""
    source = Path(modules.__file__).read_text(encoding="utf-8")
    for before, after in texts.values():
        assert before in source
        source = source.replace(before, after)
    other = ModuleType(modules.__name__)
    return source, other


@pytest.fixture(scope="module")
def in_jax():
    jax = pytest.importorskip("jax", reason="the door of JAX is tested where it is installed: make doors-test")
    jax.config.update("jax_enable_x64", True)
    source, other = rewritten(
        arrays=("import numpy as np\n", "import jax.numpy as np\n"),
        erf=("from scipy.special", "from jax.scipy.special"),
    )
    exec(compile(source, "modules in JAX", "exec"), other.__dict__)
    shapes = {
        module.name: {
            name: jax.ShapeDtypeStruct((n,) if isinstance(n, int) else tuple(n), "float64")
            for name, n in module.weights.items()
        }
        for module in other.MODULES
    }
    return {module.name: (module.network, shapes[module.name]) for module in other.MODULES}


@pytest.fixture(scope="module")
def in_torch():
    torch = pytest.importorskip("torch", reason="the door of PyTorch is tested where it is installed: make doors-test")
    arrays = SimpleNamespace(
        exp=torch.exp,
        tanh=torch.tanh,
        square=torch.square,
        where=torch.where,
        zeros=lambda shape: torch.zeros(shape, dtype=torch.float64),
        array=lambda rows: torch.tensor(rows, dtype=torch.float64),
        arange=np.arange,
        outer=torch.outer,
        stack=torch.stack,
        einsum=torch.einsum,
        split=lambda x, parts, axis: torch.chunk(x, parts, axis),
        maximum=lambda x, least: torch.clamp(x, min=least),
        sqrt=lambda x: torch.sqrt(x) if isinstance(x, torch.Tensor) else math.sqrt(x),
    )
    source, other = rewritten(
        arrays=("import numpy as np\n", ""),
        erf=("from scipy.special import erf\n", "from torch import erf\n"),
        axes=("keepdims=True", "keepdim=True"),
        turned=(".transpose(", ".permute("),
        shifted=("    e = np.exp(s - s.max(axis=axis, keepdim=True))\n", "    return s.softmax(axis)\n"),
    )
    other.__dict__["np"] = arrays
    exec(compile(source, "modules in PyTorch", "exec"), other.__dict__)

    class Network(torch.nn.Module):
        def __init__(self, module):
            super().__init__()
            tensors = {name: torch.randn(n, dtype=torch.float64) for name, n in module.weights.items()}
            self.tensors = torch.nn.ParameterDict({name: torch.nn.Parameter(x) for name, x in tensors.items()})
            self.network = module.network

        def forward(self, *inputs):
            return self.network(dict(self.tensors.items()), *inputs)

    return {module.name: (Network(module), None) for module in other.MODULES}


@pytest.mark.parametrize("door", ["in_jax", "in_torch"])
@pytest.mark.parametrize("name", choose(QUICK, NAMES))
def test_every_door_gives_the_dimension_of_the_same_network(door, name, request):
    network, weights = request.getfixturevalue(door)[name]
    module = modules.MODULES[NAMES.index(name)]
    inputs = [(x,) if isinstance(x, int) else x for x in module.inputs]
    answer = analyze(network, *inputs, weights=weights)
    assert answer.parameters == module.parameters
    assert (answer.dimension, answer.standing) == (module.dimension, "proven"), answer.reason
