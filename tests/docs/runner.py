"""Run the blocks of one page in one folder, in this process."""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import os
import re
import runpy
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import attngeom_check

from tests.docs.blocks import CUT, ROOT, Block, Command, find_blocks, matches
from tests.example_files import copy_examples
from tests.golden.runner import call

LANGUAGES = {"console", "python", "json", "toml", "text", "math", "bibtex", "mermaid"}
"""What a block may be: only ``console`` and ``python`` are run, and nothing is without a language."""
OUTSIDE = {"make", "pip", "pipx", "uv", "dask", "marimo"}
"""Commands of other programs, which are shown without output and not run."""
DIRECTIVE = re.compile(r"\{[\w:-]+\}")
VALUE = re.compile(r"#\s*→\s*(.*)$")


class Difference(AssertionError):
    """A page shows what is not so."""


@contextlib.contextmanager
def page_folder(text: str) -> Iterator[Path]:
    """A folder for the commands of a page: the example files, or nothing where the page makes them itself."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "demo"
        if "$ attngeom demo" in text:
            folder.mkdir()
        else:
            copy_examples(folder)
        (folder / "examples").symlink_to(ROOT / "examples")
        try:
            os.chdir(folder)
            yield folder
        finally:
            os.chdir(before)


def run_command(command: Command) -> list[str]:
    """The lines that a command prints; commands of other programs print nothing here."""
    words = shlex.split(command.line)
    if words[0] == "attngeom":
        redirect = words[-2] == ">" if len(words) > 2 else False
        arguments = words[1:-2] if redirect else words[1:]
        code, out, err = call(arguments)
        if code != command.code:
            raise Difference(f"line {command.number}: exit code {code} instead of {command.code}: {err.strip()}")
        if redirect:
            Path(words[-1]).write_text(out)
            out = ""
        return (out + err).splitlines()
    if words[0] == "python" and len(words) > 1 and words[1].startswith("examples/"):
        with contextlib.redirect_stdout(io.StringIO()) as out, mock.patch.object(sys, "argv", words[1:]):
            runpy.run_path(words[1], run_name="__main__")
        return out.getvalue().splitlines()
    if words[0] == "attngeom-check":
        limit = sys.get_int_max_str_digits()
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = attngeom_check.main(words[1:])
        # The checker has a process of its own; here its limit would stay for other tests.
        sys.set_int_max_str_digits(limit)
        if code != command.code:
            raise Difference(f"line {command.number}: exit code {code} instead of {command.code}")
        return out.getvalue().splitlines()
    if words[0] == "cd" and len(words) == 2:
        os.chdir(words[1])
        return []
    if words[0] == "cat" and len(words) == 2:
        return Path(words[1]).read_text().splitlines()
    if words[0] == "cp" and len(words) == 3:
        shutil.copy(words[1], words[2])
        return []
    if words[0] in OUTSIDE and not command.shown:
        return []
    raise Difference(f"line {command.number}: {command.line[:60]!r} is no command of attngeom and cannot be run")


def run_python(block: Block, namespace: dict[str, Any]) -> None:
    """Run the statements of a block; the value of an expression is compared with what ``# →`` says of it."""
    if block.text.startswith(">>> "):
        test = doctest.DocTestParser().get_doctest(block.text, namespace, "block", None, block.number - 1)
        report = io.StringIO()
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS, verbose=False)
        if runner.run(test, out=report.write, clear_globs=False).failed:
            raise Difference(report.getvalue())
        namespace.update(test.globs)
        return
    lines = block.text.splitlines()
    printed = io.StringIO()
    for statement in ast.parse(block.text).body:
        number = block.number + statement.lineno - 1
        said = VALUE.search(lines[(statement.end_lineno or 1) - 1])
        with contextlib.redirect_stdout(printed):
            if isinstance(statement, ast.Expr):
                value = eval(compile(ast.Expression(statement.value), f"line {number}", "eval"), namespace)
                found = {str(value), repr(value), printed.getvalue().strip()}
                if said is not None and said[1].strip() not in found:
                    raise Difference(f"line {number}: {said[1].strip()!r} shown, {value!r} found")
            else:
                exec(compile(ast.Module([statement], []), f"line {number}", "exec"), namespace)
                if said is not None:
                    raise Difference(f"line {number}: a value is shown behind what is no expression")
        printed.seek(0)
        printed.truncate()


def check_page(text: str, slow: bool = False, pictures: Path | None = None) -> list[str]:
    """What differs between a page and its runs, in words; slow blocks only if wanted. Pictures it drew are copied."""
    blocks = find_blocks(text)
    wrong = []
    for block in blocks:
        if block.language not in LANGUAGES and not DIRECTIVE.fullmatch(block.language):
            wrong.append(f"line {block.number}: a block of language {block.language!r}; one of {sorted(LANGUAGES)}")
    runnable = [block for block in blocks if block.language in ("console", "python") or block.file is not None]
    namespace: dict[str, Any] = {}
    if not runnable:
        return wrong
    with page_folder(text):
        for block in runnable:
            if (block.is_slow and not slow) or not block.is_possible:
                continue
            try:
                if block.file is not None:
                    Path(block.file).write_text(block.text, encoding="utf-8")
                    continue
                if block.language == "python":
                    run_python(block, namespace)
                    continue
                for command in block.commands():
                    printed = run_command(command)
                    if not matches(list(command.shown), printed):
                        wrong.append(_report(command, printed))
            except Difference as error:
                wrong.append(str(error))
            except Exception as error:
                wrong.append(f"line {block.number}: {type(error).__name__}: {error}")
        for drawn in Path.cwd().glob("*.svg") if pictures is not None else ():
            shutil.copy(drawn, str(pictures))
    return wrong


def _report(command: Command, printed: list[str]) -> str:
    return "\n".join([f"line {command.number}: {command.line}", *(f"  | {line}" for line in printed)])


def with_outputs(text: str) -> str:
    """The page with the output of every fast command as it is now; blocks with cuts stay as they are."""
    pieces, place, namespace = [], 0, {}
    lines = text.splitlines()
    with page_folder(text):
        for block in find_blocks(text):
            if not block.is_possible:
                continue
            if block.file is not None:
                Path(block.file).write_text(block.text, encoding="utf-8")
            if block.language == "python" and not block.is_slow:
                run_python(block, namespace)
            if block.language != "console" or block.is_slow:
                continue
            for command in block.commands():
                printed = run_command(command)
                start = command.number
                while lines[start - 1].endswith("\\"):
                    start += 1
                pieces += lines[place:start]
                place = start + len(command.shown)
                keep = any(line.strip() == CUT for line in command.shown) or matches(list(command.shown), printed)
                pieces += command.shown if keep else [line.rstrip() for line in printed]
    return "\n".join([*pieces, *lines[place:]]) + "\n"
