"""A block that is a file, such as ``json tiny.json``, shows the name of the file above it."""

from __future__ import annotations

import re
from typing import Any

FILE = re.compile(r"^```(json|toml) (\S+\.\w+)$", re.MULTILINE)


def name_files(app: Any, page: str, source: list[str]) -> None:
    source[0] = FILE.sub(r"```{code-block} \1\n:caption: \2\n", source[0])


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", name_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
