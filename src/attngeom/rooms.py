"""Rooms: packages that show their public names and load each when it is first used.

A command imports only what it needs, ``dir`` and the Tab key show what a room is for, and a path or a network given in
place of weights is told in one line what to type.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from attngeom.errors import InputError

Public = TypeVar("Public")

MAKERS = {
    "Weights": "attngeom.read_weights(path)",
    "Coefficients": "attngeom.read_coefficients(path)",
    "Architecture": "attngeom.Architecture(widths, attention)",
    "Variety": "attngeom.equations.Variety(d, a)",
    "Model": "attngeom.models.open_model(folder)",
}
"""Classes that public functions ask for, and what makes them."""


def names_of(homes: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """The module of each name.

    >>> names_of({"analysis": ("Analysis", "analyze")})
    {'Analysis': 'analysis', 'analyze': 'analysis'}
    """
    return {name: module for module, names in homes.items() for name in names}


def open_room(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose names live in these modules of it.

    >>> find, show = open_room("attngeom.recovery", {"recover": "recover"})
    >>> show(), find("recover").__name__
    (['recover'], 'recover')
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return checked(getattr(importlib.import_module(f"{package}.{names[name]}"), name))

    def show() -> list[str]:
        return sorted(names)

    return find, show


def checked(public: Public, name: str = "") -> Public:
    """A public function that says in one line what an argument should be; what is no such function as it is.

    Looked at are parameters whose annotation names one of ``MAKERS``, alone, as an alternative or in a sequence.
    ``name`` is that of the function where the room calls it otherwise.

    >>> def size(weights: "Weights"): return len(weights)
    >>> checked(size)("a.json")
    Traceback (most recent call last):
    ...
    attngeom.errors.InputError: size: weights = 'a.json' given; Weights is required: attngeom.read_weights('a.json')
    """
    return cast(Public, _guarded(public, name or public.__name__)) if inspect.isfunction(public) else public


@functools.cache
def _guarded(public: Callable[..., Any], name: str) -> Callable[..., Any]:
    signature = inspect.signature(public)
    wanted = {
        parameter: annotation
        for parameter, each in signature.parameters.items()
        if MAKERS.keys() & set(_words(annotation := str(each.annotation)))
    }
    if not wanted:
        return public

    @functools.wraps(public)
    def call(*given: Any, **named: Any) -> Any:
        for parameter, value in signature.bind(*given, **named).arguments.items():
            if parameter in wanted:
                _check(f"{name}: {parameter}", value, wanted[parameter])
        return public(*given, **named)

    return call


def _words(annotation: str) -> list[str]:
    return re.findall(r"\w+", annotation)


def _check(place: str, value: object, annotation: str) -> None:
    """InputError for paths where none is asked for, and for other classes where all that are asked for are known."""
    is_path = isinstance(value, (str, Path))
    if annotation.startswith("Sequence["):
        if isinstance(value, (list, tuple)):
            for number, each in enumerate(value):
                _check(f"{place}[{number}]", each, annotation.removeprefix("Sequence[").removesuffix("]"))
            return
        if not is_path:
            return
    classes = {"None"} if value is None else {each.__name__ for each in type(value).__mro__}
    kinds = _words(annotation)
    known = [kind for kind in kinds if kind in MAKERS]
    is_known = set(kinds) <= {*MAKERS, "None"}
    if classes & set(kinds) or not (is_path or is_known):
        return
    if is_path:
        makers = [re.sub(r"\(\w+\)", f"({str(value)[:60]!r})", MAKERS[kind]) for kind in known]
    elif "Weights" in classes and "Architecture" in known:
        makers = ["weights.architecture"]
    elif "Model" in classes:
        makers = ["attngeom.models asks the same of models"]
    else:
        makers = [MAKERS[kind] for kind in known]
    said = f"{str(value)[:60]!r}" if is_path else f"a value of class {type(value).__name__}"
    wanted = ("a list of " if annotation.startswith("Sequence[") else "") + " or ".join(known)
    raise InputError(f"{place} = {said} given; {wanted} is required: {' or '.join(makers)}")
