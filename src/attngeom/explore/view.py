"""What a view is: controls, an answer for their values, actions that set them, long work, files to take away."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from attngeom.errors import AttnGeomError
from attngeom.explore.controls import Control, State, opening_texts, read_state, read_texts, write_query
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


@dataclass(frozen=True, kw_only=True)
class View:
    """One page of the explorer. ``facts`` answers at once or refuses; what may take longer is a job.

    ``command`` and ``python`` are lines that give the same answer. Facts of an answer and of a job go to one template,
    named as the view. ``opening`` changes the texts with which the view opens.
    """

    name: str
    controls: Sequence[Control]
    facts: Callable[[State], Facts]
    command: Callable[[State], str]
    python: Callable[[State], str]
    actions: Mapping[str, Callable[[State], Mapping[str, str]]] = field(default_factory=dict)
    jobs: Mapping[str, Callable[[State, Progress], Facts]] = field(default_factory=dict)
    downloads: Mapping[str, Callable[[State], Download]] = field(default_factory=dict)
    opening: Callable[[Shelf], Mapping[str, str]] = lambda shelf: {}

    def show(self, state: State) -> Markup:
        """What the page shows for these values; InputError and its kin where it refuses."""
        return render(f"{self.name}.html", view=self.name, **self.facts(state))

    def work(self, job: str, state: State, progress: Progress) -> Markup:
        """What the page shows when long work has ended."""
        return render(f"{self.name}.html", view=self.name, **self.jobs[job](state, progress))

    def open(self, shelf: Shelf) -> dict[str, str]:
        """The texts of the controls where no address says others: files of the command line are chosen."""
        return {**opening_texts(self.controls, shelf), **self.opening(shelf)}

    def answer(self, given: Mapping[str, str], shelf: Shelf) -> Markup:
        """The answer, or one line that refuses; room for long work; a link, and what to copy."""
        shown: dict[str, Any] = {"lines": None}
        try:
            state = read_state(self.controls, given, shelf)
            shown["answer"] = self.show(state)
            shown["lines"] = {"Show the command": self.command(state), "In Python": self.python(state)}
        except AttnGeomError as error:
            shown["answer"] = refusal(error)
        return render("answer.html", **shown, query=write_query(read_texts(self.controls, given)))
