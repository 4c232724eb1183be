"""``attngeom model``: the questions about weights and functions for real transformers (Hugging Face folders)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attngeom import digits, models
from attngeom.cli.adapters import (
    canonicalize_adapter,
    compare_adapter_folders,
    inspect_adapter,
    is_adapter,
    refuse_options,
)
from attngeom.cli.app import VERDICTS
from attngeom.cli.options import IgnoredSeed, Json, Seed, check_choice, choice_option, flag
from attngeom.cli.output import pairs, print_answer, prose, working
from attngeom.errors import InputError
from attngeom.files import read_json, write_atomic

if TYPE_CHECKING:
    from attngeom.models.writing import Written

SCOPES, DTYPES = ("layer", "model"), ("auto", "keep", "float32")
LEVELS, GAUGES = ("auto", "exact", "rounding"), ("echelon", "balanced", "rotated")
Folder = Annotated[Path, typer.Argument(help="Folder with config.json and safetensors weights.")]
Out = Annotated[Path, typer.Option("--out", help="New folder for the result; it must not exist.")]
Scope = Annotated[str, choice_option("--scope", SCOPES, "layer, or model: the residual stream may be turned as well.")]
Live = Annotated[
    bool,
    typer.Option("--live-check/--no-live-check", help="Ask transformers for the logits of both folders as well."),
]
Dtype = Annotated[str, choice_option("--dtype", DTYPES, "keep, float32, or auto (float32, wider where stored so).")]

PARTS = "qk,vo,heads,units,norms,biases"
"""The names of :data:`attngeom.models.sampling.PARTS`; nothing of the models is loaded for a help."""


group = typer.Typer(help="The same questions for real transformers.", no_args_is_help=True)


@contextmanager
def _steps(text: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar over layers."""
    with working(text) as report:
        yield partial(report, text)


@group.command("inspect")
def inspect_command(
    path: Annotated[Path, typer.Argument(help="Folder of a model, or a config.json alone.")],
    prove: Annotated[bool, typer.Option("--prove", help="Prove the counts by rank, where the model is small.")] = False,
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Describe a model and its redundancy by symmetry.

    Kind, heads, invisible weights, degenerate cases, unread tensors.
    """
    if is_adapter(path):
        refuse_options({"--prove": prove})
        return inspect_adapter(path, json)
    from attngeom.models.inspection import inspect_model, inspect_spec

    if path.is_file() and path.suffix == ".json":
        config = read_json(path)
        if not isinstance(config, dict):
            raise InputError(f"{path}: a JSON object is required; give the config.json of a model")
        found = inspect_spec(models.specify(config))
    else:
        with _steps("layers") as step:
            found = inspect_model(models.open_model(path), step)
    record, lines = found.to_json(), [prose(found)]
    if prove:
        from attngeom.models.proofs import prove_redundancy

        with _steps("proofs by rank") as step:
            proof = prove_redundancy(found.spec, seed=seed, progress=step)
        record |= {"proof": proof.to_json()}
        lines.append(prose(f"proof:\n{proof}"))
    return print_answer(json, {**record, "seed": seed}, *lines)


@group.command("compare")
def compare_command(
    one: Folder,
    other: Folder,
    level: Annotated[str, choice_option("--level", LEVELS, "auto, exact or rounding.")] = "auto",
    scope: Scope = "layer",
    tolerance: Annotated[float | None, typer.Option("--tolerance", help="Allowed misfit of every head.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the recovered symmetry (safetensors).")] = None,
    every: Annotated[bool, flag("--all", "List everything that differs, not the worst five.")] = False,
    json: Json = False,
    seed: Seed = 0,
) -> int:
    """Whether two models compute the same function.

    Exact first, then within rounding; names the tensors that explain a difference.
    """
    if is_adapter(one) and is_adapter(other):
        refuse_options({"--level": level != "auto", "--scope": scope != "layer", "--tolerance": tolerance is not None})
        refuse_options({"--out": out is not None})
        return compare_adapter_folders(one, other, json, seed)
    if out is not None and level == "auto":
        level = "rounding"
    with _steps("layers") as step:
        found = models.compare(
            models.open_model(one),
            models.open_model(other),
            level=level,  # type: ignore[arg-type]  # compare refuses other words
            scope=scope,  # type: ignore[arg-type]
            tolerance=tolerance,
            seed=seed,
            progress=step,
        )
    if out is not None:
        from attngeom.models.symmetry_files import symmetry_bytes

        write_atomic(out, symmetry_bytes(found))
    print_answer(json, found.to_json(), prose(found.text(every=every)))
    return VERDICTS[found.same_function]


@group.command("fingerprint")
def fingerprint_command(path: Folder, json: Json = False, seed: Seed = 0) -> None:
    """Print the exact fingerprint of each layer and of the model."""
    found = models.fingerprint(models.open_model(path), seed)
    print_answer(json, found.to_json(), prose(found))


@group.command("canonicalize")
def canonicalize_command(
    path: Folder,
    out: Out,
    gauge: Annotated[
        str | None, choice_option("--gauge", GAUGES, "echelon (the default), balanced (least norm) or rotated.")
    ] = None,
    scope: Scope = "layer",
    dtype: Dtype = "auto",
    compact: Annotated[
        bool, flag("--compact", "Leave out the entries that the echelon gauge fixes; only attngeom reads the folder.")
    ] = False,
    live_check: Live = False,
    json: Json = False,
    seed: IgnoredSeed = 0,
) -> None:
    """Write the canonical representative of a model's function."""
    if is_adapter(path):
        refuse_options({"--scope": scope != "layer", "--dtype": dtype != "auto", "--compact": compact})
        refuse_options({"--gauge": gauge not in (None, "balanced"), "--live-check": live_check})
        return canonicalize_adapter(path, out, json)
    gauge = gauge or "echelon"
    if compact and gauge != "echelon":
        raise InputError(f"--compact with --gauge {gauge[:40]} given; only the echelon gauge fixes entries")
    with _steps("layers") as step:
        form = models.canonicalize(models.open_model(path), gauge, scope)  # type: ignore[arg-type]
        written = models.write_model(form, out, dtype, step, compact, live_check)  # type: ignore[arg-type]
    return _report(written, {"gauge": gauge, "scope": scope, "compact": compact}, json)


@group.command("teleport")
def teleport_command(
    path: Folder,
    out: Out,
    condition: Annotated[float, typer.Option("--condition", help="Condition number of the random matrices.")] = 9.0,
    parts: Annotated[str, typer.Option("--parts", help=f"Of {PARTS.replace(',', ', ')}, residual.")] = PARTS,
    dtype: Dtype = "auto",
    live_check: Live = False,
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Write a random model with the same function."""
    chosen = [part.strip() for part in parts.split(",")]
    with _steps("layers") as step:
        model = models.open_model(path)
        written, condition = models.write_teleport(
            model,
            out,
            seed=seed,
            condition=condition,
            parts=chosen,
            precision=dtype,  # type: ignore[arg-type]
            progress=step,
            live=live_check,
        )
    _report(written, {"seed": seed, "condition": condition, "parts": chosen}, json)


@group.command("align")
def align_command(
    target: Folder,
    path: Folder,
    out: Out,
    scope: Scope = "layer",
    dtype: Dtype = "auto",
    live_check: Live = False,
    json: Json = False,
    seed: IgnoredSeed = 0,
) -> None:
    """Write the second model in the gauge of the first.

    Heads, units, matrices, gains and constants are aligned.
    """
    check_choice(scope, SCOPES, "scope")
    with _steps("layers") as step:
        aligned = models.align(models.open_model(target), models.open_model(path), scope)
        written = models.write_model(aligned, out, dtype, step, live=live_check)  # type: ignore[arg-type]
    _report(written, {"target": str(target), "scope": scope}, json)


def _report(written: Written, settings: dict[str, object], json: bool) -> None:
    record = {**written.to_json(), **settings}
    shown = {name: _words(value) for name, value in record.items() if name != "check"}
    check = record["check"]
    worst = f"{digits.error(check['worst_misfit'])}, {digits.error(check['allowed'])} allowed"
    shown |= {"bytes": f"{written.bytes:,}", "worst misfit to the input": worst}
    shown |= {"check by transformers": written.live.words}
    print_answer(json, record, pairs("written", shown))


def _words(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list | tuple) else value
