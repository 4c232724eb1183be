"""The table of commands: which module holds one, what it does, what people type who mean it, and examples.

A call imports only the module that it needs, and the help of the program none. The command NAME is the function
NAME_command of its module, or a ``group`` of commands. Examples work in the folder of ``attngeom demo``, and the tests
run them there.
"""

from __future__ import annotations

import difflib

GROUPS = {
    "Weights": {
        "compare": ("compare", "Whether two checkpoints compute the same function."),
        "canonicalize": ("canonicalize", "Write one representative for all weights of a function."),
        "teleport": ("canonicalize", "Move weights along the fiber without changing the function."),
        "fingerprint": ("canonicalize", "One line that all weights of a function share."),
        "inspect": ("inspect", "Where a checkpoint lies: stratum, ranks, fiber, hypotheses."),
        "heads": ("heads", "Whether the heads of a layer are unique; find them."),
        "recover": ("recover", "Find weights from coefficients or from queries."),
    },
    "Functions": {
        "dim": ("dim", "How many dimensions the functions of a network have."),
        "certify": ("certify", "Whether one attention layer computes given coefficients."),
        "verify": ("verify", "Recheck a certificate from scratch."),
        "prove": ("verify", "Write a certificate as a theorem that Coq checks."),
    },
    "Equations": {
        "invariants": ("invariants", "The equations that hold on all attention layers."),
        "implicitize": ("implicitize", "All equations of an attention variety, degree by degree."),
    },
    "Learning": {
        "lambda": ("learning", "How singular a checkpoint is for learning: (λ, m), exactly."),
        "laws": ("learning", "What gradient flow conserves, and whether that is all."),
        "track": ("learning", "A training run: ranks, strata, what drifts that should not."),
    },
    "Real transformers": {
        "model": ("model", "The same questions for a real transformer."),
    },
    "Your own network": {
        "net": ("net", "The dimension and the symmetries of a network that you wrote."),
    },
    "Tools": {
        "demo": ("demo", "Write a folder of example files, and say what to try."),
        "explore": ("explore", "Look and play: a local page in the browser."),
        "reproduce": ("reproduce", "Recompute every claim, table and figure of both papers."),
        "atlas": ("atlas", "Many architectures: resumable sweeps and their store."),
        "random": ("demo", "Write random weights of an architecture."),
        "import": ("layers", "Take attention weights from torch checkpoints."),
        "coefficients": ("layers", "Expand one lightning layer into its coefficients."),
        "forward": ("layers", "Evaluate a network at an input."),
        "info": ("info", "Versions of what the answers rest on."),
    },
}
"""The commands in the order of the help: their module in this package, and one line."""
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}
MEANT = {
    "dim": ("dimension", "dimensions", "size", "rank", "parameters", "expressivity"),
    "compare": ("same", "equal", "equivalent", "diff", "distance"),
    "canonicalize": ("canonical", "normalize", "normal-form", "gauge"),
    "teleport": ("move", "symmetry", "symmetries", "orbit", "fiber", "fibre"),
    "inspect": ("stratum", "singular", "where", "show", "describe"),
    "recover": ("reconstruct", "extract", "learn", "fit"),
    "certify": ("realizable", "realisable", "membership", "certificate"),
    "verify": ("check", "recheck", "validate"),
    "prove": ("coq", "proof", "lean", "export"),
    "invariants": ("equations", "families", "polynomials", "relations"),
    "implicitize": ("ideal", "hilbert", "eliminate", "generators", "groebner"),
    "lambda": ("llc", "rlct", "learning-coefficient", "slt", "singular-learning"),
    "laws": ("conserved", "conservation", "noether", "gradient-flow"),
    "track": ("learning", "run", "trajectory", "checkpoints"),
    "model": ("hf", "huggingface", "transformer", "transformers", "llama", "gpt2", "lora"),
    "model align": ("align",),
    "model published": ("published", "presets", "redundancy"),
    "model lineage": ("lineage", "kinship", "provenance", "descent", "parent"),
    "model merge": ("merge", "average", "combine", "soup"),
    "fingerprint": ("hash", "digest"),
    "net": ("analyze", "analyse", "network", "module", "torch", "pytorch", "jax", "numpy"),
    "explore": ("gui", "serve", "browser", "view", "plot", "ui", "play"),
    "reproduce": ("papers", "claims", "report", "paper"),
    "atlas run": ("sweep",),
    "demo": ("example", "examples", "init", "start", "tutorial"),
    "random": ("new", "sample", "generate"),
    "import": ("load", "convert", "read"),
    "coefficients": ("expand", "coeffs", "coefficient"),
    "forward": ("evaluate", "eval", "apply"),
    "info": ("version", "versions"),
}
"""What people type who mean a command."""

EXAMPLES = {
    "demo": ("demo", "demo examples"),
    "random": ("random --widths 3,3,3 --attention 2 --out w.json", "random --widths 8,8 --heads 2 --out w.safetensors"),
    "dim": ("dim --widths 3,3,3 --attention 2 --prove", "dim --kind softmax --heads 12 --widths 768,768,768"),
    "net": ("net network.py:attention", "net network.py:mlp --weights layers --input 3"),
    "compare": ("compare a.json b.json", "compare trained.safetensors moved.safetensors --tolerance 1e-9"),
    "canonicalize": ("canonicalize a.json --out canonical.json",),
    "teleport": ("teleport trained.safetensors --objective norm --out small.safetensors",),
    "fingerprint": ("fingerprint a.json", "fingerprint model"),
    "recover": ("recover realizable.json --out found.json",),
    "certify": ("certify realizable.json --attention 2 --out proof.json", "certify closure_only.json"),
    "verify": (
        "verify certificate.json",
        "verify certificate.json --standalone",
        "verify network.json --source network.py:attention",
    ),
    "prove": ("prove certificate.json --out proof.v",),
    "invariants": ("invariants --d 3 --a 2 --count", "invariants --d 2 --a 1 --family attention-rank --format latex"),
    "implicitize": ("implicitize --d 3 --a 2 --max-degree 4", "implicitize --d 2 --a 2 --max-degree 4 --complete"),
    "inspect": ("inspect singular.json", "inspect trained.safetensors --json"),
    "lambda": ("lambda boundary.json", "lambda --widths 2,2 --attention 1 --table"),
    "heads": ("heads --widths 4,4 --attention 2 --heads 2 --prove",),
    "laws": ("laws --widths 3,3 --attention 3",),
    "coefficients": ("coefficients layer.json --out c.json",),
    "forward": ("forward a.json x.json",),
    "info": ("info",),
    "model": ("model inspect model", "model compare model model-moved"),
    "atlas": ("atlas run sweep.toml --store atlas.db --workers 1", "atlas summary --store atlas.db"),
    "model inspect": ("model inspect model",),
    "model published": ("model published",),
    "model compare": ("model compare model model-moved",),
    "model fingerprint": ("model fingerprint model",),
    "model canonicalize": ("model canonicalize model --out model-canonical",),
    "model teleport": ("model teleport model --out model-elsewhere --seed 5",),
    "model align": ("model align model model-moved --out model-aligned",),
    "model lineage": ("model lineage model-moved model",),
    "model merge": ("model merge model model-moved --out model-merged",),
    "atlas run": ("atlas run sweep.toml --store atlas.db --workers 1",),
    "atlas show": ("atlas show --store atlas.db --question dimension --where kind=softmax --sort -dimension",),
    "atlas export": ("atlas export --store atlas.db --out atlas.csv",),
    "atlas merge": ("atlas merge atlas.db --store all.db",),
    "atlas summary": ("atlas summary --store atlas.db",),
    "atlas verify": ("atlas verify --store atlas.db --seconds 60",),
    "atlas plot": ("atlas plot --store atlas.db --out figures",),
    "track": ("track start.safetensors trained.safetensors",),
    "explore": ("explore", "explore a.json"),
    "import": ("import model/model.safetensors --idealised --out attention.safetensors",),
    "reproduce": ("reproduce --claim G-corollary-3.8 --quick --out report",),
}
"""For each command, or command of a group, what to type behind ``attngeom``."""


def suggest(word: str, group: str = "") -> str:
    """What to type in place of a word that is no command, or no command of a group.

    >>> suggest("llc"), suggest("comapre")
    ('did you mean: attngeom lambda', 'did you mean: attngeom compare')
    >>> suggest("kinship", "model")
    'did you mean: attngeom model lineage (see attngeom model --help)'
    >>> suggest("finger")
    'did you mean: attngeom fingerprint'
    >>> suggest("banana", "model")
    'type attngeom model --help for all commands'
    """
    names = {name.removeprefix(f"{group} "): name for name in (EXAMPLES if group else COMMANDS)}
    meant = {other: name for name, others in MEANT.items() for other in others} | names
    meant = {other: name for other, name in meant.items() if name.startswith(f"{group} ".lstrip())}
    typed = word.lower().replace("_", "-")
    near = difflib.get_close_matches(typed, meant, n=1, cutoff=0.75)
    near = near or [other for other in meant if len(typed) > 2 and other.startswith(typed)]
    others = f"attngeom {group} --help" if group else "attngeom --help"
    if not near:
        return f"type {others} for all commands"
    return f"did you mean: attngeom {meant[near[0]]}" + (f" (see {others})" if group else "")
