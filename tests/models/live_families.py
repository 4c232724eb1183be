"""Compare live with torch and transformers, family by family: ``make models-test``.

A tiny random model of every family is made with transformers and saved. Its logits are compared with the own forward
pass; the folders that teleport and canonicalize write are loaded by transformers and must give the same logits; the
module itself must have the fingerprint of its folder. Prints a table; exit code 1 if a figure is out of bounds.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

sys.path.insert(0, str(Path(__file__).parents[2]))

from attngeom.models import canonicalize, fingerprint, forward, open_model, teleport, write_model
from attngeom.models.orbits import PARTS
from attngeom.models.residual import has_free_stream
from tests.models.data.make_reference import ATTENTION, FAMILIES, STATES, inputs_of, perturb

# transformers computes norms, softmax and rotary angles in float32 whatever the weights are.
LIMIT = 2e-5
JOINED = ("dinov2_gated",)
"""Families whose files join maps that live modules have one by one: those are refused."""
HEADINGS = """| family | own forward | after teleport | after canonicalize | stream rotated | module = folder |
|---|---|---|---|---|---|"""


def load(cls: Any, family: str, folder: Path) -> Any:
    # Double weights, so that only transformers' own float32 steps are seen.
    attention = ATTENTION.get(family, "eager")
    model = cls.from_pretrained(folder, attn_implementation=attention, dtype=torch.float64)
    model.config._experts_implementation = "eager"
    return model.eval()


def logits(model: Any, family: str, inputs: dict[str, torch.Tensor]) -> np.ndarray:
    with torch.no_grad():
        if family in STATES:
            return model.base_model(**inputs).last_hidden_state[0].double().numpy()
        return model(**inputs).logits[0].double().numpy()


def check(family: str, folder: Path, seed: int) -> dict[str, float | bool]:
    name, settings = FAMILIES[family]
    cls = getattr(transformers, name)
    generator = torch.Generator().manual_seed(seed)
    config = cls.config_class(**settings)
    config._experts_implementation = "eager"
    made = cls(config).eval()
    perturb(made, generator)
    made.save_pretrained(folder / "model")
    inputs = inputs_of(family, generator)
    loaded = load(cls, family, folder / "model")
    theirs = logits(loaded, family, inputs)
    size = np.abs(theirs).max()
    model = open_model(folder / "model")
    own = forward(model, {key: tensor[0].numpy() for key, tensor in inputs.items()})
    rewrites = {"moved": teleport(model, seed), "form": canonicalize(model)}
    # The stream of ViT is free where its classifier, and no hidden state, is the function.
    free = model.headed if family == "vit" else model
    if has_free_stream(free):
        rewrites["rotated"] = teleport(free, seed, parts=(*PARTS, "residual"))
    for place, rewrite in rewrites.items():
        # The writer itself asks transformers for the logits before it gives the folder its name.
        assert write_model(rewrite, folder / place, live=True).live.gap is not None

    def gap(other: str) -> float:
        if other not in rewrites:
            return float("nan")
        found = load(cls, family, folder / other)
        if family == "vit" and other == "rotated":
            ours, own_logits = (logits(each, "vit with classifier", inputs) for each in (found, loaded))
            return float(np.abs(ours - own_logits).max() / np.abs(own_logits).max())
        return float(np.abs(logits(found, family, inputs) - theirs).max() / size)

    return {
        "own": float(np.abs(own - theirs).max() / size),
        "teleport": gap("moved"),
        "canonicalize": gap("form"),
        "rotated": gap("rotated"),
        "module": family in JOINED or fingerprint(open_model(made)).digest == fingerprint(model).digest,
    }


def main() -> int:
    logging.disable(logging.WARNING)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    print(f"torch {torch.__version__}, transformers {transformers.__version__}\n")
    print(HEADINGS)
    failed = []
    for number, family in enumerate(sys.argv[1:] or FAMILIES):
        with tempfile.TemporaryDirectory() as folder:
            row = check(family, Path(folder), 100 + number)
        gaps = [float(row[key]) for key in ("own", "teleport", "canonicalize", "rotated")]
        good = np.nanmax(gaps) < LIMIT and bool(row["module"])
        if not good:
            failed.append(family)
        cells = ["fixed" if np.isnan(value) else f"{value:.1e}" for value in gaps] + ["yes" if row["module"] else "no"]
        print(f"| {family} | " + " | ".join(cells) + " |", flush=True)
    print(f"\n{len(failed)} families out of bounds" + (f": {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
