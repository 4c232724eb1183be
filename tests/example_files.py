"""The folder of ``attngeom demo``, which tests of several rooms work on."""

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

from attngeom.demo import write_demo


@functools.cache
def _made() -> Path:
    """The files, made once in each process."""
    folder = Path(tempfile.mkdtemp(prefix="attngeom-examples-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return write_demo(folder)


def copy_examples(folder: Path) -> Path:
    """A copy of the example files in a new folder."""
    return Path(shutil.copytree(_made(), folder))
