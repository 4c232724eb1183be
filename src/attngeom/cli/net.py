"""``attngeom net``: the dimension and the symmetries of a network that somebody wrote."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer

from attngeom.cli import options
from attngeom.cli.app import EXIT_UNDECIDED
from attngeom.cli.options import parse_list
from attngeom.cli.output import print_answer, titled, working
from attngeom.errors import AttnGeomError, InputError
from attngeom.programs import Program, trace
from attngeom.rank.analysis import analyze, certify_network
from attngeom.verification import write_certificate

FILE_AND_NAME = typer.Argument(metavar="FILE.py:NAME", help="A Python file, which is run, and the network in it.")
CERTIFICATE = "Prove, and write a certificate for attngeom verify to this file."


def net_command(
    network: Annotated[str, FILE_AND_NAME],
    inputs: options.InputShapes = None,
    weights: options.WeightsName = "weights",
    last_token: options.LastToken = False,
    prove: Annotated[bool, options.flag("--prove", "Exit with 3 unless the dimension is proven.")] = False,
    plot: Annotated[
        Path | None, options.file_option("--plot", "Draw the weights as a bar into this file (.png, .svg or .pdf).")
    ] = None,
    certificate: Annotated[Path | None, options.file_option("--certificate", CERTIFICATE, "--out")] = None,
    json: options.Json = False,
    seed: options.Seed = 0,
) -> int:
    """The dimension of the functions of your own network, its symmetries with proofs, and what follows from them.

    FILE.py is your own code and is run as such: do not give files that you would not run. NAME is a function
    f(weights, x) of NumPy arrays, or of JAX if `weights` holds arrays of JAX, or a module of PyTorch, or a class that
    makes one. `weights` in the same file holds the shapes of the weights by name, and `inputs` the shapes of the
    inputs. Integer arrays among the inputs stay fixed. What the file prints goes to stderr.
    """
    if certificate is not None:
        options.check_stored_seed(seed)
    loaded, content, given = _read(network, inputs or (), weights)
    with working("tracing") as report, redirect_stdout(sys.stderr):
        answer = analyze(
            loaded,
            *given,
            weights=content.get(weights),
            output=last_row if last_token else None,
            seed=seed,
            progress=report,
        )
    if certificate is not None:
        write_certificate(certify_network(answer), certificate)
    if plot is not None:
        answer.plot().savefig(plot)
    print_answer(json, answer.to_json(), titled(answer.rows()))
    return EXIT_UNDECIDED if prove and not answer.is_proven else 0


def last_row(y: Any) -> Any:
    """The last row of an output, in every batch."""
    return y[..., -1, :] if y.ndim > 1 else y[-1:]


def inputs_of(content: dict[str, Any]) -> Sequence[Any]:
    """The name ``inputs`` of a file: the inputs one after the other; one shape alone is that of one input."""
    given = content.get("inputs", ())
    is_shape = isinstance(given, tuple) and bool(given) and all(isinstance(n, int) for n in given)
    if not isinstance(given, (tuple, list)):
        raise InputError(f"inputs = {str(given)[:40]!r} found in the file; a list is required, such as [(3, 2)]")
    return [given] if is_shape else given


def trace_network(
    text: str, shapes: Sequence[str] = (), weights: str = "weights", last_token: bool = False, seed: int = 0
) -> Program:
    """The program of FILE.py:NAME, with the ``weights`` and ``inputs`` of the file, or inputs of the given shapes."""
    network, content, given = _read(text, shapes, weights)
    output = last_row if last_token else None
    with redirect_stdout(sys.stderr):
        return trace(network, *given, weights=content.get(weights), output=output, seed=seed)


def _read(text: str, shapes: Sequence[str], weights: str) -> tuple[Any, dict[str, Any], Sequence[Any]]:
    """The network of FILE.py:NAME, everything that the file defines, and the inputs."""
    network, content = load_network(text)
    if weights not in content and weights != "weights":
        raise InputError(f"--weights {weights[:40]} given, a name that the file has not; name its dictionary of shapes")
    return network, content, [tuple(parse_list(shape, "input")) for shape in shapes] or inputs_of(content)


def load_network(text: str) -> tuple[Any, dict[str, Any]]:
    """The network of FILE.py:NAME, and everything that the file defines; a class is made without arguments.

    The file imports its neighbours, as ``python FILE.py`` would; they hide no installed package.
    """
    path, colon, name = text.rpartition(":")
    if not colon or not name.isidentifier():
        raise InputError(f"{Path(text).name[:60]!r} given; FILE.py:NAME is required, such as block.py:attention")
    file = Path(path)
    if not file.is_file():
        raise InputError(f"the file {path[-80:]!r} does not exist; give the path of a Python file before the colon")
    if (folder := str(file.resolve().parent)) not in sys.path:
        sys.path.append(folder)
    try:
        with redirect_stdout(sys.stderr):
            content = runpy.run_path(str(file))
    except (AttnGeomError, KeyboardInterrupt):
        raise
    except BaseException as error:
        what = " ".join(str(error).split())[:90]
        raise InputError(f"{file.name} raised {type(error).__name__} when it was run: {what}; mend the file") from None
    if name not in content:
        names = [key for key, value in content.items() if callable(value) and not key.startswith("_")]
        raise InputError(f"{file.name} has no {name}; it has {', '.join(names)[:80] or 'no functions'}")
    loaded = content[name]
    if isinstance(loaded, type):
        try:
            with redirect_stdout(sys.stderr):
                loaded = loaded()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever the class raises
            what = " ".join(f"{type(error).__name__}: {error}".split())[:80]
            raise InputError(f"the class {name} cannot be made without arguments ({what}); name a module") from None
    return loaded, content
