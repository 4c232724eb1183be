"""Record the answers of all cases, or of the named ones: ``python -m tests.golden.record [CASE ...]``.

The records are the reference of ``test_golden.py``. They are made again only for a named fix: when a change corrects
an answer, record the cases that it corrects, read the difference, and name the fix in the commit. A change that is
meant to keep all answers records nothing. The inputs are stored files; nothing here makes them.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.golden.cases import CASES
from tests.golden.runner import INPUTS, OUTPUTS, run_case

WIDTH = 100


def layout(value: Any, indent: str = "") -> str:
    """JSON with one line for each value that fits on a line, so that differences between records can be read.

    >>> print(layout({"matrix": [[1, 2], [3, 4]], "text": ["a" * 60, "b" * 60]}))
    {
     "matrix": [[1, 2], [3, 4]],
     "text": [
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
     ]
    }
    """
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= WIDTH or not isinstance(value, (dict, list)):
        return line
    inner = indent + " "
    if isinstance(value, dict):
        parts = [f"{inner}{json.dumps(key, ensure_ascii=False)}: {layout(x, inner)}" for key, x in value.items()]
    else:
        parts = [inner + layout(x, inner) for x in value]
    start, end = "{}" if isinstance(value, dict) else "[]"
    return start + "\n" + ",\n".join(parts) + f"\n{indent}{end}"


def record(names: list[str]) -> int:
    """Write the records of the named cases, all without a name; the number of steps with another exit code."""
    unknown = set(names) - {case.name for case in CASES}
    if unknown:
        raise SystemExit(f"no case is named {', '.join(sorted(unknown))}")
    OUTPUTS.mkdir(exist_ok=True)
    wrong = 0
    for case in CASES:
        if names and case.name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            inputs, out = Path(folder) / "inputs", Path(folder) / "out"
            shutil.copytree(INPUTS, inputs, ignore=shutil.ignore_patterns("__pycache__"))
            out.mkdir()
            answer = run_case(case, inputs, out)
        for step, said in zip(case.steps, answer["steps"]):
            if step.code != said["code"]:
                wrong += 1
                print(f"{case.name}: exit code {said['code']} instead of {step.code}: {step.line} {said['stderr']}")
        (OUTPUTS / f"{case.name}.json").write_text(layout(answer) + "\n", encoding="utf-8")
    return wrong


if __name__ == "__main__":
    sys.exit(min(record(sys.argv[1:]), 1))
