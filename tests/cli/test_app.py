"""Every command has help and the shared options, and a call imports only the modules of its command."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from attngeom.cli.app import build_command, read_options, run
from attngeom.cli.commands import COMMANDS, GROUPS, MEANT

WITHOUT_CHANCE = {
    *("canonicalize", "coefficients", "demo", "explore", "fingerprint", "forward", "import", "info", "invariants"),
    *("model merge", "model published", "prove"),
    *("atlas export", "atlas merge", "atlas plot", "atlas show", "atlas summary", "model align", "model canonicalize"),
}
"""Commands in which no random choice is made."""


def commands() -> Iterator[tuple[str, Any]]:
    """Every command and command of a group: what to type, and its options."""
    for name in COMMANDS:
        command = read_options(build_command(name)).commands[name]
        below = getattr(command, "commands", {})
        yield from ((f"{name} {other}", below[other]) for other in below)
        if not below:
            yield name, command


@pytest.mark.parametrize("line, command", list(commands()), ids=lambda x: x if isinstance(x, str) else "")
def test_every_command_has_help_and_the_shared_options(line, command, capsys):
    """Scripts may pass --seed to every command; a help shows it only where something is random."""
    assert run([*line.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    options = {option for param in command.params for option in param.opts}
    assert {"--json", "--seed"} <= options and "--json" in shown
    assert ("--seed" in shown) == (line not in WITHOUT_CHANCE)


@pytest.mark.parametrize(
    "word, command",
    [
        ("dimension", "dim"),
        ("llc", "lambda"),
        ("Compare", "compare"),
        ("implicitise", "implicitize"),
        ("gui", "explore"),
        ("model kinship", "model lineage (see attngeom model --help)"),
        ("atlas sweep", "atlas run (see attngeom atlas --help)"),
    ],
)
def test_near_misses_are_answered_with_what_to_type(word, command, capsys):
    assert run([*word.split(), "--json"]) == 2
    assert capsys.readouterr().err == f"attngeom: no command {word!r}; did you mean: attngeom {command}\n"


def test_words_that_are_meant_lead_to_commands_and_to_one_only():
    words = [word for others in MEANT.values() for word in others]
    assert len(words) == len(set(words)) and not set(words) & set(COMMANDS)
    assert set(MEANT) <= {line for line, _ in commands()} | set(COMMANDS)


@pytest.mark.parametrize(
    "line, told",
    [
        ("dim --width 3", "attngeom dim --help"),
        ("dim --tokens", "attngeom dim --help"),
        ("model compare a", "attngeom model compare --help"),
        ("model compar", "attngeom model --help"),
        ("--nonsense", "attngeom --help"),
    ],
)
def test_errors_of_options_name_the_help_of_their_command(line, told, capsys):
    assert run(line.split()) == 2
    message = capsys.readouterr().err
    assert message.endswith(f"(see {told})\n") and message.count("\n") == 1


def test_the_help_lists_every_command_below_one_heading(capsys):
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert [name for group in GROUPS.values() for name in group] == list(COMMANDS)
    assert all(f"\n{title}:\n" in shown for title in GROUPS)
    assert all(shown.count(f"\n  {name} ") == 1 for name in COMMANDS)


def test_version_does_not_load_the_engines():
    script = (
        "import sys; from attngeom.cli.app import run; run(['info', '--json']);"
        " print('attngeom.comparison' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
