"""What CONTRIBUTING.md says of the tree is true."""

import re
import tomllib
from pathlib import Path

from attngeom.papers import PAPERS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
FILES = sorted(set(re.findall(r"`((?:src|tests|docs)/[\w/.-]+\.(?:py|md|html))`", PAGE)))
HOLDS = {
    "src/attngeom/network/attention/sigmoid.py": (
        "def weights",
        "def push",
        "def second_derivative",
        "def formal_weights",
    ),
    "src/attngeom/network/attention/recurrent.py": ("def step", "def gates", "def numbers", "def head_symmetries"),
    "src/attngeom/network/symmetry/group.py": ("SORTS",),
    "src/attngeom/network/options.py": ("class Bias", "def tensors", "def symmetries", "OPTIONS"),
    "src/attngeom/cli/options.py": ("KINDS", "class ArchitectureOptions"),
    "tests/network/modern_cases.py": ("CASES", "def reference"),
    "src/attngeom/dimensions/modern.py": ("DimensionFormula",),
    "src/attngeom/comparison/virtual.py": ("VirtualPair",),
    "src/attngeom/inspection/hypotheses.py": ("FIBER_THEOREMS",),
    "src/attngeom/verification/dimension.py": ("KINDS",),
    "src/attngeom/network/attention/__init__.py": ("KINDS",),
    "src/attngeom/dimensions/theorems.py": ("DimensionFormula",),
    "src/attngeom/verification/theorems.py": ("THEOREMS",),
    "src/attngeom/equations/families/flattenings.py": ("number", "title", "source", "def size", "def matrix"),
    "src/attngeom/network/symmetry/factor.py": ("def carried", "def dual", "def tangent", "def moment", "def fix"),
    "src/attngeom/groups/group.py": ("def act", "def tangents", "def moment", "def match", "def fix", "def invariants"),
    "src/attngeom/models/symmetry/factor.py": ("class RowFactor", "def random", "def folding", "def unfold"),
    "src/attngeom/models/families/llama.py": ("def describe_llama", "ModelFamily("),
    "src/attngeom/models/families/contract.py": ("class ModelFamily", "describe", "places", "defaults"),
    "src/attngeom/models/families/__init__.py": ("FILES",),
    "src/attngeom/models/symmetry/attention.py": ("carried", "dual"),
    "src/attngeom/models/symmetry/block.py": ("def factors",),
    "src/attngeom/cli/commands.py": ("COMMANDS", "EXAMPLES"),
    "src/attngeom/cli/inspect.py": ("def inspect_command",),
    "src/attngeom/explore/views/certificate.py": ("CONTROLS", "JOBS", "def show", "def command", "def python"),
    "src/attngeom/explore/views/__init__.py": ("VIEWS",),
    "src/attngeom/explore/templates/certificate.html": ("parts.html",),
    "src/attngeom/explore/templates/emblems.html": ("macro draw",),
    "tests/golden/cases.py": ("CASES",),
    "tests/fuzz/targets.py": ("TARGETS",),
}


def test_files_that_are_named_exist():
    assert FILES
    for name in FILES:
        text = (ROOT / name).read_text()
        for word in HOLDS.get(name, ()):
            assert word in text, f"{name} does not hold {word}"


def test_what_files_hold_is_checked_for_files_that_are_named():
    assert set(HOLDS) <= set(FILES)


def test_every_room_is_on_the_map():
    rooms = {path.name for path in (ROOT / "src" / "attngeom").iterdir() if path.is_dir() and path.name[0] not in "_."}
    table = PAGE[PAGE.index("| room |") : PAGE.index("`tests/` mirrors")]
    assert rooms <= set(re.findall(r"`(\w+)/`", table))


def test_the_papers_are_named_alike_everywhere():
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    assert re.findall(r'url: "(.*)"', cited) == list(urls.values())
    names = [paper.partition(":")[0].split(", ") for paper in PAPERS.values()]
    assert re.findall(r"family-names: (.*)", cited) == [name for group in names for name in group]
    for url, paper in zip(urls.values(), PAPERS.values(), strict=True):
        title = paper.partition(": ")[2].rpartition(" (")[0]
        assert f'title: "{title}"' in cited
        assert url in (ROOT / "README.md").read_text(encoding="utf-8")
