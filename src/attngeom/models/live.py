"""Logits of two folders by transformers, where it is installed: a last check of written models by foreign code."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.model import Model

LARGEST = 5 * 10**7
"""Models of more parameters are not loaded twice by another library for a check."""
TOKENS = 12


def is_installed() -> bool:
    """Whether torch and transformers can be imported; nothing is imported here."""
    return all(importlib.util.find_spec(name) is not None for name in ("torch", "transformers"))


def logits_gap(model: Model, one: Path, other: Path) -> float | None:
    """Largest difference of the outputs of two folders over the largest output; None where no check is possible.

    That is where transformers has no such model class, or does not run the first folder; it is infinite where it runs
    the first and not the second.
    """
    if not is_installed() or model.spec.parameters > LARGEST:
        return None
    cls = _model_class(model.config.get("architectures"))
    if cls is None:
        return None
    try:
        left = _outputs(cls, one, model)
    except Exception:  # foreign code may fail in any way, and then says nothing about the written folder
        return None
    try:
        right = _outputs(cls, other, model)
    except Exception:
        return float("inf")
    if left.shape != right.shape:
        return float("inf")
    return float(np.abs(left - right).max() / max(float(np.abs(left).max()), 1e-300))


def _model_class(names: Any) -> Any:
    """The class that config.json names, if it is a model of transformers: nothing else of the library is called."""
    name = names[0] if isinstance(names, list) and names and isinstance(names[0], str) else ""
    library: Any = importlib.import_module("transformers")
    found = getattr(library, name, None) if name.isidentifier() else None
    if not isinstance(found, type) or not issubclass(found, library.PreTrainedModel):
        return None
    return found if found.__name__ == name else None


def _outputs(cls: Any, folder: Path, model: Model) -> Array:
    torch: Any = importlib.import_module("torch")
    loaded = cls.from_pretrained(str(folder), dtype=torch.float64, attn_implementation="eager", local_files_only=True)
    loaded.config._experts_implementation = "eager"
    with torch.no_grad():
        found = loaded.eval()(**_inputs(torch, model))
    # States of an encoder are read by a decoder, and a norm between them may move.
    tensors = [value for name, value in found.items() if isinstance(value, torch.Tensor) and "encoder" not in name]
    return np.concatenate([value.double().numpy().reshape(-1) for value in tensors if value.is_floating_point()])


def _inputs(torch: Any, model: Model) -> dict[str, Any]:
    """One short random input of the kind that the family reads."""
    rng = np.random.default_rng(0)
    spec, config = model.spec, model.config
    if model.places.front == "patches":
        size = int(config.get("image_size", 224))
        image = rng.normal(size=(1, int(config.get("num_channels", 3)), size, size))
        return {"pixel_values": torch.from_numpy(image)}
    tokens = torch.from_numpy(rng.integers(0, spec.vocabulary, (1, TOKENS)))
    if model.places.front == "audio":
        frames = 2 * spec.stacks[0].positions
        mel = rng.normal(size=(1, int(config.get("num_mel_bins", 80)), frames))
        return {"input_features": torch.from_numpy(mel), "decoder_input_ids": tokens}
    if len(spec.stacks) > 1:
        return {"input_ids": tokens, "decoder_input_ids": tokens}
    return {"input_ids": tokens}
