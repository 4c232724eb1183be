"""What a view is: controls, a page for their values, actions that set them, long work, files to take away."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from attngeom.explore.controls import Control, State
from attngeom.explore.markup import Html
from attngeom.files import to_json

Progress = Callable[[int, int], None]
"""Told how much of a long computation is done, and of how much."""
Job = Callable[[State, Progress], Html]
"""Long work: it runs in a process of its own and returns what the page shows."""
Action = Callable[[State], Mapping[str, str]]
"""A button that sets controls: the texts of those that change."""
Download = Callable[[State], tuple[str, bytes]]
"""A file to take away: its name and content."""


def setting(**texts: str) -> Action:
    """A button that sets these controls."""
    return lambda state: texts


def json_file(name: str, record: Mapping[str, Any]) -> tuple[str, bytes]:
    """A download that holds one JSON object."""
    return name, (to_json(dict(record)) + "\n").encode()


class View(ABC):
    """One page of the explorer. ``show`` answers at once or refuses; what may take longer is a job."""

    name: ClassVar[str]
    controls: Sequence[Control]
    actions: Mapping[str, Action] = {}
    jobs: Mapping[str, Job] = {}
    downloads: Mapping[str, Download] = {}

    @abstractmethod
    def show(self, state: State) -> Html:
        """What the page shows for these values; InputError and its kin where it refuses."""

    @abstractmethod
    def command(self, state: State) -> str:
        """The command line that gives the same answer."""

    @abstractmethod
    def python(self, state: State) -> str:
        """The Python that gives the same answer."""
