"""Independent models of four types, as transformers starts them: how alike they become by learning the same text.

``benchmarks/lineage.py`` trains one type, from larger first values. Here GPT-2, two Llamas (own head, tied head) and
GPT-NeoX learn the pages or the code of this repository, three seeds each; every pair is measured, one of every second
pair disguised, and joins the table that the package ships (``--reference``, after ``benchmarks/lineage.py``). Needs
torch and transformers. ``--folder`` keeps the models: what is there is not trained again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "benchmarks")]

import numpy as np  # noqa: E402

from attngeom.models import Model, lineage, open_model, teleport  # noqa: E402
from attngeom.models.ancestry.reference import STRANGERS  # noqa: E402
from attngeom.models.orbits import PARTS  # noqa: E402
from attngeom.models.residual import has_free_stream  # noqa: E402
from contract import emit, require  # noqa: E402
from lineage import shorten  # noqa: E402

TOKENS, USED, LENGTH, SEEDS = 160, 128, 64, 3
TEXTS = {"prose": "docs/**/*.md", "code": "src/**/*.py"}
GPT2 = {"n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": LENGTH, "resid_pdrop": 0, "embd_pdrop": 0}
LLAMA = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4,
    "max_position_embeddings": LENGTH,
}  # fmt: skip
TYPES: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2Config", {**GPT2, "attn_pdrop": 0}),
    "llama": ("LlamaConfig", {**LLAMA, "num_key_value_heads": 2}),
    "llamatied": ("LlamaConfig", {**LLAMA, "num_key_value_heads": 4, "tie_word_embeddings": True}),
    "neox": ("GPTNeoXConfig", LLAMA),
}


def train(folder: Path, kind: str, text: str, seed: int, steps: int) -> None:
    """A model with first values and data of its own, written as transformers writes it."""
    import torch
    import transformers

    torch.set_num_threads(1)
    data = b"".join(path.read_bytes() for path in sorted(ROOT.glob(TEXTS[text])))
    letters = torch.from_numpy(np.array([c for c in data if c < USED][:1_500_000]))
    name, settings = TYPES[kind]
    torch.manual_seed(7919 * list(TYPES).index(kind) + 101 * seed + 13 * (text == "code"))
    config = getattr(transformers, name)(vocab_size=TOKENS, bos_token_id=None, eos_token_id=None, **settings)
    model = transformers.AutoModelForCausalLM.from_config(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1, betas=(0.9, 0.95))
    draws = torch.Generator().manual_seed(4000 + seed * 7 + (text == "code"))
    for step in range(steps):
        starts = torch.randint(0, len(letters) - LENGTH, (16,), generator=draws).tolist()
        batch = torch.stack([letters[start : start + LENGTH] for start in starts])
        optimizer.param_groups[0]["lr"] = 3e-3 * min(1, (step + 1) / 20) * (1 - 0.9 * step / steps)
        loss = model(input_ids=batch, labels=batch).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.save_pretrained(folder)
    print(f"trained {folder.name}: loss {loss.item():.2f}", flush=True)


def measure(models: dict[tuple[str, str, int], Model]) -> list[dict[str, Any]]:
    """Every pair, the first model of every second one disguised."""
    rows = []
    for number, (one, other) in enumerate(itertools.combinations(models, 2)):
        child = models[one]
        if number % 2:
            parts = (*PARTS, "residual") if has_free_stream(child.headed) else PARTS
            child = teleport(child, number, parts=parts).moved()
        (found,) = lineage(child, [models[other]], unused=range(USED, TOKENS), seed=number).parents
        assert found.similarity is not None and found.test is not None
        rows.append({
            "child": "-".join(map(str, one)), "parent": "-".join(map(str, other)),
            "kind": STRANGERS[one[1] != other[1]], "ours": found.similarity, "p": found.test.p,
            "largest_layer": max(layer.similarity for layer in found.layers),
        })  # fmt: skip
    return rows


def extend(table: dict[str, Any], rows: list[dict[str, Any]], made_by: str) -> dict[str, Any]:
    """The table of ``benchmarks/lineage.py`` with these pairs, in place of such pairs that it has."""
    kinds = [kind for kind in table["kinds"] if kind["name"] not in STRANGERS]
    own = [kind for kind in kinds if kind["name"].startswith("independent")]
    for name in STRANGERS:
        values = [row["ours"] for row in rows if row["kind"] == name]
        numbers = [round(float(f(values)), 4) for f in (np.min, np.median, np.max)]
        own.append(dict(zip(("name", "pairs", "least", "median", "largest"), (name, len(values), *numbers))))
    return {
        "made_by": f"{table['made_by'].partition(';')[0]}; {made_by}", "pairs": sum(kind["pairs"] for kind in own),
        "largest_independent": max(table["largest_independent"], *(row["ours"] for row in rows)),
        "largest_layer": max(table["largest_layer"], *(row["largest_layer"] for row in rows)),
        "kinds": own + [kind for kind in kinds if not kind["name"].startswith("independent")],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two seeds, 20 steps")
    parser.add_argument("--steps", type=int, default=220, help="steps of training")
    parser.add_argument("--folder", type=Path, help="where the models are kept")
    parser.add_argument("--reference", type=Path, help="the table of the package, to be extended")
    parser.add_argument("--pairs", type=Path, help="write all pairs")
    options = parser.parse_args()
    seeds, steps = (2, 20) if options.quick else (SEEDS, options.steps)
    with tempfile.TemporaryDirectory() as temporary:
        home = options.folder or Path(temporary)
        names = list(itertools.product(TYPES, TEXTS, range(seeds)))
        for kind, text, seed in names:
            if not (home / f"{kind}-{text}-{seed}" / "config.json").exists():
                train(home / f"{kind}-{text}-{seed}", kind, text, seed, steps)
        rows = measure({name: open_model(home / "-".join(map(str, name))) for name in names})
    largest = max(row["ours"] for row in rows)
    print(f"{len(names)} models, {len(rows)} pairs, at most {largest:.3f} alike", flush=True)
    for kind in TYPES:
        own = [row["ours"] for row in rows if all(row[side].split("-")[0] == kind for side in ("child", "parent"))]
        print(f"  {kind} against {kind}: {min(own):.3f} to {max(own):.3f}")
        emit("independent models", f"largest similarity, {kind}", max(own), "ours", unit="similarity")
    share = float(np.mean([row["p"] <= 0.05 for row in rows]))
    print(f"exact test: p ≤ .05 in {share:.3f} of these pairs")
    require(share < 0.1, "the exact test keeps its level")
    made_by = f"benchmarks/lineage_strangers.py --steps {steps}"
    if options.pairs:
        lines = ",\n".join(json.dumps(shorten(row)) for row in rows)
        options.pairs.write_text(f'{{"made_by": {json.dumps(made_by)}, "rows": [\n{lines}\n]}}\n')
    if options.reference:
        table = extend(json.loads(options.reference.read_text()), rows, made_by)
        options.reference.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
