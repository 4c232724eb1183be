"""A gallery of networks in NumPy: dimension, fiber and symmetries of each, proven; printed as a table, kept in a store.

python examples/network_gallery.py [--seed N] [--markdown] [--store networks.db]
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path

from attngeom.atlas import FactStore, Sweep, local_executor, run_sweep
from attngeom.atlas.records import Fact, short_name


def cells(fact: Fact) -> tuple[str, ...]:
    """The row of a network: name, weights, dimension, evidence, fiber."""
    answer = fact.result.answer
    # Which axes of the tensors are moved is left out: lines stay short.
    parts = [f"{count} {re.sub(r'[.][0-9]', '', name)}" for name, count in answer["fiber"].items()]
    parts += [f"{answer['unexplained']} by coefficients"] if answer["unexplained"] else []
    numbers = (str(answer[name]) for name in ("num_parameters", "dimension"))
    return short_name(fact.task.architecture), *numbers, fact.result.evidence, "; ".join(parts) or "none"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--store", type=Path, help="the store that keeps the facts with their certificates")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sweep = Sweep((("network", {"names": "all"}),), options.seed)
        path = options.store or Path(folder) / "networks.db"
        with FactStore(path) as store, local_executor(1) as (executor, workers):
            run_sweep(sweep, store, executor, workers)
            known = {fact.task.key: fact for fact in store.facts("network")}
    facts = [known[task.key] for task in sweep.tasks()]
    bar = "| " if options.markdown else ""
    if options.markdown:
        print("| network | weights | dimension | standing | fiber |\n|---|---|---|---|---|")
    for fact in facts:
        print(bar + " | ".join(cells(fact)) + (" |" if options.markdown else ""))
    proven, seconds = sum(fact.result.evidence == "proven" for fact in facts), sum(f.cpu_seconds for f in facts)
    print(f"\n{proven} of {len(facts)} proven, {seconds:.1f} CPU seconds")


if __name__ == "__main__":
    main()
