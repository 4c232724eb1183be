"""Every bound and every tolerance stands once, in :mod:`attngeom.limits`, with a reason, and is used."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.sources import SOURCE, import_statements

LIMITS = SOURCE / "limits"
NO_LIMITS = {
    "codes of exit": {"cli/__init__.py": "EXIT_INTERRUPTED", "cli/app.py": "EXIT_"},
    "versions and marks of file formats": {
        "atlas/store.py": "APPLICATION_ID SCHEMA_VERSION",
        "recovery/query_table.py": "VERSION",
        "verification/records.py": "NEWEST",
        "models/compact.py": "ZEROS ONES PLACES NOWHERE",
    },
    "primes": {
        "programs/arithmetic.py": "CHAIN",
        "exact/numbers.py": "SMALL_PRIME BLAS_PRIME WORD_PRIME BIG_PRIME",
        "equations/ideal/implicitization.py": "SECOND_PRIME",
        "models/residues.py": "BITS",
        "verification/interpreter.py": "PRIMES",
    },
    "numbers of theorems and of their families": {
        "equations/ideal/completeness.py": "UNIVERSAL_DEGREE LAST_COMMON_DEGREE LAST_DEGREE_OF_RANK_ONE",
        "equations/ideal/ledger.py": "FIRST_CROSS_FAMILY LAST_PAPER_FAMILY",
        "equations/ideal/tableaux.py": "ROWS",
        "papers/samples.py": "OFFSETS",
        "papers/tangent_spaces.py": "MAX_DEGREE SEVERAL_ROWS",
    },
    "numbers of mathematics": {
        "exact/numbers.py": "THIRD_ROOT",
        "learning/pairs.py": "HALF",
        "network/attention/kind.py": "ONE",
        "network/options.py": "BASE",
    },
    "the random points that a name stands for": {
        "programs/points.py": "REAL_STEPS REAL_MIDDLE REAL_SCALE",
        "programs/streams.py": "INDEX_BITS",
    },
    "seeds": {
        "canonical/faithful.py": "SEED",
        "models/ancestry/similarity.py": "SEED",
        "models/matching.py": "SEED GOLDEN",
    },
    "what a family of models is defined with": {
        "models/families/bert.py": "DISTANCE",
        "models/families/olmo.py": "EPS",
        "models/layout/attention.py": "PARTITIONS",
        "models/mixers.py": "LENGTH_EPS DAMPING",
        "models/programs/units.py": "GELU_CUBIC QUICK",
    },
    "the frame of a drawing": {
        "explore/views/fiber.py": "STEP REACH",
        "explore/views/manifold.py": "STEPS REACH",
    },
}
"""Numbers at the level of a module that bound nothing."""
NOT_YET = ("models/counts", "models/proofs", "models/symmetry")


def is_number(node: ast.AST) -> bool:
    """Whether an expression holds a number and nothing but numbers and names.

    >>> [is_number(ast.parse(text, mode="eval").body) for text in ("2**20", "-1", "f(3)", "x", "True")]
    [True, True, False, False, False]
    """
    match node:
        case ast.Constant(value=value):
            return type(value) in (int, float)
        case ast.UnaryOp(operand=operand):
            return is_number(operand)
        case ast.BinOp(left=left, right=right):
            return is_number(left) or is_number(right)
        case ast.Call(func=ast.Name(id="Fraction" | "int" | "float"), args=parts):
            return any(map(is_number, parts))
    return False


def is_bound(node: ast.AST) -> bool:
    """A number, or a list of numbers; what is nested, or has keys, is a table."""
    parts = node.elts if isinstance(node, ast.Tuple | ast.List) else []
    return is_number(node) or (bool(parts) and all(map(is_number, parts)))


def numbers(text: str) -> list[str]:
    """The names that a module gives to numbers.

    >>> numbers("A, b = 1, 2\\nC: float = 1e-9\\nD = {'x': 3}\\nE = f(3)\\nF = [name for name in A]\\nG = (1, 2)")
    ['A', 'C', 'G']
    """
    names = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            whole = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            pairs = zip(target.elts, node.value.elts, strict=True) if whole else [(target, node.value)]
            names += [x.id for x, value in pairs if isinstance(x, ast.Name) and is_bound(value)]
    return [name for name in names if name.isupper()]


def exempt(path: str, name: str) -> bool:
    kept = [names for table in NO_LIMITS.values() for file, names in table.items() if file == path]
    return any(name in names.split() or (name.startswith("EXIT_") and "EXIT_" in names) for names in kept)


def limits() -> list[tuple[Path, ast.Assign, str]]:
    """Every assignment of the package of limits, with the comment behind it, or that above it."""
    rows = []
    for path in sorted(LIMITS.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign):
                behind = lines[(node.end_lineno or node.lineno) - 1].partition("  # ")[2]
                above = lines[node.lineno - 2]
                rows.append((path, node, behind or (above.removeprefix("# ") if above.startswith("# ") else "")))
    return rows


def test_bounds_and_tolerances_stand_among_the_limits():
    places = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if LIMITS not in path.parents and not name.startswith(NOT_YET):
            places[name] = [x for x in numbers(path.read_text(encoding="utf-8")) if not exempt(name, x)]
    assert {name: found for name, found in places.items() if found} == {}


def test_what_is_exempt_exists():
    for table in NO_LIMITS.values():
        for file, names in table.items():
            known = numbers((SOURCE / file).read_text(encoding="utf-8"))
            assert {x for x in names.split() if not any(y.startswith(x) for y in known)} == set(), file


def test_every_limit_has_one_name_and_a_reason():
    assert len(limits()) > 400
    for path, node, reason in limits():
        assert len(node.targets) == 1 and isinstance(node.targets[0], ast.Name), path
        name = node.targets[0].id
        assert is_bound(node.value) or isinstance(node.value, ast.Dict), f"{path.name}: {name} is no number"
        # Headings have no full stop.
        assert len(reason.split()) >= 2 and reason.endswith("."), f"{path.name}: {name} has no reason"
    names = Counter(node.targets[0].id for _, node, _ in limits())
    assert [name for name, count in names.items() if count > 1] == []


def test_every_limit_is_used_and_limits_import_nothing():
    taken = set()
    for path in SOURCE.rglob("*.py"):
        for module, names in import_statements(path):
            if module.startswith("attngeom.limits"):
                taken |= {(module.removeprefix("attngeom.limits."), name) for name in names}
    named_inside = {
        (path.stem, name.id)
        for path, node, _ in limits()
        for name in ast.walk(node.value)
        if isinstance(name, ast.Name)
    }
    assert {(path.stem, node.targets[0].id) for path, node, _ in limits()} - taken - named_inside == set()
    assert all(not import_statements(path) for path in LIMITS.glob("*.py"))


@pytest.mark.parametrize("text", ["MAX = 3", "MAX: int = 2**20", "A, B = 1, 2", "T = (1e-3, 1e-4)"])
def test_a_bound_in_a_module_is_seen(text):
    assert numbers(text)
