"""Do the verdicts on models with two towers agree with scores? As `live_mutations` asks of those with one.

    python tests/models/live_pairs.py [--seed 0] [KIND …]

Every tensor is changed in turn, tensors of equal shape are exchanged; pairs are moved, canonicalized and aligned, and
loaded by transformers. Prints one line per error and a summary; exit code 1 if there was an error.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.torch import load_file

sys.path.insert(0, str(Path(__file__).parents[2]))

from attngeom.models.pair_comparison import compare_pairs, fingerprint_pair
from attngeom.models.pair_moves import aligned_pair, canonical_pair, teleported_pair, write_pair
from attngeom.models.pairs import open_pair
from tests.models.live_mutations import DIFFERENT, SAME, TENSOR_CHANGES, gap, swap_mutations, write
from tests.models.pairs.make_reference import KINDS, inputs_of, made, scores


def judge(kind: str, seed: int, root: Path, counts: Counter[str], errors: list[str]) -> None:
    base, inputs = root / "base", inputs_of(seed)
    made(kind, seed).double().save_pretrained(base)
    state, config = load_file(base / "model.safetensors"), json.loads((base / "config.json").read_text())
    truth, pair, rng = scores(base, inputs), open_pair(base), np.random.default_rng(seed)
    other = root / "other"
    made(kind, seed + 1).double().save_pretrained(other)
    cases: dict[str, Path] = {"another model": other}
    moved = {"teleported": teleported_pair(pair, seed), "canonical": canonical_pair(pair)}
    moved["canonical of teleported"] = canonical_pair(pair.changed(moved["teleported"]))
    moved["aligned"] = aligned_pair(pair, pair.changed(moved["teleported"]))
    for name, tensors in moved.items():
        cases[name] = root / name.replace(" ", "-")
        write_pair(pair, tensors, cases[name])
    mutations = [
        (f"{change}: {name}", {**state, name: TENSOR_CHANGES[change](tensor, rng)})
        for name, tensor in state.items()
        if tensor.is_floating_point() and tensor.numel()
        for change in (
            rng.choice(list(TENSOR_CHANGES), size=2, replace=False) if tensor.ndim else ("scaled", "negated")
        )
    ]
    mutations += [(swap.name, swap.state) for swap in swap_mutations(state, config, rng)]
    for number, (name, changed) in enumerate(mutations):
        cases[name] = root / f"case-{number}"
        write(cases[name], changed, config)
    for name, folder in cases.items():
        size = gap(truth.ravel(), scores(folder, inputs).ravel())
        found, prints = compare_pairs(pair, open_pair(folder)), fingerprint_pair(open_pair(folder))
        same = True if size < SAME else False if size > DIFFERENT else None
        word = {True: "same", False: "different", None: "between"}[same]
        counts[f"truth {word}, verdict {found.verdict}"] += 1
        title = f"{kind} | {name}, scores differ by {size:.1e}: {found.reason}"
        if None not in (same, found.same_function) and same is not found.same_function:
            errors.append(f"WRONG {title}")
        if same is False and prints.digest == fingerprint_pair(pair).digest:
            errors.append(f"BLIND fingerprint {title}")
        if same is not None and found.same_function is None:
            errors.append(f"undecided {title}")
        if same is not True and name in moved:
            errors.append(f"MOVED {title}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    counts: Counter[str] = Counter()
    errors: list[str] = []
    for kind in given.kinds or KINDS:
        with tempfile.TemporaryDirectory() as folder:
            judge(kind, given.seed, Path(folder), counts, errors)
    print(*errors, json.dumps(dict(sorted(counts.items())), indent=1), sep="\n")
    return 1 if any(not line.startswith("undecided") for line in errors) else 0


if __name__ == "__main__":
    sys.exit(main())
