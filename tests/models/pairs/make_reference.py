"""Make the reference checkpoints with two towers, and the scores that transformers computes; as in ``../data``.

Run as ``python make_reference.py [KIND …]`` in an environment with torch and transformers.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.models.data.make_reference import in_double, perturb

HERE = Path(__file__).parent
TOWER = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20}
TEXT = {**TOWER, "vocab_size": 23, "max_position_embeddings": 18, "bos_token_id": 1, "eos_token_id": 22,
        "pad_token_id": 0}  # fmt: skip
IMAGE = {**TOWER, "hidden_size": 18, "image_size": 12, "patch_size": 4}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "clip": ("CLIPModel", {"text_config": TEXT, "vision_config": IMAGE, "projection_dim": 7}),
    "siglip": ("SiglipModel", {"text_config": {**TEXT, "projection_size": 18}, "vision_config": IMAGE}),
}


def made(kind: str, seed: int) -> Any:
    """A small random model."""
    name, settings = KINDS[kind]
    cls = getattr(transformers, name)
    torch.manual_seed(seed)
    config = cls.config_class(**settings)
    config._attn_implementation = "eager"
    model = cls(config).eval()
    perturb(model, torch.Generator().manual_seed(seed))
    with torch.no_grad():
        model.logit_scale.fill_(1.3)
    return model


def inputs_of(seed: int) -> dict[str, torch.Tensor]:
    """Five images, and six texts that end in the token that stands for a text."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(2, 22, (6, 11), generator=generator)
    tokens[:, -1] = 22
    images = torch.randn((5, 3, 12, 12), generator=generator, dtype=torch.float64)
    return {"pixel_values": images, "input_ids": tokens}


def scores(folder: Path, inputs: dict[str, torch.Tensor]) -> np.ndarray:
    """The scores that transformers computes in double precision."""
    config = json.loads((folder / "config.json").read_text())
    cls = getattr(transformers, config["architectures"][0])
    with in_double(), torch.no_grad():
        model = cls.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()
        return np.asarray(model(**inputs).logits_per_image.numpy())


def make(kind: str) -> None:
    folder = HERE / kind
    shutil.rmtree(folder, ignore_errors=True)
    made(kind, 1).half().save_pretrained(folder)
    inputs = inputs_of(2)
    record = {name: tensor.numpy() for name, tensor in inputs.items()} | {"scores": scores(folder, inputs)}
    versions = {"torch": torch.__version__, "transformers": transformers.__version__, "class": KINDS[kind][0]}
    save_file({n: np.ascontiguousarray(x) for n, x in record.items()}, folder / "reference.safetensors", versions)
    kept = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    print(f"{kind}: largest score {np.abs(record['scores']).max():.3g}")


if __name__ == "__main__":
    for name in sys.argv[1:] or KINDS:
        make(name)
