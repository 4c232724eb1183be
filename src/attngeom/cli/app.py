"""The frame of the command line: finds the commands, turns errors into one line and an exit code; any encoding.

Exit codes: 0 done or the positive verdict, 1 the negative verdict, 2 bad input, 3 undecided within the budget, 4 an
internal error, 130 interrupted, 141 the reader of the output went away. Codes 1 and 3 are verdicts and nothing else.

One door: commands that take idealised weights see whether they were given a model, an adapter or something else;
``attngeom compare A B`` of two folders is ``attngeom model compare A B``.
"""

from __future__ import annotations

import codecs
import errno
import importlib
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO

import typer
from typer.core import TyperGroup
from typer.main import get_command

import attngeom
from attngeom.cli import EXIT_INTERRUPTED
from attngeom.cli.commands import COMMANDS, EXAMPLES, GROUPS, suggest
from attngeom.cli.parameters import finish_helps, name_arguments, use_own_converters
from attngeom.errors import AttnGeomError, InputError
from attngeom.files import refuse_format
from attngeom.limits.shown import MESSAGE_CHARACTERS
from attngeom.limits.sizes import SAFETENSORS_HEADER

EXIT_NEGATIVE = 1
EXIT_BAD_INPUT = 2
EXIT_UNDECIDED = 3
EXIT_INTERNAL = 4
EXIT_CLOSED_PIPE = 141
VERDICTS = {True: 0, False: EXIT_NEGATIVE, None: EXIT_UNDECIDED}
"""Exit codes of yes, no and cannot be told."""
WEIGHTS_COMMANDS = ("compare", "inspect", "canonicalize", "teleport", "fingerprint")
ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors")
MODEL_FILES = ("config.json", "model.safetensors.index.json")
"""Files that stand for the folder of their model."""
Kind = Literal["weights", "model", "other"]
COMPLETION = "_ATTNGEOM_COMPLETE"
"""The variable by which a shell asks for completions."""
TRACEBACK = "ATTNGEOM_TRACEBACK"
"""Set this variable to see where an internal error comes from."""

use_own_converters()


class Interrupted(Exception):
    """The user stopped a command; the text says what was kept."""


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"attngeom {attngeom.__version__}")
        raise typer.Exit


class Overview(TyperGroup):
    """The program, whose help lists the commands under the headings of :data:`GROUPS`."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        widest = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), summary) for name, (_, summary) in commands.items()])


def _empty_app() -> typer.Typer:
    app = typer.Typer(
        name="attngeom",
        cls=Overview,
        help="Exact questions about the functions that attention networks compute.",
        epilog="Each command has its own help with examples: attngeom dim --help",
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )

    @app.callback()
    def root(
        version: Annotated[
            bool,
            typer.Option("--version", callback=_show_version, is_eager=True, metavar="", help="Print the version."),
        ] = False,
    ) -> None:
        """Exact questions about the functions that attention networks compute."""

    return app


@cache
def build_command(name: str) -> typer.Typer:
    """The application with this command, or this group of commands."""
    app = _empty_app()
    module = importlib.import_module(f"attngeom.cli.{COMMANDS[name][0]}")
    if hasattr(module, "group"):
        app.add_typer(module.group, name=name)
    else:
        app.command(name)(getattr(module, f"{name}_command"))
    finish_helps(app)
    return app


@cache
def build_overview() -> typer.Typer:
    """The application with the names of all commands and their line, and none of their code."""
    app = _empty_app()

    def stand_in(name: str) -> Callable[[], None]:
        def command() -> None:
            raise AssertionError(f"{name} was called without its module")

        return command

    for name, (_, summary) in COMMANDS.items():
        app.command(name, help=summary, short_help=summary)(stand_in(name))
    return app


@cache
def read_options(app: typer.Typer) -> Callable[..., object]:
    """What is called: the options of an application are read once in a process, which may run many command lines."""
    command = get_command(app)
    name_arguments(command)
    return command


def _called(arguments: list[str]) -> str | None:
    """The command of a command line, or of the line that a shell wants completed."""
    words = arguments
    if COMPLETION in os.environ:
        # A description on two lines would be two completions.
        os.environ["COLUMNS"] = "1000"
        line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
        words = line.split()[1:]
    name, inner = ([word for word in words if not word.startswith("-")] + [None, None])[:2]
    if name is not None and name not in COMMANDS and COMPLETION not in os.environ:
        raise InputError(f"no command {name[:40]!r}; {suggest(name)}")
    is_group = any(key.startswith(f"{name} ") for key in EXAMPLES)
    if is_group and inner is not None and f"{name} {inner}" not in EXAMPLES and COMPLETION not in os.environ:
        raise InputError(f"no command {f'{name} {inner}'[:40]!r}; {suggest(inner, str(name))}")
    return name if name in COMMANDS else None


def _help_of(error: Any, arguments: list[str]) -> str:
    """The command line of the help that says what was required."""
    context = getattr(error, "ctx", None)
    path = "attngeom" if context is None else context.command_path
    name = _called(arguments) if path == "attngeom" else None
    return f"{path} --help" if name is None else f"{path} {name} --help"


def _complete_at_once() -> None:
    """With the script of typer the first Tab in zsh only loads the script; then it is to complete as well."""
    from typer import _completion_shared

    scripts = _completion_shared._completion_scripts
    script = scripts["zsh"].rstrip()
    if script.endswith("compdef %(complete_func)s %(prog_name)s"):
        scripts["zsh"] = script + '\n[[ $funcstack[1] != _%(prog_name)s ]] || %(complete_func)s "$@"\n'


def lead(arguments: list[str]) -> list[str]:
    """The command line with ``model`` before a command that was given models or adapters.

    >>> lead(["compare", "a.json", "b.json"])
    ['compare', 'a.json', 'b.json']
    """
    place = next((i for i, word in enumerate(arguments) if not word.startswith("-")), None)
    if place is None or {"-h", "--help"} & set(arguments):
        return arguments
    if arguments[place] == "model":
        files = (path for path in map(Path, _given(arguments[place + 2 :])) if path.is_file())
        odd = next(filter(_is_idealised, files), None)
        if odd is not None:
            raise InputError(f"{odd.name[:60]} has idealised weights; leave out the word model, or give a model")
    if arguments[place] not in WEIGHTS_COMMANDS:
        return arguments
    paths = [Path(word) for word in _given(arguments[place + 1 :])]
    kinds = {path: kind_of(path) for path in paths}
    models = [path for path, kind in kinds.items() if kind == "model"]
    if not models:
        return arguments
    odd = next((path for path, kind in kinds.items() if kind == "weights"), None)
    if odd is not None:
        known = models[0].name[:60] or models[0]
        raise InputError(f"{odd.name[:60]} is no model, {known} is one; give two of one kind")
    return [*arguments[:place], "model", *arguments[place:]]


def _given(words: list[str]) -> list[str]:
    """Words that name something that is there, and are not the value of an option."""
    return [
        word
        for i, word in enumerate(words)
        if not word.startswith("-") and not (i and words[i - 1] in ("--out", "--inputs", "--targets"))
    ]


def kind_of(path: Path) -> Kind:
    """What lies at a path; InputError, with the next step, for what is not read."""
    if path.is_dir() or (path.is_file() and path.suffix.lower() == ".gguf"):
        return "model"
    if path.is_file():
        refuse_format(path)
    if path.name in (*MODEL_FILES, *ADAPTER_FILES) and path.is_file():
        return "model"
    if path.suffix == ".safetensors" and path.is_file():
        return "weights" if _is_idealised(path) or not (path.parent / "config.json").is_file() else "model"
    return "weights" if path.is_file() else "other"


def _is_idealised(path: Path) -> bool:
    """Whether a file says at its begin that it has weights of an idealised network."""
    try:
        with path.open("rb") as stream:
            start = stream.read(8)
            if start.lstrip().startswith(b"{"):
                return b'"attngeom/' in start + stream.read(200)
            size = int.from_bytes(start, "little")
            header = json.loads(stream.read(size)) if size <= SAFETENSORS_HEADER else {}
    except (OSError, ValueError):
        return False
    about = header.get("__metadata__") if isinstance(header, dict) else None
    return isinstance(about, dict) and "attngeom" in about


def describe(error: object) -> str:
    """A message as one line of at most :data:`MESSAGE_CHARACTERS` characters; long paths give way before its end does.

    >>> describe("/a" + 200 * "/long" + "/folder/file: give a file")
    '…/file: give a file'
    """
    words = str(error).split()
    if len(" ".join(words)) > MESSAGE_CHARACTERS:
        words = [f"…{os.sep}{Path(x).name}" if len(Path(x).parts) > 2 else x for x in words]
    text = " ".join(words)
    return text if len(text) <= MESSAGE_CHARACTERS else text[: MESSAGE_CHARACTERS - 1] + "…"


def _fail(message: object, code: int) -> int:
    print(describe(f"attngeom: {message}"), file=sys.stderr)
    return code


def _open_closed_streams() -> None:
    """What goes to a stream that the caller closed goes nowhere, and no file that is opened later takes its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def _discard_output() -> None:
    """What is still to be written to stdout goes nowhere: at exit the interpreter would try, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _report_system_error(error: OSError) -> int:
    if error.errno == errno.EPIPE:
        _discard_output()
        return EXIT_CLOSED_PIPE
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()
    where = f"{error.filename}: " if error.filename else ""
    return _fail(f"{where}{error.strerror or error}; give other files, or a place with room", EXIT_BAD_INPUT)


def run(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code; errors of the user become one line on stderr."""
    arguments = sys.argv[1:] if arguments is None else arguments
    _open_closed_streams()
    make_printable(sys.stdout, sys.stderr)
    try:
        with warnings.catch_warnings():
            # Overflow and the like are looked for in results, and told in the words of the command.
            warnings.simplefilter("ignore", RuntimeWarning)
            arguments = lead(arguments)
            name = _called(arguments)
            if not {"--install-completion", "--show-completion"}.isdisjoint(arguments):
                _complete_at_once()
            app = build_overview() if name is None else build_command(name)
            code = read_options(app)(args=arguments, prog_name="attngeom", standalone_mode=False)
        sys.stdout.flush()
        # An interrupt of the command itself comes back as this code, without a word.
        if code == EXIT_INTERRUPTED:
            raise KeyboardInterrupt
    except AttnGeomError as error:
        return _fail(error, EXIT_BAD_INPUT)
    except typer.TyperException as error:
        return _fail(f"{error.format_message()} (see {_help_of(error, arguments)})", EXIT_BAD_INPUT)
    except MemoryError:
        return _fail("out of memory; give a smaller problem or a budget", EXIT_BAD_INPUT)
    except OSError as error:
        return _report_system_error(error)
    except SystemExit:
        # In this mode typer exits by itself for two reasons: a completion was printed, or the pipe is closed.
        if COMPLETION in os.environ:
            raise
        _discard_output()
        return EXIT_CLOSED_PIPE
    except Interrupted as error:
        return _fail(f"interrupted; {error}", EXIT_INTERRUPTED)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", EXIT_INTERRUPTED)
    except Exception as error:
        if os.environ.get(TRACEBACK):
            traceback.print_exc()
        what = f"{type(error).__name__}: {error}"
        return _fail(f"internal error, please report it with the command and its files: {what}", EXIT_INTERNAL)
    return code if isinstance(code, int) else 0


PLAIN = {
    "→": "->", "↦": "|->", "⇒": "=>", "⇔": "<=>", "≤": "<=", "≥": ">=", "≠": "!=", "≈": "~", "±": "+-", "−": "-",
    "×": "x", "⊗": "(x)", "⊕": "(+)", "·": "*", "∘": "o", "…": "...", "–": "-", "—": "-", "’": "'", "“": '"', "”": '"',
    "√": "sqrt", "∞": "inf", "∈": "in", "∀": "for all", "Σ": "Sum", "Π": "Prod", "Λ": "Lambda", "ᵀ": "^T", "⁻": "^-",
    "⁰": "^0", "¹": "^1", "²": "^2", "³": "^3", "⁴": "^4", "⁵": "^5", "⁶": "^6", "⁷": "^7", "⁸": "^8", "⁹": "^9",
    "₀": "_0", "₁": "_1", "₂": "_2", "₃": "_3", "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "eps",
    "θ": "theta", "λ": "lambda", "μ": "mu", "ν": "nu", "ρ": "rho", "σ": "sigma", "τ": "tau", "φ": "phi", "ω": "omega",
    "‖": "|", "§": "section ", "✓": "yes", "✗": "no", "│": "|", "─": "-", "╭": "+", "╮": "+", "╰": "+", "╯": "+",
}  # fmt: skip
HANDLER = "attngeom-plain"


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(PLAIN.get(letter, f"\\u{ord(letter):04x}") for letter in wrong), error.end


codecs.register_error(HANDLER, _plain)


def make_printable(*streams: TextIO) -> None:
    """Let streams take every text, whatever their encoding: also halves of characters, as file names can have them."""
    for stream in streams:
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=HANDLER)
