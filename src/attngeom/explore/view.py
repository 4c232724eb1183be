"""What a view is: controls, an answer for their values, actions that set them, long work, files to take away."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from markupsafe import Markup

from attngeom.errors import AttnGeomError
from attngeom.explore.controls import Control, State, read_state, read_texts, write_query
from attngeom.explore.pages import refusal, render
from attngeom.explore.shelf import Shelf
from attngeom.files import to_json

Facts = Mapping[str, Any]
"""What the template of a view is given."""
Progress = Callable[[int, int], None]
"""Told how much of a long computation is done, and of how much."""
Download = tuple[str, bytes]
"""A file to take away: its name and content."""


def setting(**texts: str) -> Callable[[State], Mapping[str, str]]:
    """A button that sets these controls."""
    return lambda state: texts


def json_file(name: str, record: Mapping[str, Any]) -> Download:
    """A download that holds one JSON object."""
    return name, (to_json(dict(record)) + "\n").encode()


@dataclass(frozen=True)
class View:
    """One page of the explorer: a module of ``views``, and the template of its name.

    The module has ``CONTROLS``; ``show``, which answers at once or refuses; ``command`` and ``python``, lines that give
    the same answer; where it needs them, ``ACTIONS``, buttons that set controls, ``JOBS``, which may take longer, and
    ``DOWNLOADS``. What ``show`` and jobs return goes to the template.
    """

    name: str
    module: ModuleType

    @property
    def controls(self) -> Sequence[Control]:
        return self.module.CONTROLS  # type: ignore[no-any-return]

    def known(self, verb: str) -> Mapping[str, Callable[..., Any]]:
        """The actions, jobs or downloads by their names."""
        return getattr(self.module, f"{verb.upper()}S", {}) if verb in ("action", "job", "download") else {}

    def show(self, state: State) -> Markup:
        """What the page shows for these values; InputError and its kin where it refuses."""
        return render(f"{self.name}.html", view=self.name, **self.module.show(state))

    def work(self, job: str, state: State, progress: Progress) -> Markup:
        """What the page shows when long work has ended."""
        return render(f"{self.name}.html", view=self.name, **self.known("job")[job](state, progress))

    def answer(self, given: Mapping[str, str], shelf: Shelf) -> Markup:
        """The answer, or one line that refuses; room for long work; a link, and what to copy."""
        shown: dict[str, Any] = {"lines": None}
        try:
            state = read_state(self.controls, given, shelf)
            shown["answer"] = self.show(state)
            shown["lines"] = {
                "Show the command": self.module.command(state),
                "In Python": self.module.python(state),
            }
        except AttnGeomError as error:
            shown["answer"] = refusal(error)
        return render("answer.html", **shown, query=write_query(read_texts(self.controls, given)))
