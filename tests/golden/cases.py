"""The command lines whose answers are recorded: every command, its main options, and bad input.

A case is a list of steps that share one empty folder ``{out}``; ``{in}`` is a copy of the stored inputs. Steps run in
order, so a step can read what an earlier one wrote. ``files`` names the output files that are recorded as well.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Step:
    """One command line with placeholders, and the exit code that it must have.

    ``unordered``: the order of the facts depends on how long tasks took, so it is not compared.
    """

    line: str
    code: int = 0
    json: bool = True
    unordered: bool = False

    def arguments(self, inputs: Path, out: Path) -> list[str]:
        """The command line as a list of arguments; ``--json`` is added unless the step prints text."""
        words = [word.replace("{in}", str(inputs)).replace("{out}", str(out)) for word in shlex.split(self.line)]
        return [*words, "--json"] if self.json else words


@dataclass(frozen=True)
class Case:
    """A named sequence of steps and the output files to record."""

    name: str
    steps: tuple[Step, ...]
    files: tuple[str, ...] = ()


def one(name: str, line: str, code: int = 0, json: bool = True, files: tuple[str, ...] = ()) -> Case:
    """A case of one step."""
    return Case(name, (Step(line, code, json),), files)


FILES = [
    one("demo", "demo {out}/demo"),
    one("demo-mixed", "demo {in}", 2),
    one("random-exact", "random --widths 3,2,3 --attention 2 --seed 4 --out {out}/w.json", files=("w.json",)),
    one(
        "random-float",
        "random --widths 2,2 --heads 2 --kind softmax --causal --out {out}/w.safetensors",
        files=("w.safetensors",),
    ),
    one("random-no-suffix", "random --widths 2,2 --out {out}/w", 2),
]

NET = [
    one("net-attention", "net {in}/network.py:attention"),
    one("net-gated", "net {in}/network.py:mlp --weights layers --input 3 --prove", json=False),
    one("net-branch", "net {in}/network.py:branch", 2),
    one("net-missing", "net {in}/network.py:nonsense", 2),
    one("net-no-name", "net {in}/network.py", 2),
]

DIM = [
    one("dim-formula", "dim --widths 3,5,3 --attention 2"),
    one("dim-default-attention", "dim --widths 4,4,4 --heads 2"),
    one("dim-prove-deep", "dim --widths 3,3,3 --attention 2,2 --tokens 3 --prove --seed 5"),
    one("dim-one-layer", "dim --widths 3,2 --attention 1 --tokens 2 --prove"),
    one("dim-one-token", "dim --widths 3,3 --attention 2 --tokens 1 --prove"),
    one("dim-one-token-deep", "dim --widths 2,2,2 --attention 2 --tokens 1 --prove"),
    one("dim-softmax", "dim --widths 3,3,2 --attention 2 --kind softmax --prove"),
    one("dim-softmax-one-token", "dim --widths 3,2 --attention 2 --kind softmax --tokens 1 --prove"),
    one("dim-sigmoid", "dim --widths 3,3,2 --attention 2 --kind sigmoid --prove"),
    one("dim-sigmoid-one-token", "dim --widths 3,2 --attention 2 --kind sigmoid --tokens 1 --prove"),
    one("dim-temperature", "dim --widths 3,2 --attention 2 --kind softmax --temperature 3/2 --prove"),
    one("dim-transformer", "dim --kind softmax --heads 12 --widths 768,768,768"),
    one("dim-heads", "dim --widths 4,4 --attention 2 --heads 2 --prove"),
    one("dim-heads-value-width", "dim --widths 3,3,3 --attention 1 --heads 2 --value-width 1 --prove"),
    one(
        "dim-not-proven",
        "dim --widths 2,2,5,1 --attention 2,2,3 --heads 3 --value-width 3 --tokens 2 --causal --prove",
        3,
    ),
    one("dim-value-width", "dim --widths 3,3 --attention 2 --value-width 1 --prove"),
    one("dim-residual", "dim --widths 3,3,3 --attention 2 --residual --prove"),
    one("dim-softmax-residual", "dim --widths 2,2,2 --attention 2 --kind softmax --residual --prove"),
    one("dim-causal", "dim --widths 3,3,2 --attention 1,2 --causal --prove"),
    one("dim-softmax-causal", "dim --widths 2,2 --attention 2 --kind softmax --causal --prove"),
    one("dim-narrow-widths", "dim --widths 2,3,1,2 --attention 1 --tokens 4"),
    one("dim-method-minor", "dim --widths 2,2 --tokens 2 --method minor"),
    one("dim-method-schur", "dim --widths 2,2 --tokens 2 --method schur --prove"),
    one("dim-method-krylov", "dim --widths 2,2 --tokens 2 --kind softmax --method krylov --prove"),
    one("dim-method-balls", "dim --widths 2,2 --tokens 2 --kind softmax --method balls --prove"),
    one("dim-table", "dim --widths 2-3,2 --attention 1-2 --tokens 1-2 --table"),
    one("dim-table-prove", "dim --widths 1-2,2,2 --attention 1 --kind softmax --table --prove"),
    one("dim-checkpoint-exact", "dim {in}/layer.json"),
    one("dim-checkpoint-float", "dim --from-checkpoint {in}/deep.safetensors --seed 2"),
    one("dim-checkpoint-singular", "dim {in}/stratum_singular.json --prove"),
    Case(
        "dim-certificate",
        (
            Step("dim --widths 3,2,2 --attention 2 --certificate {out}/c.json"),
            Step("verify {out}/c.json"),
            Step("dim --widths 2,2 --attention 1 --kind softmax --residual --certificate {out}/s.json"),
            Step("verify {out}/s.json"),
        ),
        ("c.json", "s.json"),
    ),
]

COMPARE = [
    one("compare-exact-same", "compare {in}/deep.json {in}/deep_moved.json --out {out}/g.json", files=("g.json",)),
    one("compare-exact-different", "compare {in}/deep.json {in}/deep_other.json --seed 3", 1),
    one("compare-exact-layer", "compare {in}/layer_moved.json {in}/layer.json --out {out}/g.json", files=("g.json",)),
    one("compare-exact-heads", "compare {in}/heads.json {in}/heads_moved.json --out {out}/g.json", files=("g.json",)),
    one("compare-exact-heads-different", "compare {in}/heads.json {in}/heads_other.json", 1),
    one("compare-exact-residual", "compare {in}/residual.json {in}/residual_moved.json"),
    one("compare-exact-residual-different", "compare {in}/residual.json {in}/residual_other.json", 1),
    one("compare-exact-causal", "compare {in}/causal.json {in}/causal_moved.json"),
    one("compare-exact-softmax", "compare {in}/softmax.json {in}/softmax_moved.json"),
    one("compare-exact-softmax-different", "compare {in}/softmax.json {in}/softmax_other.json", 1),
    one("compare-exact-sigmoid", "compare {in}/sigmoid.json {in}/sigmoid_moved.json"),
    one("compare-exact-temperature", "compare {in}/tempered.json {in}/tempered_moved.json"),
    one("compare-exact-softmax-deep", "compare {in}/softdeep.json {in}/softdeep_moved.json"),
    one("compare-two-points", "compare {in}/stratum_singular.json {in}/stratum_singular_twin.json"),
    one("compare-boundary-singular", "compare {in}/stratum_boundary.json {in}/stratum_singular.json", 1),
    one("compare-exact-and-float", "compare {in}/stratum_singular.json {in}/stratum_singular.safetensors"),
    one(
        "compare-float-same",
        "compare {in}/deep.safetensors {in}/deep_moved.safetensors --out {out}/g.json",
        files=("g.json",),
    ),
    one("compare-float-different", "compare {in}/deep.safetensors {in}/deep_other.safetensors", 1),
    one("compare-float-near", "compare {in}/deep.safetensors {in}/deep_near.safetensors", 3),
    one("compare-float-tolerance", "compare {in}/deep.safetensors {in}/deep_near.safetensors --tolerance 1e-7"),
    one("compare-single-precision", "compare {in}/deep_single.safetensors {in}/deep.safetensors --tolerance 1e-6"),
    one("compare-float-softmax", "compare {in}/softdeep.safetensors {in}/softdeep_moved.safetensors"),
    one("compare-float-heads", "compare {in}/softheads.safetensors {in}/softheads_moved.safetensors"),
    one("compare-float-heads-different", "compare {in}/heads.safetensors {in}/heads_other.safetensors", 1),
    one("compare-float-softmax-layer", "compare {in}/softmax.safetensors {in}/softmax_moved.safetensors"),
    one("compare-float-softmax-different", "compare {in}/softmax.safetensors {in}/softmax_other.safetensors", 1),
    one("compare-float-residual-different", "compare {in}/residual.safetensors {in}/residual_other.safetensors", 1),
    one("compare-float-residual", "compare {in}/residual.safetensors {in}/residual_moved.safetensors"),
]

CANONICALIZE = [
    one("canonicalize-exact", "canonicalize {in}/deep_moved.json --out {out}/w.json", files=("w.json",)),
    one("canonicalize-heads", "canonicalize {in}/heads_moved.json --out {out}/w.json", files=("w.json",)),
    one("canonicalize-residual", "canonicalize {in}/residual_moved.json --out {out}/w.json", files=("w.json",)),
    one("canonicalize-softmax", "canonicalize {in}/softdeep_moved.json --out {out}/w.json", files=("w.json",)),
    one("canonicalize-sigmoid", "canonicalize {in}/sigmoid_moved.json --out {out}/w.json", files=("w.json",)),
    one("canonicalize-temperature", "canonicalize {in}/tempered_moved.json --out {out}/w.json", files=("w.json",)),
    one("canonicalize-causal", "canonicalize {in}/causal.json --gauge echelon --out {out}/w.json", files=("w.json",)),
    Case(
        "canonicalize-one-file-per-function",
        (
            Step("canonicalize {in}/deep.json --out {out}/a.json"),
            Step("canonicalize {in}/deep_moved.json --out {out}/b.json"),
        ),
        ("a.json", "b.json"),
    ),
    Case(
        "canonicalize-compact-exact",
        (
            Step("canonicalize {in}/deep.json --compact --out {out}/c.json"),
            Step("canonicalize {out}/c.json --out {out}/w.json"),
            Step("compare {in}/deep.json {out}/w.json"),
        ),
        ("c.json", "w.json"),
    ),
    Case(
        "canonicalize-compact-float",
        (
            Step("canonicalize {in}/deep.safetensors --compact --out {out}/c.safetensors"),
            Step("canonicalize {out}/c.safetensors --out {out}/w.safetensors"),
            Step("compare {in}/deep.safetensors {out}/w.safetensors"),
        ),
        ("c.safetensors", "w.safetensors"),
    ),
    one(
        "canonicalize-float-balanced",
        "canonicalize {in}/deep_moved.safetensors --gauge balanced --out {out}/w.safetensors",
        files=("w.safetensors",),
    ),
    one(
        "canonicalize-float-echelon",
        "canonicalize {in}/layer.safetensors --gauge echelon --out {out}/w.safetensors",
        files=("w.safetensors",),
    ),
    one(
        "canonicalize-float-softmax-heads",
        "canonicalize {in}/softheads.safetensors --out {out}/w.safetensors",
        files=("w.safetensors",),
    ),
]

TELEPORT = [
    Case(
        "teleport-random",
        (
            Step("teleport {in}/deep.json --seed 4 --out {out}/w.json"),
            Step("compare {in}/deep.json {out}/w.json"),
        ),
        ("w.json",),
    ),
    Case(
        "teleport-norm",
        (
            Step("teleport {in}/deep_moved.safetensors --objective norm --out {out}/w.safetensors"),
            Step("compare {in}/deep_moved.safetensors {out}/w.safetensors"),
        ),
    ),
    one("teleport-norm-of-exact", "teleport {in}/heads.json --objective norm --out {out}/w.safetensors"),
    one(
        "teleport-gradient",
        "teleport {in}/deep.safetensors --objective gradient --inputs {in}/batch_inputs.npy"
        " --targets {in}/batch_targets.npy --out {out}/w.safetensors",
    ),
    one(
        "teleport-gradient-budget",
        "teleport {in}/residual.safetensors --objective gradient --budget 2 --inputs {in}/batch_inputs.npy"
        " --targets {in}/batch_targets.npy --out {out}/w.safetensors",
    ),
]

RECOVER = [
    Case(
        "recover-exact",
        (
            Step("recover {in}/coefficients_layer.json --out {out}/w.json"),
            Step("compare {in}/layer.json {out}/w.json"),
        ),
        ("w.json",),
    ),
    one("recover-attention", "recover {in}/coefficients_layer.json --attention 3"),
    one("recover-attention-too-small", "recover {in}/coefficients_layer.json --attention 1", 1),
    one("recover-causal", "recover {in}/coefficients_causal.json --causal --attention 2"),
    one("recover-causal-inferred", "recover {in}/coefficients_causal.json --out {out}/w.json", files=("w.json",)),
    one(
        "recover-two-points",
        "recover {in}/coefficients_two_points.json --out {out}/w.json",
        files=("w.json", "w-2.json"),
    ),
    one(
        "recover-square-root",
        "recover {in}/coefficients_sqrt2.json --out {out}/w.safetensors",
        files=("w.safetensors", "w-2.safetensors"),
    ),
    one("recover-square-root-rows", "recover {in}/coefficients_sqrt5_rows.json"),
    one("recover-closure", "recover {in}/coefficients_closure.json", 1),
    one("recover-no-layer", "recover {in}/coefficients_resultant.json", 1),
    one("recover-zero", "recover {in}/coefficients_zero.json"),
    one("recover-one-token", "recover {in}/coefficients_token.json", 3),
    one("recover-float", "recover {in}/coefficients_layer_float.json"),
    one("recover-float-closure", "recover {in}/coefficients_float_closure.json", 1),
    one("recover-queries-layer", "recover {in}/queries_layer.json"),
    one("recover-queries-deep", "recover {in}/queries_deep.json"),
    one("recover-queries-planned", "recover {in}/queries_planned.json"),
    one("recover-queries-next", "recover {in}/queries_deep_round1.json --plan --out {out}/next.json", 3),
    one(
        "recover-plan",
        "recover --plan --widths 2,2 --attention 2 --tokens 2 --out {out}/q.json",
        files=("q.json",),
    ),
    one("recover-plan-deep", "recover --plan --widths 2,2,2 --attention 2 --seed 3 --out {out}/q.json"),
]


def certified(name: str, options: str = "", code: int = 0) -> Case:
    """Certify the coefficients of that name, write the certificate and verify it."""
    stem = name.replace("-", "_")
    line = f"certify {{in}}/coefficients_{stem}.json {options} --out {{out}}/c.json"
    label = options.replace("--", "").replace(" ", "-")
    full = f"certify-{name}-{label}" if label else f"certify-{name}"
    return Case(full, (Step(line, code), Step("verify {out}/c.json")), ("c.json",))


CERTIFY = [
    certified("layer"),
    certified("layer", "--attention 2"),
    certified("layer", "--attention 1", 1),
    certified("two-points"),
    certified("sqrt2"),
    certified("sqrt5-rows", "--attention 1"),
    certified("zero"),
    certified("closure", "", 1),
    certified("resultant", "", 1),
    certified("segre", "", 1),
    certified("pencil", "", 1),
    certified("binary", "", 1),
    certified("copy", "", 1),
    certified("outside", "", 1),
    certified("causal", "--seed 1", 1),
    certified("token", "--attention 2"),
    certified("token-xyz"),
    certified("token-fermat", "", 1),
    certified("token-rank", "--attention 1", 1),
    certified("token-rank", "--attention 2"),
    certified("token-field"),
    certified("token-rows", "", 1),
    certified("token-shared", "", 1),
    certified("token-sqrt", "--attention 1"),
    certified("token-closure-rows", "--attention 1", 1),
    certified("map", "--layers 2"),
    certified("map-refuted", "--layers 2", 1),
    one("certify-layers-undecided", "certify {in}/coefficients_map_open.json --layers 2", 3),
    one("certify-layers-degree", "certify {in}/coefficients_layer.json --layers 2", 2),
    one("certify-layers-heads", "certify {in}/coefficients_map.json --layers 2 --heads 2", 2),
    one("certify-causal-alone", "certify {in}/coefficients_layer.json --causal", 2),
    one("certify-float-realizable", "certify {in}/coefficients_layer_float.json"),
    one("certify-float-rank", "certify {in}/coefficients_layer_float.json --attention 1", 1),
    one("certify-float-not", "certify {in}/coefficients_float_not.json", 1),
    one("certify-float-closure", "certify {in}/coefficients_float_closure.json --tolerance 1e-6", 1),
    one("certify-float-undecided", "certify {in}/coefficients_token_float.json", 3),
]

VERIFY = [
    one("verify-layer", "verify {in}/certificate_layer.json"),
    one("verify-closure", "verify {in}/certificate_closure.json"),
    one("verify-dimension", "verify {in}/certificate_dimension.json"),
    one("verify-tampered", "verify {in}/certificate_tampered_digest.json", 1),
    one("verify-forged-rank", "verify {in}/certificate_forged_rank.json", 1),
    one("verify-forged-coefficients", "verify {in}/certificate_forged_coefficients.json", 1),
    one("verify-forged-dimension", "verify {in}/certificate_forged_dimension.json", 1),
    one("verify-standalone", "verify {in}/certificate_layer.json --standalone"),
    one("prove-layer", "prove {in}/certificate_layer.json --out {out}/proof.v"),
    one("prove-closure", "prove {in}/certificate_closure.json --out {out}/proof.v"),
    one("prove-laws", "prove {in}/certificate_laws.json --out {out}/proof.v", 2),
    Case(
        "verify-upgrade",
        (Step("verify {in}/certificate_dimension.json --upgrade {out}/new.json"), Step("verify {out}/new.json")),
        ("new.json",),
    ),
    Case(
        "verify-source",
        (
            Step("net {in}/network.py:attention --certificate {out}/c.json"),
            Step("verify {out}/c.json --source {in}/network.py:attention"),
            Step("verify {out}/c.json --source {in}/network.py:mlp --weights layers --input 3", 1),
        ),
    ),
    one("verify-source-kind", "verify {in}/certificate_layer.json --source {in}/network.py:attention", 2),
    one("verify-unknown-kind", "verify {in}/certificate_unknown.json", 1),
    one("verify-no-certificate", "verify {in}/layer.json", 1),
]

FORMATS = ("text", "m2", "singular", "oscar", "sage", "sympy", "latex", "json")
INVARIANTS = [
    one("invariants-count", "invariants --d 4 --a 2 --count"),
    one("invariants-count-rank-one", "invariants --d 3 --a 1 --tokens 3 --count"),
    one("invariants-count-one-token", "invariants --d 4 --a 1 --tokens 1 --count"),
    one("invariants-count-rows", "invariants --d 2 --a 2 --d-out 3 --count"),
    one("invariants-count-targets", "invariants --d 3 --a 2 --targets 2 --count"),
    one("invariants-entry", "invariants --d 2 --a 2 --tokens 3 --d-out 2 --output 1,2 --limit 2"),
    one("invariants-entry-outside", "invariants --d 2 --a 2 --tokens 3 --output 1,2", 2),
    one("invariants-lines", "invariants --d 3 --a 3 --line 1,0,0:0,1,1 --line 2,0,0:1,1,1 --count"),
    one("invariants-line-degenerate", "invariants --d 3 --a 3 --line 1,0,0:2,0,0 --count", 2),
    one("invariants-limit", "invariants --d 3 --a 2 --limit 1"),
    one("invariants-resultant", "invariants --d 2 --a 2 --family sylvester-resultant"),
    one("invariants-attention-rank", "invariants --d 2 --a 1 --family attention-rank"),
    one("invariants-segre", "invariants --d 2 --a 2 --d-out 2 --family segre-quadric"),
    one("invariants-pluecker", "invariants --d 4 --a 2 --family pluecker-quartic --limit 1"),
    one("invariants-index", "invariants --d 4 --a 4 --family sylvester-resultant --index 2000"),
    *[
        one(
            f"invariants-format-{form}",
            f"invariants --d 3 --a 2 --family slice-pencil --limit 2 --format {form}",
            0,
            False,
        )
        for form in FORMATS
    ],
    *[
        one(
            f"invariants-member-{form}",
            f"invariants --d 3 --a 3 --family binary-restriction --index 3 --format {form}",
            0,
            False,
        )
        for form in FORMATS
    ],
    Case(
        "invariants-out",
        (Step("invariants --d 2 --a 1 --format m2 --out {out}/i.m2", json=False),),
        ("i.m2",),
    ),
]

IMPLICITIZE = [
    one("implicitize-2-1", "implicitize --d 2 --a 1 --max-degree 4"),
    one("implicitize-2-2", "implicitize --d 2 --a 2 --max-degree 5 --complete"),
    one("implicitize-3-1", "implicitize --d 3 --a 1 --max-degree 3 --complete"),
    one("implicitize-3-2", "implicitize --d 3 --a 2 --max-degree 4 --complete"),
    one("implicitize-check", "implicitize --d 2 --a 2 --max-degree 1 --complete --check"),
    one("implicitize-large", "implicitize --d 768 --a 64 --max-degree 4 --complete"),
    one("implicitize-3-3", "implicitize --d 3 --a 3 --max-degree 4"),
    one("implicitize-4-2", "implicitize --d 4 --a 2 --max-degree 3 --no-families"),
    one("implicitize-targets", "implicitize --d 3 --a 2 --targets 2 --max-degree 4"),
    one("implicitize-many-targets", "implicitize --d 2 --a 2 --targets 3 --max-degree 4 --complete"),
    one("implicitize-rows", "implicitize --d 2 --a 1 --d-out 2 --max-degree 3"),
    one("implicitize-rows-prove", "implicitize --d 2 --a 2 --d-out 2 --max-degree 2 --prove"),
    one("implicitize-one-token", "implicitize --d 3 --a 1 --tokens 1 --max-degree 4"),
    one("implicitize-tokens", "implicitize --d 2 --a 2 --tokens 2 --max-degree 2"),
    one("implicitize-causal", "implicitize --d 2 --a 1 --tokens 2 --causal --max-degree 2"),
    one("implicitize-residual", "implicitize --d 2 --a 1 --d-out 2 --tokens 2 --residual --max-degree 1"),
    one("implicitize-heads", "implicitize --d 3 --a 1 --heads 2 --value-width 1 --max-degree 3"),
    one("implicitize-weights", "implicitize --d 2 --a 2 --max-degree 4 --method weights --seed 2"),
    one("implicitize-no-check", "implicitize --d 2 --a 1 --max-degree 3 --method weights --no-check --no-families"),
    one(
        "implicitize-generators",
        "implicitize --d 2 --a 2 --max-degree 4 --generators {out}/g.json",
        files=("g.json",),
    ),
    one(
        "implicitize-generators-m2",
        "implicitize --d 2 --a 1 --max-degree 3 --generators {out}/g.m2",
        files=("g.m2",),
    ),
    one(
        "implicitize-generators-singular",
        "implicitize --d 3 --a 1 --max-degree 3 --highest-only --generators {out}/g.sing",
        files=("g.sing",),
    ),
    Case(
        "implicitize-state",
        (
            Step("implicitize --d 2 --a 2 --max-degree 3 --state {out}/s.json"),
            Step("implicitize --d 2 --a 2 --max-degree 4 --state {out}/s.json"),
        ),
    ),
    one("implicitize-budget", "implicitize --d 3 --a 3 --max-degree 4 --max-seconds 0", 3),
]

INSPECT = [
    *[one(f"inspect-{name}-exact", f"inspect {{in}}/{name}.json") for name in ("layer", "deep", "softmax", "heads")],
    one("inspect-residual-exact", "inspect {in}/residual.json --seed 3"),
    one("inspect-one-token", "inspect {in}/token.json"),
    one("inspect-singular", "inspect {in}/stratum_singular.json"),
    one("inspect-boundary", "inspect {in}/stratum_boundary.json"),
    one("inspect-rank-drop", "inspect {in}/stratum_drop.json"),
    one("inspect-zero", "inspect {in}/stratum_zero.json"),
    one("inspect-layer-float", "inspect {in}/layer.safetensors"),
    one("inspect-deep-float", "inspect {in}/deep.safetensors"),
    one("inspect-deep-noise", "inspect {in}/deep_single.safetensors --noise 1e-6"),
    one("inspect-sigmoid-exact", "inspect {in}/sigmoid.json"),
    one("inspect-softmax-float", "inspect {in}/softdeep.safetensors"),
    one("inspect-singular-float", "inspect {in}/stratum_singular.safetensors"),
]

LAMBDA = [
    one("lambda-layer", "lambda {in}/layer.json"),
    one("lambda-boundary", "lambda {in}/stratum_boundary.json"),
    one("lambda-zero", "lambda {in}/stratum_zero.json"),
    one("lambda-zero-global", "lambda {in}/stratum_zero.json --global"),
    one("lambda-softmax", "lambda {in}/softmax.json"),
    one("lambda-deep", "lambda {in}/deep.json --seed 3"),
    one("lambda-heads", "lambda {in}/heads.json"),
    one("lambda-one-token", "lambda {in}/token.json"),
    one("lambda-float", "lambda {in}/layer.safetensors", 3),
    one("lambda-text", "lambda {in}/stratum_boundary.json", json=False),
    one("lambda-cross-entropy", "lambda {in}/stratum_boundary.json --loss cross-entropy"),
    one("lambda-bad-loss", "lambda {in}/layer.json --loss hinge", 2),
    one("lambda-table", "lambda --widths 2,2 --attention 2 --table"),
    one("lambda-table-softmax", "lambda --widths 2,2,2 --attention 1 --kind softmax --table", json=False),
    Case(
        "lambda-certificate",
        (Step("lambda {in}/deep.json --certificate {out}/c.json"), Step("verify {out}/c.json")),
        ("c.json",),
    ),
    one(
        "lambda-benchmark",
        "lambda {in}/stratum_zero.json --export-benchmark {out}/b",
        files=("b/benchmark.json", "b/weights.safetensors"),
    ),
    one(
        "lambda-benchmark-moved",
        "lambda {in}/stratum_boundary.json --export-benchmark {out}/b",
        files=("b/benchmark.json", "b/weights.safetensors"),
    ),
    one("lambda-bad-certificate", "lambda {in}/layer.safetensors --certificate {out}/c.json", 2, files=("c.json",)),
    one("lambda-bad-nothing", "lambda", 2),
    one("lambda-bad-kind", "lambda {in}/layer.json --kind softmax", 2),
    one("lambda-bad-both", "lambda {in}/layer.json --widths 2,2 --table", 2),
    one("lambda-bad-table", "lambda --widths 2,2 --heads 2 --table", 2),
]

LAWS = [
    one("laws-deep", "laws --widths 3,3,3 --attention 2"),
    one("laws-wide-attention", "laws --widths 2,2 --attention 5 --prove"),
    one("laws-softmax-heads", "laws --widths 4,4 --heads 2 --kind softmax --causal --residual", json=False),
    one("laws-one-token", "laws --widths 3,3 --attention 2 --tokens 1 --prove", 3),
    one("laws-transformer", "laws --widths 768,768,768 --heads 12 --kind softmax", json=False),
    one("laws-too-large", "laws --widths 768,768 --heads 12 --prove", 2),
    Case(
        "laws-certificate",
        (
            Step("laws --widths 2,2,2 --attention 1 --kind softmax --temperature 1/2 --certificate {out}/c.json"),
            Step("verify {out}/c.json"),
        ),
        ("c.json",),
    ),
]

HEADS = [
    one("heads-exact", "heads {in}/heads.json", 3),
    one("heads-float", "heads {in}/heads.safetensors", 3),
    one("heads-one", "heads {in}/layer.json"),
    one("heads-text", "heads {in}/layer.json", json=False),
    one("heads-deep", "heads {in}/deep.json", 2),
    one("heads-coefficients", "heads {in}/coefficients_layer.json"),
    one("heads-coefficients-float", "heads {in}/coefficients_layer_float.json --heads 1"),
    one("heads-coefficients-none", "heads {in}/coefficients_pencil.json", 1),
    one("heads-coefficients-complex", "heads {in}/coefficients_closure.json", 1),
    one("heads-one-token", "heads {in}/coefficients_token.json", 2),
    one("heads-wrong-number", "heads {in}/coefficients_layer.json --heads 2", 1),
    one("heads-prove", "heads --widths 3,3 --attention 1 --heads 4 --value-width 1 --prove"),
    one("heads-prove-defective", "heads --widths 3,3 --attention 3 --heads 2 --value-width 3 --prove", 3),
    one("heads-prove-text", "heads --widths 4,4 --attention 2 --heads 2 --prove", json=False),
    one("heads-nothing", "heads --prove", 2),
    one("heads-inspect", "inspect {in}/heads.json", json=False),
    one("heads-both", "heads {in}/layer.json --prove", 2),
    Case(
        "heads-certify",
        (
            Step("random --widths 4,4 --attention 2 --heads 2 --tokens 2 --out {out}/w.json"),
            Step("heads {out}/w.json"),
            Step("coefficients {out}/w.json --out {out}/c.json"),
            Step("heads {out}/c.json --heads 2"),
            Step("certify {out}/c.json --attention 2 --heads 2 --value 2 --out {out}/yes.json"),
            Step("verify {out}/yes.json"),
            Step("certify {out}/c.json --attention 1 --heads 2 --value 2 --out {out}/no.json", 1),
            Step("verify {out}/no.json"),
            Step("certify {out}/c.json --attention 4 --heads 1 --value 4 --out {out}/one.json", 1, json=False),
            Step("verify {out}/one.json", json=False),
            Step("certify {out}/c.json --attention 2 --value 2", 2),
        ),
    ),
    one("heads-certify-float", "certify {in}/coefficients_layer_float.json --heads 2", 2),
    one("heads-other-file", "heads {in}/certificate_layer.json", 2),
]

TRACK = [
    one("track-deep", "track {in}/deep.safetensors {in}/deep_moved.safetensors {in}/deep_near.safetensors"),
    one("track-exact", "track {in}/stratum_singular.json {in}/stratum_boundary.json", json=False),
    one("track-zero", "track {in}/stratum_zero.json"),
    one("track-two-architectures", "track {in}/deep.json {in}/layer.json", 2),
    one("track-nan", "track {in}/broken_nan.json", 2),
]

LAYERS = [
    one("coefficients-exact", "coefficients {in}/layer.json --out {out}/c.json", files=("c.json",)),
    one("coefficients-float", "coefficients {in}/layer.safetensors"),
    one("coefficients-one-token", "coefficients {in}/token.json"),
    one("coefficients-heads", "coefficients {in}/heads.json"),
    one("forward-exact", "forward {in}/layer.json {in}/x.json --out {out}/y.json", files=("y.json",)),
    one("forward-deep-exact", "forward {in}/deep.json {in}/x.json"),
    one("forward-residual-exact", "forward {in}/residual.json {in}/x.json"),
    one("forward-heads-exact", "forward {in}/heads.json {in}/x.json"),
    one("forward-mixed", "forward {in}/layer.json {in}/x.npy"),
    one("forward-softmax", "forward {in}/softmax.json {in}/x.json"),
    one("forward-sigmoid", "forward {in}/sigmoid.json {in}/x2.json"),
    one("forward-temperature", "forward {in}/tempered.json {in}/x.json"),
    one("forward-softmax-heads", "forward {in}/softheads.safetensors {in}/x4.npy"),
    one("forward-causal-float", "forward {in}/causal.safetensors {in}/x2.json"),
    one("forward-batch", "forward {in}/deep.safetensors {in}/batch_inputs.npy --out {out}/y.npy"),
    Case(
        "import-llama",
        (
            Step("import {in}/llama_like/model.safetensors --idealised --causal --out {out}/w.safetensors"),
            Step("forward {out}/w.safetensors {in}/x6.npy"),
        ),
        ("w.safetensors",),
    ),
    one(
        "import-llama-block",
        "import {in}/llama_like/model.safetensors --idealised --blocks 1 --kind lightning --causal --residual"
        " --tokens 5 --out {out}/w.safetensors",
        files=("w.safetensors",),
    ),
    one(
        "import-torch",
        "import {in}/torch_like.safetensors --idealised --heads 3 --out {out}/w.safetensors",
        files=("w.safetensors",),
    ),
    one(
        "import-bert",
        "import {in}/bert_like.safetensors --idealised --heads 3 --out {out}/w.safetensors",
        files=("w.safetensors",),
    ),
    one(
        "import-gpt",
        "import {in}/gpt_like.safetensors --idealised --heads 2 --out {out}/w.safetensors",
        files=("w.safetensors",),
    ),
    one("info", "info"),
]

MODEL = [
    one("model-inspect", "model inspect {in}/llama_model"),
    one("model-inspect-config", "model inspect {in}/llama_model/config.json"),
    one("model-published", "model published"),
    one("model-compare", "model compare {in}/llama_model {in}/llama_model"),
    one("model-fingerprint", "model fingerprint {in}/llama_model --seed 3"),
    one("fingerprint", "fingerprint {in}/causal.json"),
    one("fingerprint-moved", "fingerprint {in}/causal_moved.json"),
]

ATLAS = [
    Case(
        "atlas-run",
        (
            Step("atlas run {in}/sweep.toml --store {out}/a.db --dry-run"),
            Step("atlas run {in}/sweep.toml --store {out}/a.db --workers 1"),
            Step("atlas run {in}/sweep.toml --store {out}/a.db --workers 1"),
            Step("atlas show --store {out}/a.db --sort question", unordered=True),
            Step("atlas merge {out}/a.db --store {out}/b.db"),
            Step("atlas merge {out}/a.db --store {out}/b.db"),
        ),
    ),
    one("atlas-dry-run-of-a-store", "atlas run {in}/sweep.toml --store {in}/store.sqlite --dry-run"),
    one("atlas-dry-run-shard", "atlas run {in}/sweep.toml --store {out}/a.db --dry-run --shard 1/2 --seed 1"),
    one("atlas-show", "atlas show --store {in}/store.sqlite"),
    one(
        "atlas-show-where",
        "atlas show --store {in}/store.sqlite --question dimension --where dimension>=4 --sort -dimension",
    ),
    one("atlas-show-failures", "atlas show --store {in}/store.sqlite --failures"),
    one(
        "atlas-export-csv",
        "atlas export --store {in}/store.sqlite --question dimension --out {out}/f.csv",
        files=("f.csv",),
    ),
    one(
        "atlas-export-markdown",
        "atlas export --store {in}/store.sqlite --question ideal --sort degree --out {out}/f.md",
        files=("f.md",),
    ),
    one("atlas-summary", "atlas summary --store {in}/store.sqlite --out {out}/s.md", files=("s.md",)),
    one("atlas-plot", "atlas plot --store {in}/store.sqlite --out {out}"),
    one("atlas-verify", "atlas verify --store {in}/store.sqlite --workers 1 --seed 1"),
    one("atlas-verify-sample", "atlas verify --store {in}/store.sqlite --workers 1 --certificates 3 --seed 1", 3),
]

REPRODUCE = [
    Case(
        "reproduce-claims",
        (
            Step(
                "reproduce --quick --claim G-definition-3 --claim G-lemma-3.1 --claim G-equation-13"
                " --claim I-proposition-5 --out {out}/r"
            ),
        ),
    ),
]

BAD = [
    one("bad-command", "nonsense", 2, False),
    one("bad-no-command", "", 2, False),
    one("bad-explore-file", "explore --no-browser {in}/nowhere.json", 2),
    one("bad-option", "dim --widths 3,3 --colour red", 2),
    one("bad-seed", "dim --widths 3,3 --seed -1", 2),
    one("bad-widths", "dim --widths 3,x --attention 2", 2),
    one("bad-range", "dim --widths 2-3,2 --attention 1", 2),
    one("bad-kind", "dim --widths 3,3 --kind quadratic", 2),
    one("bad-temperature", "dim --widths 3,3 --kind softmax --temperature 0", 2),
    one("bad-method", "dim --widths 3,3 --method magic", 2),
    one("bad-heads", "dim --widths 3,3 --heads 2", 2),
    one("bad-widths-and-file", "dim --widths 3,3 {in}/layer.json", 2),
    one("bad-missing-file", "inspect {in}/absent.json", 2),
    one("bad-duplicate-key", "inspect {in}/broken_twice.json", 2),
    one("bad-nan", "forward {in}/layer.json {in}/broken_nan.json", 2),
    one("bad-shape", "inspect {in}/broken_shape.json", 2),
    one("bad-version", "canonicalize {in}/broken_version.json --out {out}/w.json", 2),
    one("bad-header", "inspect {in}/broken_header.safetensors", 2),
    one("bad-input-width", "forward {in}/layer.json {in}/x4.npy", 2),
    one("bad-exact-to-npy", "forward {in}/layer.json {in}/x.json --out {out}/y.npy", 2),
    one("bad-compare-architectures", "compare {in}/layer.json {in}/deep.json", 2),
    one("bad-compare-out", "compare {in}/deep.json {in}/deep_moved.json --out {out}/g.txt", 2),
    one("bad-gauge", "canonicalize {in}/deep.json --gauge polar --out {out}/w.json", 2),
    one("bad-gauge-of-exact", "canonicalize {in}/deep.json --gauge balanced --out {out}/w.json", 2),
    one("bad-objective", "teleport {in}/deep.json --objective best --out {out}/w.json", 2),
    one("bad-gradient-data", "teleport {in}/deep.json --objective gradient --out {out}/w.json", 2),
    one("coefficients-deep-token", "coefficients {in}/token_deep.json", json=False),
    one("bad-coefficients-deep", "coefficients {in}/deep.json", 2),
    one("bad-coefficients-softmax", "coefficients {in}/softmax.json", 2),
    one("bad-recover-nothing", "recover", 2),
    one("bad-recover-open-queries", "recover {in}/queries_open.json", 2),
    one("bad-recover-more-rounds", "recover {in}/queries_deep_round1.json", 2),
    one("bad-recover-queries", "recover {in}/broken_queries.json", 2),
    one("bad-recover-root-as-json", "recover {in}/coefficients_sqrt2.json --out {out}/w.json", 2),
    one("bad-certify-weights", "certify {in}/layer.json", 2),
    one("bad-certify-float-out", "certify {in}/coefficients_float_not.json --out {out}/c.json", 2),
    one("bad-family", "invariants --d 3 --a 2 --family nonsense", 2),
    one("bad-format", "invariants --d 3 --a 2 --format maple", 2),
    one("bad-index", "invariants --d 3 --a 2 --index 0", 2),
    one("bad-index-range", "invariants --d 2 --a 2 --family sylvester-resultant --index 99", 2),
    one("bad-generators", "implicitize --d 2 --a 1 --max-degree 2 --generators {out}/g.txt", 2),
    one("bad-complete", "implicitize --d 2 --a 2 --hidden 2 --max-degree 1 --complete", 2),
    one("bad-complete-size", "implicitize --d 30 --a 25 --max-degree 4 --complete --check", 2),
    one("bad-targets-tokens", "implicitize --d 2 --a 1 --targets 2 --tokens 2 --max-degree 2", 2),
    one("bad-causal-tokens", "implicitize --d 2 --a 1 --causal --max-degree 2", 2),
    one("bad-import-heads", "import {in}/torch_like.safetensors --out {out}/w.safetensors", 2),
    one("bad-import-blocks", "import {in}/torch_like.safetensors --heads 3 --blocks 7 --out {out}/w.safetensors", 2),
    one("bad-sweep", "atlas run {in}/sweep_bad.toml --store {out}/a.db --workers 1", 2),
    one("bad-store", "atlas show --store {in}/sweep.toml", 2),
    one("bad-where", "atlas show --store {in}/store.sqlite --where colour", 2),
    one("bad-export", "atlas export --store {in}/store.sqlite --out {out}/f.xlsx", 2),
    one("bad-claim", "reproduce --claim G-theorem-99 --out {out}/r", 2),
]

CASES = [
    *FILES,
    *NET,
    *DIM,
    *COMPARE,
    *CANONICALIZE,
    *TELEPORT,
    *RECOVER,
    *CERTIFY,
    *VERIFY,
    *INVARIANTS,
    *IMPLICITIZE,
    *INSPECT,
    *HEADS,
    *LAMBDA,
    *LAWS,
    *TRACK,
    *LAYERS,
    *MODEL,
    *ATLAS,
    *REPRODUCE,
    *BAD,
]
