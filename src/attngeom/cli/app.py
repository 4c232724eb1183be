"""The frame of the command line: finds the commands, turns errors into one line and an exit code; any encoding.

Exit codes: 0 done or the positive verdict, 1 the negative verdict, 2 bad input, 3 undecided within the budget, 4 an
internal error, 130 interrupted, 141 the reader of the output went away. Codes 1 and 3 are verdicts and nothing else.

``COMMANDS`` tells which module of this package holds a command and what it does, so that a call imports only the module
that it needs, and the help of the program none. The command NAME is the function NAME_command of its module, or a
``group`` of commands.
"""

from __future__ import annotations

import codecs
import difflib
import errno
import importlib
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup
from typer.main import get_command

import attngeom
from attngeom.cli import EXIT_INTERRUPTED
from attngeom.cli.door import lead
from attngeom.cli.examples import finish_helps, name_arguments
from attngeom.cli.values import use_own_converters
from attngeom.errors import AttnGeomError, InputError
from attngeom.limits.shown import MESSAGE_CHARACTERS

EXIT_NEGATIVE = 1
EXIT_BAD_INPUT = 2
EXIT_UNDECIDED = 3
EXIT_INTERNAL = 4
EXIT_CLOSED_PIPE = 141
VERDICTS = {True: 0, False: EXIT_NEGATIVE, None: EXIT_UNDECIDED}
"""Exit codes of yes, no and cannot be told."""
COMPLETION = "_ATTNGEOM_COMPLETE"
"""The variable by which a shell asks for completions."""
TRACEBACK = "ATTNGEOM_TRACEBACK"
"""Set this variable to see where an internal error comes from."""

GROUPS = {
    "Weights": {
        "compare": ("compare", "Whether two checkpoints compute the same function."),
        "canonicalize": ("canonicalize", "Write one representative for all weights of a function."),
        "teleport": ("canonicalize", "Move weights along the fiber without changing the function."),
        "fingerprint": ("fingerprint", "One line that all weights of a function share."),
        "inspect": ("inspect", "Where a checkpoint lies: stratum, ranks, fiber, hypotheses."),
        "heads": ("heads", "Whether the heads of a layer are unique; find them."),
        "recover": ("recover", "Find weights from coefficients or from queries."),
    },
    "Functions": {
        "dim": ("dim", "How many dimensions the functions of a network have."),
        "certify": ("certify", "Whether one attention layer computes given coefficients."),
        "verify": ("verify", "Recheck a certificate from scratch."),
        "prove": ("prove", "Write a certificate as a theorem that Coq checks."),
    },
    "Equations": {
        "invariants": ("invariants", "The equations that hold on all attention layers."),
        "implicitize": ("implicitize", "All equations of an attention variety, degree by degree."),
    },
    "Learning": {
        "lambda": ("lambda_command", "How singular a checkpoint is for learning: (λ, m), exactly."),
        "laws": ("laws", "What gradient flow conserves, and whether that is all."),
        "track": ("track", "A training run: ranks, strata, what drifts that should not."),
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
    "track": ("training", "run", "trajectory", "checkpoints"),
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
    name = next((word for word in words if not word.startswith("-")), None)
    if name is not None and name not in COMMANDS and COMPLETION not in os.environ:
        raise InputError(f"no command {name[:40]!r}; {suggest(name)}")
    return name if name in COMMANDS else None


def _help_of(error: Any, arguments: list[str]) -> str:
    """The command line of the help that says what was required."""
    context = getattr(error, "ctx", None)
    path = "attngeom" if context is None else context.command_path
    name = _called(arguments) if path == "attngeom" else None
    return f"{path} --help" if name is None else f"{path} {name} --help"


def suggest(word: str) -> str:
    """What to type in place of a word that is no command.

    >>> suggest("llc"), suggest("comapre")
    ('did you mean: attngeom lambda', 'did you mean: attngeom compare')
    >>> suggest("banana")
    'type attngeom --help for all commands'
    """
    meant = {other: name for name, others in MEANT.items() for other in others} | {name: name for name in COMMANDS}
    near = difflib.get_close_matches(word.lower().replace("_", "-"), meant, n=1, cutoff=0.75)
    return f"did you mean: attngeom {meant[near[0]]}" if near else "type attngeom --help for all commands"


def _complete_at_once() -> None:
    """With the script of typer the first Tab in zsh only loads the script; then it is to complete as well."""
    from typer import _completion_shared

    scripts = _completion_shared._completion_scripts
    script = scripts["zsh"].rstrip()
    if script.endswith("compdef %(complete_func)s %(prog_name)s"):
        scripts["zsh"] = script + '\n[[ $funcstack[1] != _%(prog_name)s ]] || %(complete_func)s "$@"\n'


def describe(error: object) -> str:
    """A message as one line of at most :data:`MESSAGE_CHARACTERS` characters."""
    text = " ".join(str(error).split())
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
