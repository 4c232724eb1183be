"""``attngeom canonicalize``, ``teleport`` and ``fingerprint``: one representative of a fiber, another one, a hash."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attngeom.canonical import fingerprint
from attngeom.canonical.answer import OBJECTIVES, Canonicalization, canonicalize, from_form, teleport
from attngeom.canonical.compact import is_compact, read_compact, write_compact
from attngeom.canonical.form import GAUGES
from attngeom.cli.options import IgnoredSeed, Json, Seed, WeightsPath, check_choice, choice_option, file_option, flag
from attngeom.cli.output import print_answer, titled
from attngeom.errors import InputError
from attngeom.exact.domains import Array
from attngeom.interop import read_weights, write_weights
from attngeom.interop.arrays import read_array
from attngeom.network import Weights

Out = Annotated[Path, file_option("--out", "Where to write the result.")]


def check_moved(start: Weights | None, moved: Weights) -> None:
    """InputError if rounded weights are told apart from those they were made of: a second opinion before writing."""
    if start is None or moved.domain.is_exact:
        return
    from attngeom.comparison import compare

    if compare(start, moved).same_function is False:
        raise InputError(
            "weights whose function would change in floats given; nothing is written, give weights of more even sizes"
        )


def canonicalize_command(
    weights: WeightsPath,
    out: Out,
    compact: Annotated[bool, flag("--compact", "Store the canonical coordinates only.")] = False,
    gauge: Annotated[
        str | None, choice_option("--gauge", GAUGES, "echelon or balanced (floats; their default).")
    ] = None,
    json: Json = False,
    seed: IgnoredSeed = 0,
) -> None:
    """Write the canonical representative of the weights; a compact file is restored to weights."""
    chosen = None if gauge is None else check_choice(gauge, GAUGES, "gauge")
    start = None if is_compact(weights) else read_weights(weights)
    canonical = from_form(read_compact(weights), chosen) if start is None else canonicalize(start, chosen)
    if compact:
        if not isinstance(canonical, Canonicalization):
            raise InputError("--compact given; compact files hold lightning, softmax and sigmoid without options")
        write_compact(canonical.form, out)
    else:
        check_moved(start, canonical.weights)
        write_weights(canonical.weights, out)
    before, after = weights.stat().st_size, out.stat().st_size
    sizes = {"bytes_before": before, "bytes_after": after, "bytes_saved": before - after}
    record = {**canonical.to_json(), **sizes, "compact": compact, "out": str(out)}
    size = f"{before:,} before, {after:,} after"
    print_answer(json, record, titled(canonical.rows(), bytes=size, written_to=out))


def teleport_command(
    weights: WeightsPath,
    out: Out,
    objective: Annotated[
        str, choice_option("--objective", OBJECTIVES, "random, norm (smallest weights) or gradient (largest gradient).")
    ] = "random",
    inputs: Annotated[
        Path | None, typer.Option("--inputs", help="Inputs N×d×t for the gradient (.npy, .json).")
    ] = None,
    targets: Annotated[Path | None, typer.Option("--targets", help="Targets N×d_out×t for the gradient.")] = None,
    budget: Annotated[float, typer.Option("--budget", help="Largest weight norm, relative to the present one.")] = 1.0,
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Move the weights along their fiber: by a random symmetry, to the least norm, or to a larger gradient."""
    goal = check_choice(objective, OBJECTIVES, "objective")
    start = read_weights(weights)
    data: tuple[Array | None, Array | None] = (None, None)
    if goal == "gradient":
        if inputs is None or targets is None:
            raise InputError("--objective gradient given without data; give --inputs and --targets")
        data = read_array(inputs)[0], read_array(targets)[0]
    moved = teleport(start, goal, seed, *data, budget)
    check_moved(start, moved.weights)
    write_weights(moved.weights, out)
    print_answer(json, {**moved.to_json(), "out": str(out)}, titled(moved.rows(), out=out))


def fingerprint_command(weights: WeightsPath, json: Json = False, seed: IgnoredSeed = 0) -> None:
    """Print the fingerprint of exact weights: the digest of their canonical form, the same on the whole orbit.

    A folder of a model, or of a LoRA adapter, has one as well: see attngeom model fingerprint --help.
    """
    answer = fingerprint(read_weights(weights))
    print_answer(json, answer.to_json(), titled(answer.rows()))
