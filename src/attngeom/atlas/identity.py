"""Which code answers a task: its version, and digests of the package and of the modules of further questions.

Facts of one sweep come from one code: whoever answers says which it has, and answers of another one are not believed.
A digest shows accidents (a worker that was not updated, a file that was edited), not a worker that lies.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import attngeom
from attngeom.atlas.questions import question_modules
from attngeom.atlas.records import canonical_json, sha256
from attngeom.errors import InputError
from attngeom.version import __version__


@dataclass(frozen=True)
class CodeIdentity:
    """The version, and what its files are: digests of the package and of each module of questions."""

    version: str
    package: str
    questions: dict[str, str]

    @property
    def digest(self) -> str:
        """One short word for all of it, which every answer carries."""
        return sha256(canonical_json(asdict(self)))[:32]

    def difference(self, other: CodeIdentity) -> str | None:
        """What the other one has that this one has not, in words; None if they are the same code.

        >>> one = CodeIdentity("0.2.0", "ab12", {})
        >>> one.difference(CodeIdentity("0.1.0", "ab12", {}))
        'version 0.1.0, not 0.2.0'
        """
        if self.version != other.version:
            return f"version {other.version[:40]}, not {self.version}"
        if self.package != other.package:
            return f"other files of version {self.version} (digest {other.package[:12]}, not {self.package[:12]})"
        for name in sorted({*self.questions, *other.questions}):
            if self.questions.get(name) != other.questions.get(name):
                return f"another module {name[:40]} of questions, or none"
        return None


def digest_files(folder: Path) -> str:
    """SHA-256 of the names and contents of all Python files below a folder; ends of lines do not matter."""
    digest, paths = hashlib.sha256(), sorted(folder.rglob("*.py"), key=lambda path: path.relative_to(folder).parts)
    if not paths:
        raise InputError(f"no files of attngeom in {folder}; install it with pip, not as an archive")
    for path in paths:
        content = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{path.relative_to(folder).as_posix()}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()


def identify_code() -> CodeIdentity:
    """The code of this process, as its files were when it was first asked."""
    return _identify(question_modules())


def read_identity() -> CodeIdentity:
    """The code that a process which starts now will have."""
    return _identify.__wrapped__(question_modules())


@cache
def _identify(modules: tuple[str, ...]) -> CodeIdentity:
    questions = {}
    for name in modules:
        module = find_spec(name)
        origin = None if module is None or module.origin is None else Path(module.origin)
        content = origin.read_bytes() if origin is not None and origin.is_file() else b""
        questions[name] = hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()
    return CodeIdentity(__version__, digest_files(Path(os.fspath(attngeom.__file__)).parent), questions)
