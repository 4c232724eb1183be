"""The PyTorch door: modules as people write them, layers of transformers as they are, and what is refused."""

import pytest

import attngeom
from attngeom.errors import InputError, SizeError
from tests.docs.blocks import ROOT
from tests.docs.runner import check_page
from tests.effort import thorough

torch = pytest.importorskip("torch", reason="the PyTorch door is tested where PyTorch is installed: make doors-test")
nn = torch.nn


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = (nn.Linear(3, 3, bias=False) for _ in range(3))

    def forward(self, x):
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(3, 2, bias=False) for _ in range(3))

    def forward(self, x):
        return torch.softmax(self.q(x) @ self.k(x).T, -1) @ self.v(x)


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x):
        return self.heads(x, x, x, need_weights=False)[0]


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.read = nn.GRU(2, 2, batch_first=True), nn.Linear(2, 2)

    def forward(self, x):
        return self.read(self.cell(x)[0][:, -1])


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.code = nn.Linear(4, 2, bias=False)
        self.back = nn.Linear(2, 4, bias=False)
        self.back.weight = nn.Parameter(torch.zeros(4, 2))

    def forward(self, x):
        return torch.tanh(self.code(x)) @ self.code.weight


class Shared(nn.Module):
    """One weight in two layers."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(3, 3), nn.Linear(3, 3, bias=False)
        self.two.weight = self.one.weight

    def forward(self, x):
        return self.two(torch.tanh(self.one(x)))


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.read = nn.Embedding(5, 3), nn.Linear(3, 2, bias=False)

    def forward(self, ids):
        return self.read(self.table(ids))


def chain(*parts):
    return nn.Sequential(*parts)


MODULES = {
    "SwiGLU": (Gated, [(1, 3)], 27, 24),
    "softmax attention": (Attention, [(3, 3)], 18, 14),
    "MultiheadAttention": (Heads, [(1, 3, 4)], 80, 56),
    "GELU": (lambda: chain(nn.Linear(2, 3), nn.GELU(), nn.Linear(3, 2)), [(1, 2)], 17, 17),
    "ReLU": (lambda: chain(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), [(1, 3)], 26, 22),
    "LayerNorm": (lambda: chain(nn.LayerNorm(4), nn.Linear(4, 3), nn.GELU(), nn.Linear(3, 2)), [(1, 4)], 31, 20),
    "RMSNorm": (lambda: chain(nn.RMSNorm(3), nn.Linear(3, 2, bias=False)), [(1, 3)], 9, 6),
    "BatchNorm": (lambda: chain(nn.BatchNorm1d(3), nn.Linear(3, 2, bias=False)), [(1, 3)], 12, 8),
    "convolutions": (lambda: chain(nn.Conv1d(2, 3, 2), nn.Tanh(), nn.Conv1d(3, 2, 2)), [(1, 2, 4)], 29, 29),
    "GRU": (Recurrent, [(1, 3, 2)], 42, 38),
    "tied and unused weights": (Tied, [(1, 4)], 16, 8),
    "one weight in two layers": (Shared, [(1, 3)], 12, 12),
    "embedding": (Table, [torch.arange(5)], 21, 10),
}


class Film(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.g, self.b, self.o = nn.Linear(2, 3), nn.Linear(2, 3), nn.Linear(2, 3), nn.Linear(3, 1)

    def forward(self, x, z):
        return self.o(torch.tanh(self.g(z) * self.a(x) + self.b(z)))


class Largest(nn.Module):
    def __init__(self):
        super().__init__()
        self.route, self.out = nn.Linear(3, 3), nn.Linear(3, 2)

    def forward(self, x):
        values, _ = torch.topk(self.route(x), 2)
        return torch.sigmoid(values[:, :1] - values[:, 1:]) * self.out(x)


def pooled():
    return chain(nn.Conv2d(1, 2, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 2))


MODULES |= {
    "LSTM cell": (lambda: nn.LSTMCell(2, 2), [(1, 2)], 48, 18),
    "max pool of ReLU": (pooled, [(1, 1, 5, 5)], 28, 26),
    "average pool": (lambda: chain(nn.Conv1d(1, 2, 2), nn.Tanh(), nn.AvgPool1d(2, 1)), [(1, 1, 4)], 6, 6),
    "transposed convolution": (
        lambda: chain(nn.ConvTranspose1d(2, 2, 2, stride=2), nn.Tanh(), nn.Conv1d(2, 1, 2)),
        [(1, 2, 3)],
        15,
        15,
    ),
    "batch norm behind a bias": (
        lambda: chain(nn.Conv2d(2, 2, 2), nn.BatchNorm2d(2), nn.ReLU(), nn.Conv2d(2, 1, 1)),
        [(1, 2, 3, 3)],
        25,
        19,
    ),
    "instance norm": (
        lambda: chain(nn.Conv1d(2, 2, 1), nn.InstanceNorm1d(2, affine=True), nn.Tanh(), nn.Conv1d(2, 1, 2)),
        [(1, 2, 4)],
        15,
        13,
    ),
    "weights with a norm": (
        lambda: chain(nn.utils.parametrizations.weight_norm(nn.Linear(3, 3)), nn.Tanh(), nn.Linear(3, 2)),
        [(1, 3)],
        23,
        20,
    ),
    "FiLM": (Film, [(1, 2), (1, 2)], 31, 25),
    "bilinear": (lambda: nn.Bilinear(2, 3, 2), [(1, 2), (1, 3)], 14, 14),
    "mish": (lambda: chain(nn.Linear(2, 2), nn.Mish(), nn.Linear(2, 2)), [(1, 2)], 12, 12),
    "learned slopes": (lambda: chain(nn.Linear(3, 3), nn.PReLU(3), nn.Linear(3, 2)), [(1, 3)], 23, 20),
}
"""The dimensions are ranks of the Jacobian in float64, by singular values at several weights."""


class Formula(nn.Module):
    """A function of a matrix and an input."""

    def __init__(self, function):
        super().__init__()
        self.a, self._function = nn.Parameter(torch.randn(2, 2)), function

    def forward(self, x):
        return self._function(self.a, x)


def at_places(kind):
    def function(a, x):
        return torch.ones(2, dtype=x.dtype).scatter_reduce(0, torch.tensor([0, 0]), a @ x, kind, include_self=False)

    return function


def positive(a):
    return a @ a.T + torch.eye(2, dtype=a.dtype)


FORMULAS = {
    "linear system": (torch.linalg.solve, 4),
    "Cholesky factor": (lambda a, x: torch.linalg.cholesky(positive(a)) @ x, 3),
    "solved by a factor": (
        lambda a, x: torch.cholesky_solve(x[:, None], torch.linalg.cholesky(positive(a), upper=True), upper=True), 3
    ),
    "logarithm of a determinant": (lambda a, x: torch.linalg.slogdet(positive(a))[1] * x, 1),
    "largest so far": (lambda a, x: torch.cummax(a @ x, 0).values, 4),
    "least so far": (lambda a, x: torch.cummin(a @ x, 0)[0], 4),
    "sums of exponentials so far": (lambda a, x: torch.logcumsumexp(a @ x, 0), 4),
    "sum at a place": (at_places("sum"), 2),
    "mean at a place": (at_places("mean"), 2),
    "largest at a place": (at_places("amax"), 4),
    # The product of two linear forms is known up to their sizes.
    "product at a place": (at_places("prod"), 3),
    "middle entry": (lambda a, x: torch.median(torch.stack([*(a @ x), x[0]])), 4),
    "second smallest": (lambda a, x: torch.kthvalue(a @ x, 2)[0], 4),
    "numbers for what is none": (lambda a, x: torch.nan_to_num(a @ x), 4),
    "gradient inside": (lambda a, x: torch.func.grad(lambda y: torch.tanh(a @ y).sum())(x), 4),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_have_dimensions_by_hand(name):
    function, dimension = FORMULAS[name]
    found = attngeom.analyze(Formula(function), (2,))
    assert (found.parameters, found.dimension, found.standing) == (4, dimension, "proven")


@pytest.mark.parametrize("name", MODULES)
def test_dimensions_of_modules_are_proven(name):
    make, inputs, parameters, dimension = MODULES[name]
    torch.manual_seed(0)
    found = attngeom.analyze(make(), *inputs)
    assert (found.parameters, found.dimension, found.standing) == (parameters, dimension, "proven")


def decoder(family, layer, rotary, config, **kind):
    """A decoder layer with its positions and mask, at the last of three tokens."""
    transformers = pytest.importorskip("transformers", reason="layers are taken from transformers: make doors-test")
    module = __import__(f"transformers.models.{family}.modeling_{family}", fromlist=["x"])
    settings = getattr(transformers, config)(
        hidden_size=8, intermediate_size=6, num_attention_heads=2, num_key_value_heads=1, head_dim=4, pad_token_id=0
    )
    settings._attn_implementation = "eager"

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.rotary = getattr(module, layer)(settings, 0), getattr(module, rotary)(settings)

        def forward(self, x):
            mask = torch.full((3, 3), float("-inf"), dtype=x.dtype).triu(1)[None, None]
            places = self.rotary(x, torch.arange(3)[None], **kind)
            found = self.layer(x, position_embeddings=places, attention_mask=mask)
            return (found[0] if isinstance(found, tuple) else found)[:, -1]

    return Layer()


def test_the_largest_entries_are_those_of_a_region():
    answer = attngeom.analyze(Largest(), (1, 3))
    assert answer.region is not None and answer.lower_bound <= answer.upper_bound <= answer.parameters == 20


LAYERS = [
    ("llama", "LlamaDecoderLayer", "LlamaRotaryEmbedding", "LlamaConfig", 352, 310),
    *thorough(
        ("phi3", "Phi3DecoderLayer", "Phi3RotaryEmbedding", "Phi3Config", 352, 310),
        ("qwen2", "Qwen2DecoderLayer", "Qwen2RotaryEmbedding", "Qwen2Config", 368, 326),
    ),
]


@pytest.mark.parametrize(("family", "layer", "rotary", "config", "parameters", "dimension"), LAYERS)
def test_layers_of_transformers_as_they_are(family, layer, rotary, config, parameters, dimension):
    found = attngeom.analyze(decoder(family, layer, rotary, config), (1, 3, 8))
    assert (found.parameters, found.dimension, found.standing) == (parameters, dimension, "proven")


def latent_attention():
    """Latent attention of DeepSeek-V3 with its positions and mask, at the last of three tokens."""
    transformers = pytest.importorskip("transformers", reason="layers are taken from transformers: make doors-test")
    family = pytest.importorskip("transformers.models.deepseek_v3.modeling_deepseek_v3")
    sizes = {"q_lora_rank": 4, "kv_lora_rank": 3, "qk_nope_head_dim": 2, "qk_rope_head_dim": 2, "v_head_dim": 2}
    settings = transformers.DeepseekV3Config(
        hidden_size=8, num_attention_heads=2, num_key_value_heads=2, num_hidden_layers=1, **sizes
    )
    settings._attn_implementation = "eager"

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.rotary = (
                family.DeepseekV3Attention(settings, 0),
                family.DeepseekV3RotaryEmbedding(settings),
            )

        def forward(self, x):
            mask = torch.full((3, 3), float("-inf"), dtype=x.dtype).triu(1)[None, None]
            places = self.rotary(x, torch.arange(3)[None])
            return self.layer(x, position_embeddings=places, attention_mask=mask)[0][:, -1]

    return Layer(), (1, 3, 8)


def encoder(family, layer, config):
    """A layer of BERT or ViT on two tokens."""
    transformers = pytest.importorskip("transformers", reason="layers are taken from transformers: make doors-test")
    module = __import__(f"transformers.models.{family}.modeling_{family}", fromlist=["x"])
    settings = getattr(transformers, config)(hidden_size=4, num_attention_heads=2, intermediate_size=4)
    settings._attn_implementation = "eager"

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = getattr(module, layer)(settings)

        def forward(self, x):
            found = self.layer(x)
            return found[0] if isinstance(found, tuple) else found

    return Layer(), (1, 2, 4)


def doubly_normed():
    """Gemma 3: norms before and behind both parts, and of queries and keys, so that twelve roots must exist at once."""
    names = ("gemma3", "Gemma3DecoderLayer", "Gemma3RotaryEmbedding", "Gemma3TextConfig")
    return decoder(*names, layer_type="sliding_attention"), (1, 3, 8)


class Wrapped(nn.Module):
    """A layer of a library as it is, and what is asked of it: by default the last token of its first result."""

    def __init__(self, layer, forward=None):
        super().__init__()
        self.layer, self._call = layer, forward

    def forward(self, x):
        found = self.layer(x) if self._call is None else self._call(self.layer, x)
        found = found[0] if isinstance(found, tuple) else found
        return found[:, -1] if self._call is None else found


def library(family, layer, config, **settings):
    transformers = pytest.importorskip("transformers", reason="layers are taken from transformers: make doors-test")
    module = pytest.importorskip(f"transformers.models.{family}.modeling_{family}")
    given = getattr(transformers, config)(num_hidden_layers=1, **settings)
    return getattr(module, layer), given


def state_space(tokens=3):
    layer, given = library(
        "mamba", "MambaMixer", "MambaConfig", hidden_size=3, state_size=2, conv_kernel=2, time_step_rank=1, expand=1
    )
    return Wrapped(layer(given, 0)), (1, tokens, 3)


def state_space_2():
    sizes = {"hidden_size": 4, "state_size": 2, "conv_kernel": 2, "num_heads": 2, "head_dim": 2, "n_groups": 1}
    layer, given = library("mamba2", "Mamba2Mixer", "Mamba2Config", expand=1, chunk_size=4, **sizes)
    return Wrapped(layer(given, 0)), (1, 3, 4)


def delta_net():
    """Gated DeltaNet of Qwen3-Next, which pads two tokens to a chunk of 64."""
    heads = {"linear_num_key_heads": 1, "linear_num_value_heads": 2}
    sizes = {"linear_key_head_dim": 2, "linear_value_head_dim": 2, "linear_conv_kernel_dim": 2, "hidden_size": 4}
    layer, given = library("qwen3_next", "Qwen3NextGatedDeltaNet", "Qwen3NextConfig", **heads, **sizes)
    return Wrapped(layer(given, 0)), (1, 2, 4)


def experts():
    """The experts of Mixtral with a fixed choice: the loop over them takes numbers out of tensors."""
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "num_local_experts": 3, "num_experts_per_tok": 2}
    layer, given = library("mixtral", "MixtralExperts", "MixtralConfig", hidden_size=4, intermediate_size=3, **heads)
    given._experts_implementation = "eager"
    choice, shares = torch.tensor([[0, 2]]), torch.tensor([[0.5, 0.25]], dtype=torch.float64)
    return Wrapped(layer(given), lambda own, x: own(x, choice, shares)), (1, 4)


def text_to_text(kind):
    sizes = {"d_model": 4, "d_kv": 2, "num_heads": 2, "d_ff": 4, "num_layers": 1, "relative_attention_num_buckets": 4}
    transformers = pytest.importorskip("transformers", reason="layers are taken from transformers: make doors-test")
    module = pytest.importorskip("transformers.models.t5.modeling_t5")
    given = transformers.T5Config(feed_forward_proj=kind, **sizes)
    given._attn_implementation = "eager"
    return Wrapped(module.T5Block(given, has_relative_attention_bias=True, layer_idx=0)), (1, 2, 4)


OTHERS = [
    (latent_attention, (), 167, 133),
    (state_space, (), 66, 59),
    (state_space_2, (), 106, 94),
    (experts, (), 108, 66),
    *thorough(
        (encoder, ("vit", "ViTLayer", "ViTConfig"), 136, 79),
        (encoder, ("bert", "BertLayer", "BertConfig"), 136, 94),
        (delta_net, (), 102, 92),
        (doubly_normed, (), 376, 336),
        (text_to_text, ("relu",), 112, 78),
        (text_to_text, ("gated-gelu",), 128, 94),
    ),
]


@pytest.mark.parametrize(("make", "arguments", "parameters", "dimension"), OTHERS)
def test_latent_attention_and_encoders_as_they_are(make, arguments, parameters, dimension):
    module, shape = make(*arguments)
    answer = attngeom.analyze(module, shape)
    assert (answer.parameters, answer.dimension, answer.standing) == (parameters, dimension, "proven")


class Branch(Gated):
    def forward(self, x):
        return self.up(x) if x.sum() > 0 else self.down(x)


class Counted(Gated):
    def forward(self, x):
        for _ in range(int(self.gate.weight.abs().sum())):
            x = self.up(x)
        return x


class Planned(Gated):
    """A loop over numbers that no weight and no input reaches, and writes in place."""

    def __init__(self):
        super().__init__()
        self.register_buffer("plan", torch.tensor([0, 2, 2]))

    def forward(self, x):
        total = torch.zeros_like(x)
        for number in self.plan.unique():
            if number > 0:
                total[:, : int(number)] += self.up(x)[:, : int(number)]
            else:
                total.index_add_(1, self.plan, self.gate(x))
        return total


class Noise(Gated):
    def forward(self, x):
        return self.up(x) + torch.randn(3)


class Sorted(Gated):
    def forward(self, x):
        return torch.linalg.svd(self.up.weight)[1] * x


class Blind(Gated):
    def forward(self, x):
        return self.up.weight.sum() + 0 * 1.0


class Chosen(Largest):
    def forward(self, x):
        return self.out(x)[:, torch.topk(self.route(x), 2).indices[0]]


class Missing(Gated):
    def forward(self, x):
        return self.up(x) * float("nan")


REFUSED = [
    (Missing(), [(1, 3)], "NaN"),
    (nn.Linear(40_000, 40_000, device="meta"), [(1, 40_000)], "shrink the widths"),
    (Chosen(), [(1, 3)], "index made from data met in aten"),
    (Branch(), [(1, 3)], r"test_torch.py, line .*branches on data"),
    (Counted(), [(1, 3)], r"test_torch.py, line .*branches on data"),
    (Noise(), [(1, 3)], "random"),
    (Sorted(), [(1, 3)], "aten."),
    (Blind(), [(1, 3)], "ignores its input"),
    (nn.ReLU(), [(1, 3)], "without weights"),
    (Gated(), [(1, 4)], "export"),
]


@pytest.mark.parametrize(("module", "inputs", "words"), REFUSED, ids=lambda x: type(x).__name__)
def test_what_cannot_be_traced_is_refused_in_one_line(module, inputs, words):
    with pytest.raises((InputError, SizeError), match=words) as refusal:
        attngeom.analyze(module, *inputs)
    assert "\n" not in str(refusal.value)


def test_numbers_from_constants_are_no_branches_on_data():
    answer = attngeom.analyze(Planned(), (1, 3))
    # Outputs 0 and 1 see up, and gate at places 0 and 1 + 2: 3 + 0 + 3 functionals of 3 inputs, in 3 outputs.
    assert (answer.parameters, answer.dimension, answer.standing) == (27, 9, "proven")


def test_the_tutorial_shows_what_runs():
    wrong = check_page((ROOT / "docs" / "tutorials" / "pytorch.md").read_text(encoding="utf-8"))
    assert not wrong, "\n\n".join(wrong)


def test_the_module_stays_as_it_was():
    module = chain(nn.Linear(2, 2), nn.Dropout(0.5)).train()
    attngeom.analyze(module, (1, 2))
    assert module.training and module[0].weight.dtype == torch.float32
