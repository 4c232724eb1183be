"""``attngeom model``: the questions about weights and functions for real transformers (Hugging Face folders)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attngeom import digits, models
from attngeom.cli import towers
from attngeom.cli.adapters import (
    canonicalize_adapter,
    compare_adapter_folders,
    fingerprint_adapter_folder,
    inspect_adapter,
    merge_adapter_folders,
    refuse_alignment,
    teleport_adapter_folder,
)
from attngeom.cli.app import VERDICTS
from attngeom.cli.folders import PAIR, is_adapter, is_pair, refuse_options
from attngeom.cli.options import IgnoredSeed, Json, Seed, check_choice, choice_option, flag, parse_numbers
from attngeom.cli.output import pairs, print_answer, prose, table, working
from attngeom.errors import InputError
from attngeom.files import read_json, write_atomic
from attngeom.processes import keep_memory

if TYPE_CHECKING:
    from attngeom.models.crews import Crew
    from attngeom.models.writing import Written

SCOPES, DTYPES = ("layer", "model"), ("auto", "keep", "float32")
METHODS = ("linear", "spherical", "task")
LEVELS, GAUGES = ("auto", "exact", "rounding"), ("echelon", "balanced", "rotated")
Folder = Annotated[Path, typer.Argument(help="Folder with config.json and safetensors weights.")]
Out = Annotated[Path, typer.Option("--out", help="New folder for the result; it must not exist.")]
Scope = Annotated[str, choice_option("--scope", SCOPES, "layer, or model: the residual stream may be rotated as well.")]
Live = Annotated[
    bool,
    typer.Option("--live-check/--no-live-check", help="Ask transformers for the logits of both folders as well."),
]
Dtype = Annotated[str, choice_option("--dtype", DTYPES, "keep, float32, or auto (float32, wider where stored so).")]

Workers = Annotated[int | None, typer.Option("--workers", help="Processes that work on layers; 1 by default.")]
Scheduler = Annotated[str | None, typer.Option("--scheduler", help="Address of a Dask scheduler, in their place.")]

PARTS = "qk,vo,heads,units,norms,biases"
"""The names of :data:`attngeom.models.orbits.PARTS`; nothing of the models is loaded for a help."""


group = typer.Typer(help="The same questions for real transformers.")


@contextmanager
def _steps(text: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar over layers."""
    with working(text) as report:
        yield partial(report, text)


@contextmanager
def _crew(workers: int | None, scheduler: str | None, module: str) -> Iterator[Crew]:
    """Who works on the layers: processes of this machine, or the workers of a cluster.

    Processes load the module of the command while this one opens the models.
    """
    if workers is not None and scheduler is not None:
        raise InputError("--workers and --scheduler given; a cluster has its own workers, give one of the two")
    keep_memory()
    if scheduler is None:
        from attngeom.models.crews import hired

        with hired(1 if workers is None else workers, f"attngeom.models.{module}") as crew:
            yield crew
        return
    from attngeom.atlas.executors import dask_executor

    with dask_executor(scheduler) as (executor, _):
        yield executor


def _helpers(workers: int | None, scheduler: str | None) -> dict[str, bool]:
    """Whether options for several processes are set."""
    return {"--workers": workers is not None, "--scheduler": scheduler is not None}


@group.command("inspect")
def inspect_command(
    path: Annotated[Path, typer.Argument(help="Folder of a model, or a config.json alone.")],
    prove: Annotated[bool, typer.Option("--prove", help="Prove the counts by rank, where the model is small.")] = False,
    workers: Workers = None,
    scheduler: Scheduler = None,
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Describe a model and its redundancy by symmetry.

    Kind, heads, invisible weights, degenerate cases, unread tensors.
    """
    if is_adapter(path):
        refuse_options({"--prove": prove})
        return inspect_adapter(path, json)
    if is_pair(path):
        refuse_options({"--prove": prove, "config.json alone": path.is_file()}, PAIR)
        with _steps("layers") as step, _crew(workers, scheduler, "inspection") as crew:
            return towers.inspect_pair(path, step, crew, json, seed)
    from attngeom.models.inspection import inspect_model, inspect_spec

    if path.is_file() and path.suffix == ".json":
        config = read_json(path)
        if not isinstance(config, dict):
            raise InputError(f"{path}: a JSON object is required; give the config.json of a model")
        inspection = inspect_spec(models.specify(config))
    else:
        with _steps("layers") as step, _crew(workers, scheduler, "inspection") as crew:
            inspection = inspect_model(models.open_model(path), step, crew)
    record, lines = inspection.to_json(), [prose(inspection)]
    if prove:
        from attngeom.models.proofs import prove_redundancy

        with _steps("proofs by rank") as step:
            proof = prove_redundancy(inspection.spec, seed=seed, progress=step)
        record |= {"proof": proof.to_json()}
        lines.append(prose(f"proof:\n{proof}"))
    return print_answer(json, {**record, "seed": seed}, *lines)


@group.command("published")
def published_command(
    name: Annotated[str | None, typer.Argument(help="One of them, in full; all of them otherwise.")] = None,
    json: Json = False,
    seed: IgnoredSeed = 0,
) -> None:
    """Redundant parameters of published models, from their configurations alone."""
    from attngeom.models.counts.redundancy import redundancy
    from attngeom.models.inspection import inspect_spec
    from attngeom.models.presets import PUBLISHED, published

    if name is not None:
        inspection = inspect_spec(published(name))
        return print_answer(json, inspection.to_json(), prose(inspection))
    counts = {each: redundancy(published(each)) for each in PUBLISHED}
    columns = ("model", "parameters", "redundant", "share", "in the layers", "standing")
    rows = [
        (
            each, f"{count.parameters:,}", f"≥ {count.total:,}", f"{100 * count.total / count.parameters:.3g} %",
            f"{count.layer_scope:,}", count.layers.standing,
        )
        for each, count in counts.items()
    ]  # fmt: skip
    records = {
        each: {"parameters": count.parameters, **count.to_json(), "layer_standing": count.layers.standing}
        for each, count in counts.items()
    }
    told = (
        "≥: the groups act; that no more is lost in the whole model is not proved. The standing is that of the layers."
    )
    return print_answer(json, {"models": records}, table(columns, rows, left=("model", "standing")), prose(told))


@group.command("compare")
def compare_command(
    one: Folder,
    other: Folder,
    level: Annotated[str, choice_option("--level", LEVELS, "auto, exact or rounding.")] = "auto",
    scope: Scope = "layer",
    tolerance: Annotated[float | None, typer.Option("--tolerance", help="Allowed mismatch of every head.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the recovered symmetry (safetensors).")] = None,
    every: Annotated[bool, flag("--all", "List everything that differs, not the worst five.")] = False,
    workers: Workers = None,
    scheduler: Scheduler = None,
    json: Json = False,
    seed: Seed = 0,
) -> int:
    """Whether two models compute the same function; one may be a GGUF file made from the other.

    Exact first, then within rounding; names the tensors that explain a difference.
    """
    if is_adapter(one) and is_adapter(other):
        refuse_options({"--level": level != "auto", "--scope": scope != "layer", "--tolerance": tolerance is not None})
        refuse_options({"--out": out is not None})
        return compare_adapter_folders(one, other, json, seed)
    if is_pair(one) and is_pair(other):
        refuse_options({"--out": out is not None}, PAIR)
        with _steps("layers") as step, _crew(workers, scheduler, "pair_comparison") as crew:
            options = {"level": level, "scope": scope, "tolerance": tolerance, "seed": seed, "progress": step}
            return towers.compare_pair_folders(one, other, every, json, **options, crew=crew)
    if out is not None and level == "auto":
        level = "rounding"
    files = [path for path in (one, other) if path.suffix.lower() == ".gguf"]
    with _steps("layers") as step, _crew(workers, scheduler, "comparison") as crew:
        sides: list[models.Model | Path] = [models.open_model(path) for path in (one, other) if path not in files]
        # With its folder the file needs no config.json of its own, and faults of converters are looked for.
        sides += files if len(files) == 1 else [models.open_model(path) for path in files]
        compare: Callable[..., models.ModelComparison] = models.compare_gguf if len(files) == 1 else models.compare
        options = {"level": level, "scope": scope, "tolerance": tolerance, "seed": seed, "progress": step}
        comparison = compare(*sides, **options, crew=crew)
    if out is not None:
        from attngeom.models.comparison import symmetry_bytes

        write_atomic(out, symmetry_bytes(comparison))
    print_answer(json, comparison.to_json(), prose(comparison.text(every=every)))
    return VERDICTS[comparison.same_function]


@group.command("fingerprint")
def fingerprint_command(
    path: Folder, workers: Workers = None, scheduler: Scheduler = None, json: Json = False, seed: Seed = 0
) -> None:
    """Print the exact fingerprint of each layer and of the model."""
    if is_adapter(path):
        return fingerprint_adapter_folder(path, seed, json)
    if is_pair(path):
        with _steps("layers") as step, _crew(workers, scheduler, "pair_comparison") as crew:
            return towers.fingerprint_pair_folder(path, seed, json, crew=crew, progress=step)
    with _steps("layers") as step, _crew(workers, scheduler, "fingerprints") as crew:
        prints = models.fingerprint(models.open_model(path), seed, crew=crew, progress=step)
    return print_answer(json, prints.to_json(), prose(prints))


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
    workers: Workers = None,
    scheduler: Scheduler = None,
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
    if is_pair(path):
        refuse_options({"--compact": compact, "--live-check": live_check, **_helpers(workers, scheduler)}, PAIR)
        return towers.canonicalize_pair(path, out, gauge, scope, dtype, json)
    with _steps("layers") as step, _crew(workers, scheduler, "writing") as crew:
        form = models.canonicalize(models.open_model(path), gauge, scope)  # type: ignore[arg-type]
        written = models.write_model(form, out, dtype, step, compact, live_check, crew)  # type: ignore[arg-type]
    return _report(written, {"gauge": gauge, "scope": scope, "compact": compact}, json)


@group.command("teleport")
def teleport_command(
    path: Folder,
    out: Out,
    condition: Annotated[float, typer.Option("--condition", help="Condition number of the random matrices.")] = 9.0,
    parts: Annotated[str, typer.Option("--parts", help=f"Of {PARTS.replace(',', ', ')}, residual.")] = PARTS,
    dtype: Dtype = "auto",
    live_check: Live = False,
    workers: Workers = None,
    scheduler: Scheduler = None,
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Write a random model with the same function."""
    if is_adapter(path):
        refuse_options({"--parts": parts != PARTS, "--dtype": dtype != "auto", "--live-check": live_check})
        return teleport_adapter_folder(path, out, condition, seed, json)
    chosen = [part.strip() for part in parts.split(",")]
    if is_pair(path):
        refuse_options({"--live-check": live_check, **_helpers(workers, scheduler)}, PAIR)
        return towers.teleport_pair_folder(path, out, seed, condition, chosen, dtype, json)
    with _steps("layers") as step, _crew(workers, scheduler, "writing") as crew:
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
            crew=crew,
        )
    return _report(written, {"seed": seed, "condition": condition, "parts": chosen}, json)


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
    refuse_alignment(target, path)
    if is_pair(target) and is_pair(path):
        refuse_options({"--live-check": live_check}, PAIR)
        return towers.align_pair_folders(target, path, out, scope, dtype, json)
    with _steps("layers") as step:
        aligned = models.align(models.open_model(target), models.open_model(path), scope)
        written = models.write_model(aligned, out, dtype, step, live=live_check)  # type: ignore[arg-type]
    return _report(written, {"target": str(target), "scope": scope}, json)


@group.command("lineage")
def lineage_command(
    child: Folder,
    parents: Annotated[list[Path], typer.Argument(help="Folders of models that it may have been made from.")],
    unused: Annotated[
        str | None, typer.Option("--unused", help="Ids of tokens that the parents never saw, as in 3,100-131.")
    ] = None,
    every: Annotated[bool, flag("--all", "List all layers, not the five least alike.")] = False,
    workers: Workers = None,
    scheduler: Scheduler = None,
    json: Json = False,
    seed: Seed = 0,
) -> int:
    """Whether a model was made from others, disguised or not.

    Content that no symmetry changes is compared, layer by layer; an estimate against pairs of known history.
    """
    from attngeom.models.ancestry.unused import parse_tokens

    ids = None if unused is None else parse_tokens(unused)
    places = [parent.resolve() for parent in parents]
    twice = next((parent for i, parent in enumerate(parents) if places[i] in places[:i]), None)
    if twice is not None:
        raise InputError(f"{twice} given twice as a parent; each parent once is required")
    with _steps("layers") as step, _crew(workers, scheduler, "ancestry.lineage") as crew:
        opened = [models.open_model(path) for path in (child, *parents)]
        lineage = models.lineage(opened[0], opened[1:], unused=ids, seed=seed, crew=crew, progress=step)
    print_answer(json, lineage.to_json(), prose(lineage.text(every=every)))
    return VERDICTS[lineage.verdict]


@group.command("merge")
def merge_command(
    paths: Annotated[
        list[Path], typer.Argument(help="Folders of models of one kind, or of LoRA adapters of one base.")
    ],
    out: Out,
    weights: Annotated[str | None, typer.Option("--weights", help="One number each, as in 0.7,0.3.")] = None,
    method: Annotated[
        str, choice_option("--method", METHODS, "linear, spherical (two), or task: --base + Σ.")
    ] = "linear",
    base: Annotated[Path | None, typer.Option("--base", help="For task: the model that all were tuned from.")] = None,
    align: Annotated[bool, typer.Option("--align/--no-align", help="Bring all into the gauge of the first.")] = True,
    scope: Annotated[str, choice_option("--scope", ("auto", *SCOPES), "Whether streams are rotated as well.")] = "auto",
    rank: Annotated[int | None, typer.Option("--rank", help="Adapters: cut the sum to this rank.")] = None,
    dtype: Dtype = "auto",
    json: Json = False,
    seed: IgnoredSeed = 0,
) -> None:
    """Put models together: align, average, check, write.

    LoRA adapters are added up in canonical form; --rank cuts the sum and says the exact error.
    """
    shares = None if weights is None else parse_numbers(weights, "weights")
    if all(map(is_adapter, paths)):
        refuse_options({"--method": method != "linear", "--base": base is not None, "--no-align": not align})
        refuse_options({"--scope": scope != "auto", "--dtype": dtype != "auto"})
        return merge_adapter_folders(paths, out, shares, rank, json)
    odd = next((path for path in paths if is_adapter(path)), None)
    if odd is not None:
        raise InputError(f"{odd} is a LoRA adapter and others are models; give models alone, or adapters alone")
    if rank is not None:
        raise InputError("--rank given for models; it is for LoRA adapters, leave it out")
    opened = [models.open_model(path) for path in paths]
    with _steps("layers") as step:
        written = models.write_merge(
            opened, out, shares, method=method, base=None if base is None else models.open_model(base),  # type: ignore[arg-type]
            aligned=align, scope=scope, precision=dtype, progress=step,  # type: ignore[arg-type]
        )  # fmt: skip
    record = written.to_json()
    shown = {"path": record["path"], "method": method, "weights": ", ".join(f"{w:.4g}" for w in written.weights)}
    for number, row in enumerate(written.inputs):
        words = (
            "as it is" if row["scope"] is None else f"aligned by {row['scope']}, mismatch {row['worst_mismatch']:.1e}"
        )
        shown[f"input {number + 1}"] = f"{row['path']}: {words}"
    least, middle, largest = written.norms
    shown["norms over those of the inputs"] = f"{least:.3f} to {largest:.3f}, median {middle:.3f}"
    shown |= {"outputs": written.outputs, "bytes": f"{written.bytes:,}"}
    return print_answer(json, record, pairs("written", shown))


def _report(written: Written, settings: dict[str, object], json: bool) -> None:
    record = {**written.to_json(), **settings}
    shown = {name: _words(value) for name, value in record.items() if name != "check"}
    check = record["check"]
    worst = f"{digits.error(check['worst_mismatch'])}, {digits.error(check['allowed'])} allowed"
    shown |= {"bytes": f"{written.bytes:,}", "worst mismatch to the input": worst}
    shown |= {"check by transformers": written.live.words}
    print_answer(json, record, pairs("written", shown))


def _words(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list | tuple) else value
