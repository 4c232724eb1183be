"""Tiny Llamas, trained on the spot on text made on the spot; their tensors open as a model. Needs torch.

    python examples/tiny_llamas.py

Two kinds of text, in characters: sentences of a small random language, and sums. Ids 0 to 95 are characters, 96 to 127
are never seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from attngeom.models import Model, open_model

VOCABULARY, USED, LENGTH, BATCH = 128, 96, 64, 16
UNUSED = range(USED, VOCABULARY)
SIZES: dict[str, tuple[int, int, int]] = {"small": (64, 3, 128), "large": (96, 4, 192)}
"""Width, layers, units."""
Weights = dict[str, torch.Tensor]


def config_of(size: str) -> dict[str, Any]:
    """The config.json of a size: heads of width 16 in groups of two."""
    width, layers, units = SIZES[size]
    return {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": VOCABULARY, "hidden_size": width,
        "intermediate_size": units, "num_hidden_layers": layers, "num_attention_heads": width // 16,
        "num_key_value_heads": width // 32, "head_dim": 16, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
        "tie_word_embeddings": False, "max_position_embeddings": LENGTH, "hidden_act": "silu",
    }  # fmt: skip


def write_text(kind: str, count: int, seed: int) -> np.ndarray:
    """So many characters of a kind: "words" (a lexicon of 200 words, each followed by few others) or "sums"."""
    rng = np.random.default_rng([seed, len(kind)])
    pieces: list[str] = []
    total = 0
    if kind == "words":
        language = np.random.default_rng(7)
        letters = [chr(97 + i) for i in range(26)]
        lexicon = ["".join(language.choice(letters, language.integers(2, 8))) for _ in range(200)]
        following = language.integers(0, 200, (200, 6))
        word = 0
        while total < count:
            word = (
                int(following[word, min(int(rng.geometric(0.45)) - 1, 5)])
                if rng.random() < 0.9
                else int(rng.integers(200))
            )
            pieces.append(lexicon[word] + (". " if rng.random() < 0.1 else " "))
            total += len(pieces[-1])
    else:
        while total < count:
            a, b = (int(n) for n in rng.integers(0, 100, 2))
            pieces.append(f"{a}+{b}={a + b};" if rng.random() < 0.5 else f"({a}*{b % 10})={a * (b % 10)};")
            total += len(pieces[-1])
    return np.frombuffer("".join(pieces)[:count].encode(), dtype=np.uint8).astype(np.int64) - 32


def start_weights(config: Mapping[str, Any], seed: int) -> Weights:
    """Random first values of all tensors."""
    generator = torch.Generator().manual_seed(seed)
    d, m, a = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    rows = {"q_proj": config["num_attention_heads"] * a, "k_proj": config["num_key_value_heads"] * a}
    rows["v_proj"] = rows["k_proj"]

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator) * 0.7 / shape[-1] ** 0.5

    found = {"model.embed_tokens.weight": 0.3 * torch.randn(VOCABULARY, d, generator=generator)}
    for layer in range(config["num_hidden_layers"]):
        base = f"model.layers.{layer}."
        for name, count in rows.items():
            found[f"{base}self_attn.{name}.weight"] = draw(count, d)
        found[f"{base}self_attn.o_proj.weight"] = draw(d, rows["q_proj"])
        found |= {f"{base}mlp.{name}.weight": draw(m, d) for name in ("gate_proj", "up_proj")}
        found[f"{base}mlp.down_proj.weight"] = draw(d, m)
        found |= {f"{base}{name}_layernorm.weight": torch.ones(d) for name in ("input", "post_attention")}
    return found | {"model.norm.weight": torch.ones(d), "lm_head.weight": draw(VOCABULARY, d)}


def run(weights: Weights, config: Mapping[str, Any], ids: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Logits and the states of the stream behind every layer."""
    a, heads, groups = config["head_dim"], config["num_attention_heads"], config["num_key_value_heads"]
    angles = torch.arange(ids.shape[1])[:, None] * config["rope_theta"] ** (-torch.arange(0, a, 2) / a)
    cosine, sine = (
        f(torch.cat([angles, angles], dim=-1)).to(weights["lm_head.weight"]) for f in (torch.cos, torch.sin)
    )

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        return x * torch.rsqrt((x**2).mean(-1, keepdim=True) + config["rms_norm_eps"]) * weights[name]

    def split(x: torch.Tensor, count: int, rotate: bool = True) -> torch.Tensor:
        x = x.view(*x.shape[:2], count, a).transpose(1, 2)
        one, other = x.chunk(2, dim=-1)
        x = x * cosine + torch.cat([-other, one], dim=-1) * sine if rotate else x
        return x.repeat_interleave(heads // count, dim=1)

    x = weights["model.embed_tokens.weight"][ids]
    states = []
    for layer in range(config["num_hidden_layers"]):
        own = {name[len(f"model.layers.{layer}.") :]: w for name, w in weights.items() if f"layers.{layer}." in name}
        u = norm(x, f"model.layers.{layer}.input_layernorm.weight")
        q, k, v = (u @ own[f"self_attn.{n}_proj.weight"].T for n in "qkv")
        y = F.scaled_dot_product_attention(split(q, heads), split(k, groups), split(v, groups, False), is_causal=True)
        x = x + y.transpose(1, 2).reshape(*x.shape[:2], -1) @ own["self_attn.o_proj.weight"].T
        u = norm(x, f"model.layers.{layer}.post_attention_layernorm.weight")
        hidden = F.silu(u @ own["mlp.gate_proj.weight"].T) * (u @ own["mlp.up_proj.weight"].T)
        x = x + hidden @ own["mlp.down_proj.weight"].T
        states.append(x)
    return norm(x, "model.norm.weight") @ weights["lm_head.weight"].T, states


def batches(text: np.ndarray, steps: int, seed: int) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, len(text) - LENGTH - 1, (steps, BATCH))
    return torch.from_numpy(text[starts[..., None] + np.arange(LENGTH + 1)])


def loss_of(weights: Weights, config: Mapping[str, Any], ids: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of the next character."""
    logits = run(weights, config, ids[:, :-1])[0]
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def train(
    weights: Weights, config: Mapping[str, Any], text: np.ndarray, steps: int, *, seed: int, rate: float = 3e-3,
    make: Callable[[Weights], Weights] | None = None, teacher: Weights | None = None,
) -> Weights:  # fmt: skip
    """Adam with weight decay; ``make`` computes the tensors from what is trained, a ``teacher`` gives soft labels."""
    trained = {name: tensor.clone().requires_grad_() for name, tensor in weights.items()}
    optimizer = torch.optim.AdamW(trained.values(), lr=rate, weight_decay=0.01)
    for step, ids in enumerate(batches(text, steps, seed)):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / 20) * (1 - 0.9 * step / steps)
        tensors = trained if make is None else make(trained)
        if teacher is None:
            loss = loss_of(tensors, config, ids)
        else:
            with torch.no_grad():
                target = run(teacher, config, ids[:, :-1])[0].softmax(-1).flatten(0, 1)
            loss = F.cross_entropy(run(tensors, config, ids[:, :-1])[0].flatten(0, 1), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {name: tensor.detach() for name, tensor in trained.items()}


def train_base(size: str, kind: str, steps: int, seed: int) -> Weights:
    """A model from its first values."""
    config = config_of(size)
    return train(start_weights(config, seed), config, write_text(kind, 200_000, seed), steps, seed=seed)


def to_model(weights: Weights, config: Mapping[str, Any]) -> Model:
    """The tensors as a model."""
    return open_model({name: tensor.numpy() for name, tensor in weights.items()}, config)


def to_weights(model: Model) -> Weights:
    """The tensors of a model, float32."""
    return {name: torch.from_numpy(np.asarray(model.tensors.raw(name), dtype=np.float32)) for name in model.tensors}


def prune(state: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Without the group of heads that writes least and a quarter of the units, in every layer; the rest in order."""
    a, groups = config["head_dim"], config["num_key_value_heads"]
    share = config["num_attention_heads"] // groups
    found = dict(state)
    for layer in range(config["num_hidden_layers"]):
        base = f"model.layers.{layer}."
        out = state[f"{base}self_attn.o_proj.weight"]
        sizes = (out**2).sum(axis=0).reshape(groups, -1).sum(axis=1)
        kept = np.sort(np.argsort(-sizes)[: groups - 1])
        narrow = (kept[:, None] * a + np.arange(a)).ravel()
        wide = (kept[:, None] * a * share + np.arange(a * share)).ravel()
        for name, rows in (("q", wide), ("k", narrow), ("v", narrow)):
            found[f"{base}self_attn.{name}_proj.weight"] = state[f"{base}self_attn.{name}_proj.weight"][rows]
        found[f"{base}self_attn.o_proj.weight"] = out[:, wide]
        down = state[f"{base}mlp.down_proj.weight"]
        units = np.sort(np.argsort(-(down**2).sum(axis=0))[: 3 * down.shape[1] // 4])
        found[f"{base}mlp.down_proj.weight"] = down[:, units]
        for name in ("gate", "up"):
            found[f"{base}mlp.{name}_proj.weight"] = state[f"{base}mlp.{name}_proj.weight"][units]
    changes = {"num_attention_heads": share * (groups - 1), "num_key_value_heads": groups - 1}
    return found, {**config, **changes, "intermediate_size": 3 * config["intermediate_size"] // 4}


def quantise(tensor: np.ndarray) -> np.ndarray:
    """Rows rounded to 15 steps each."""
    if tensor.ndim < 2:
        return tensor
    step = np.abs(tensor).max(axis=1, keepdims=True) / 7
    return np.asarray(np.round(tensor / np.maximum(step, 1e-30)) * step)


def upcycle(
    state: Mapping[str, Any], config: Mapping[str, Any], rng: np.random.Generator
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A Mixtral of two experts, each the MLP with a little noise."""
    found = {}
    names = {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}
    for name, w in state.items():
        part = name.split(".")[-2]
        if part not in names:
            found[name] = w
            continue
        base = name.split("mlp.")[0] + "block_sparse_moe."
        for expert in range(2):
            found[f"{base}experts.{expert}.{names[part]}.weight"] = w * (1 + 0.02 * rng.normal(size=w.shape))
        found[f"{base}gate.weight"] = 0.02 * rng.normal(size=(2, config["hidden_size"]))
    changes = {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "num_local_experts": 2}
    return found, {**config, **changes, "num_experts_per_tok": 1}


def main() -> dict[str, float]:
    torch.set_num_threads(1)
    config = config_of("small")
    found = {}
    for kind in ("words", "sums"):
        weights = train_base("small", kind, 300, seed=0)
        with torch.no_grad():
            found[kind] = float(loss_of(weights, config, batches(write_text(kind, 50_000, 99), 4, 5).flatten(0, 1)))
        print(f"{kind}: loss {found[kind]:.3f} after 300 steps, {to_model(weights, config)!r}")
    return found


if __name__ == "__main__":
    main()
