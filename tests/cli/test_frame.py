"""The frame of the command line: exit codes, encodings, closed pipes, full devices, crashes, files to write."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer._completion_shared import get_completion_script

from attngeom.cli import app, main
from attngeom.cli.app import make_printable
from attngeom.verification import Certificate
from tests.effort import choose, thorough
from tests.fuzz.targets import INPUTS

ROOT = Path(__file__).parents[2]
WEIGHTS = {
    "format": "attngeom/weights",
    "version": 1,
    "architecture": {"widths": [1, 1], "attention": [1], "tokens": 2},
    "tensors": {"layers.0.Q": [["1"]], "layers.0.K": [["2"]], "layers.0.V": [["3"]]},
}


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "w.json"
    path.write_text(json.dumps(WEIGHTS))
    return path


def program(*arguments, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **options.pop("env", {})}
    command = [sys.executable, "-m", "attngeom", *map(str, arguments)]
    return subprocess.run(command, env=environment, timeout=120, check=False, **options)


def test_every_command_is_registered_by_its_module():
    found = set()
    for name, (module, _) in app.COMMANDS.items():
        built = app.build_command(name)
        names = {info.name or info.callback.__name__ for info in built.registered_commands}
        names |= {group.name for group in built.registered_groups}
        assert name in names
        found |= {(other, module) for other in names}
    assert found == {(name, module) for name, (module, _) in app.COMMANDS.items()}


def test_summaries_fit_the_help(capfd):
    assert app.run(["--help"]) == 0
    shown = capfd.readouterr().out
    assert "..." not in shown.replace("[ARGS]...", "")
    assert all(summary in shown for _, summary in app.COMMANDS.values())


def test_help_loads_no_engine_and_no_command_loads_what_few_need():
    script = """
import sys
from attngeom.cli.app import build_command, run
from attngeom.cli.commands import COMMANDS
run(['--help'])
print('numpy' in sys.modules)
for name in COMMANDS:
    build_command(name)
slow = {'dask', 'matplotlib', 'scipy.linalg', 'scipy.optimize', 'scipy.sparse', 'sympy', 'torch'}
print(sorted(slow & set(sys.modules)))
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["False", "[]"]


@pytest.mark.parametrize("error", [ValueError("no\nsense"), AssertionError(), RecursionError("deep"), KeyError("k")])
def test_a_crash_is_no_verdict(error, monkeypatch, capfd):
    def crash(name):
        raise error

    monkeypatch.setattr(app, "build_command", crash)
    assert app.run(["info"]) == app.EXIT_INTERNAL
    message = capfd.readouterr().err
    assert message.count("\n") == 1
    assert "please report it" in message
    assert type(error).__name__ in message


def test_messages_are_cut(monkeypatch, capfd):
    assert app.run(["compare", "x" * 5000, "y"]) == 2
    assert len(capfd.readouterr().err) <= app.MESSAGE_CHARACTERS + 1


def test_interrupt_says_so(monkeypatch, capfd):
    def interrupt(name):
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "build_command", interrupt)
    assert app.run(["info"]) == 130
    assert capfd.readouterr().err == "attngeom: interrupted\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_full_device_is_no_verdict(unbuffered, monkeypatch):
    """Whether the device refuses at once or only what was kept back until the end."""
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with Path("/dev/full").open("w") as full:
        done = program("info", stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert "No space left" in done.stderr and done.stderr.count("\n") == 1


def test_closed_pipe_exits_like_other_tools():
    reader, writer = os.pipe()
    os.close(reader)
    done = program("info", stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert done.returncode == 141
    assert done.stderr == ""


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_closed_stream_takes_what_is_written_to_it(closed, monkeypatch, capfd):
    """The interpreter has None for a stream that was closed before it started."""
    monkeypatch.setattr(sys, closed, None)
    assert app.run(["info"]) == 0
    assert app.run(["compare", "nothing", "nothing"]) == 2
    printed = capfd.readouterr()
    assert (printed.out == "", printed.err == "") == (closed == "stdout", closed == "stderr")
    assert "does not exist" not in printed.out


ENCODINGS = ("ascii", "cp1252", "latin-1", "utf-8")


@pytest.mark.parametrize("encoding", ENCODINGS[: choose(1, 4)])
def test_any_encoding_of_stdout(encoding):
    dim = ["dim", "--widths", "2,2", "--attention", "1"]
    done = program(*dim, env={"PYTHONIOENCODING": encoding}, capture_output=True)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    assert done.stdout.decode(encoding)


def test_json_is_the_same_in_every_encoding(weights, monkeypatch):
    found = []
    for encoding in ENCODINGS:
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        assert app.run(["inspect", str(weights)]) == 0
        size = stream.tell()
        assert app.run(["inspect", str(weights), "--json"]) == 0
        stream.flush()
        text = stream.buffer.getvalue()
        assert size and text[:size].decode(encoding)
        found.append(json.loads(text[size:].decode(encoding)))
    assert all(record == found[0] for record in found)


def test_plain_text_replaces_signs():
    for text, encoding, shown in (("λ → ᵀ\ud800", "ascii", b"lambda -> ^T\\ud800"), ("×", "latin-1", b"\xd7")):
        stream = io.TextIOWrapper(io.BytesIO(), encoding)
        make_printable(stream)
        stream.write(text)
        stream.flush()
        assert stream.buffer.getvalue() == shown


@pytest.mark.parametrize("name", ["[bold]x.json", "[red].json", "\udcff.json"])
def test_hostile_names_are_shown_as_text(name, tmp_path, capfd, weights):
    assert app.run(["compare", str(tmp_path / name), str(weights)]) == 2
    assert capfd.readouterr().err.count("\n") == 1
    try:
        weights.rename(tmp_path / name)
    except OSError:
        pytest.skip("the file system refuses this name")
    assert app.run(["inspect", str(tmp_path / name)]) == 0


def test_an_interrupt_while_modules_are_loaded_is_one_line(monkeypatch, capfd):
    class Finder:
        @staticmethod
        def find_spec(name, path, target=None):
            if name == "attngeom.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "attngeom.cli.app")
    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == app.EXIT_INTERRUPTED
    assert capfd.readouterr().err == "attngeom: interrupted\n"


def test_markup_in_files_is_text(tmp_path, capfd):
    path = tmp_path / "cert.json"
    path.write_text(json.dumps(Certificate({"kind": "[red]x[/nope]"}, {}, {}).to_json()))
    assert app.run(["verify", str(path)]) == 1
    assert "[red]x[/nope]" in capfd.readouterr().out


class TestTargets:
    """What --out may replace."""

    def save(self, weights, out):
        return app.run(["canonicalize", str(weights), "--out", str(out)])

    def test_links_and_pipes_and_devices_stay(self, weights, tmp_path, capfd):
        target = tmp_path / "target.json"
        target.write_text("keep")
        link, pipe = tmp_path / "link.json", tmp_path / "pipe.json"
        link.symlink_to(target)
        os.mkfifo(pipe)
        for out in (link, pipe, tmp_path, Path("/dev/null"), tmp_path / "no" / "w.json", tmp_path / ("x" * 300)):
            assert self.save(weights, out) == 2
            assert capfd.readouterr().err.count("\n") == 1
        assert link.is_symlink() and target.read_text() == "keep" and pipe.is_fifo()
        assert not Path("/dev/null").is_file()

    def test_mode_of_a_file_stays(self, weights, tmp_path):
        out = tmp_path / "out.json"
        out.write_text("old")
        out.chmod(0o600)
        assert self.save(weights, out) == 0
        assert out.stat().st_mode & 0o777 == 0o600
        assert out.read_text() != "old"

    @pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
    def test_new_files_follow_the_umask(self, weights, tmp_path, mask, mode):
        out = tmp_path / "out.json"
        before = os.umask(mask)
        try:
            assert self.save(weights, out) == 0
        finally:
            os.umask(before)
        assert out.stat().st_mode & 0o777 == mode

    def test_nothing_is_computed_for_a_bad_target(self, tmp_path, capfd):
        assert app.run(["certify", str(tmp_path / "missing.json"), "--out", "/dev/null"]) == 2
        assert "device" in capfd.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["dim", "--widths", "2,2", "--attention", "99999999999999999999"],
        ["dim", "--widths", "9" * 5000, "--attention", "1"],
        ["dim", "--widths", "2,2", "--attention", "1", "--tokens", "9" * 30],
        ["dim", "--widths", "2,2", "--attention", "1", "--heads", "9" * 30],
        ["dim", "--widths", "2,2", "--attention", "1", "--value-width", "9" * 30],
        ["dim", "--table", "--widths", "1-1000000,1-1000000,1-1000000", "--attention", "1"],
        ["dim", "--table", "--widths", "1-" + "9" * 40, "--attention", "1"],
        ["dim", "--widths", "1-" + "9" * 40, "--attention", "1"],
        ["dim", "--widths", "2,2", "--attention", "1", "--seed", "-1"],
        ["invariants", "--d", "9" * 30, "--a", "1", "--count"],
        ["invariants", "--d", "1000", "--a", "1", "--count"],
        ["invariants", "--d", "2", "--a", "1", "--tokens", "1000"],
        ["implicitize", "--d", "9" * 30, "--a", "1", "--max-degree", "2"],
        ["implicitize", "--d", "1000", "--a", "1", "--max-degree", "2", "--highest-only", "--generators", "no.m2"],
        ["recover", "--plan", "--widths", "2,2", "--attention", "2", "--tokens", "1000", "--out", "absent.json"],
        ["dim", "--widths", "4,4", "--heads", "0"],
        ["certify", str(INPUTS / "coefficients_layer.json"), "--attention", "1000000"],
        ["certify", str(INPUTS / "coefficients_token_rank.json"), "--attention", "9" * 20],
    ],
    ids=lambda arguments: " ".join(arguments)[:60],
)
def test_absurd_numbers_are_one_line(arguments, capfd):
    assert app.run(arguments) == 2
    message = capfd.readouterr().err
    assert message.count("\n") == 1 and len(message) <= app.MESSAGE_CHARACTERS + 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["invariants", "--d", "3", "--a", "2", "--family", "slice-pencil", "--limit", "9" * 20],
        ["implicitize", "--d", "1000000", "--a", "1", "--max-degree", "2", "--complete"],
        ["dim", "--widths", ",".join(["3,5"] * 450), "--attention", "2"],
    ],
    ids=lambda arguments: " ".join(arguments)[:60],
)
def test_large_numbers_that_cost_little_are_answered(arguments, capfd):
    assert app.run([*arguments, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)


@pytest.mark.parametrize(
    ("shell", "line", "found"),
    [
        ("bash", "attngeom imp", "implicitize"),
        ("fish", "attngeom implicitize --", "--check"),
        *thorough(("zsh", "attngeom dim --pro", "--prove")),
    ],
)
def test_completion_as_shells_ask(shell, line, found):
    asked = {"_ATTNGEOM_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": line, "COMP_WORDS": line}
    asked |= {"COMP_CWORD": str(len(line.split()) - 1), "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    done = program(env=asked, capture_output=True, text=True)
    assert found in done.stdout
    assert shell != "fish" or all("\t" in line for line in done.stdout.splitlines())


def test_the_first_tab_in_zsh_completes():
    app._complete_at_once()
    script = get_completion_script(prog_name="attngeom", complete_var=app.COMPLETION, shell="zsh")
    assert script.endswith('attngeom\n[[ $funcstack[1] != _attngeom ]] || _attngeom_completion "$@"')


@pytest.mark.parametrize(
    ("command", "option", "found"),
    [
        ("dim", "--method sch", "schur"),
        ("canonicalize", "--gauge e", "echelon"),
        ("invariants", "--family sylv", "sylvester-resultant"),
        ("model compare", "--level ex", "exact"),
        ("reproduce", "--claim G-corollary-3.8", "G-corollary-3.8"),
    ],
)
def test_values_of_options_are_completed(command, option, found):
    context, line = None, ["attngeom", *command.split()]
    built = app.read_options(app.build_command(line[1]))
    for name, following in zip(line, [*line[1:], None]):
        context = built.make_context(name, [], parent=context, resilient_parsing=True)
        built = built.get_command(context, following) if following else built
    name, start = option.split()
    chosen = next(given for given in built.params if name in given.opts)
    assert [item.value for item in chosen.shell_complete(context, start)] == [found]


def test_summaries_of_completion_are_not_cut():
    for name in (None, "atlas", "model"):
        group = app.read_options(app.build_overview() if name is None else app.build_command(name))
        group = group if name is None else group.commands[name]
        assert all(not command.get_short_help_str().endswith("...") for command in group.commands.values())
