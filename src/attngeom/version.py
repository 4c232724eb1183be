"""The version of the package, which records name and the build reads, and those of the libraries below it."""

from __future__ import annotations

from collections.abc import Iterable

__version__ = "1.0.0"


def library_versions(names: Iterable[str]) -> dict[str, str | None]:
    """The installed versions of distributions; None for those that are not installed.

    >>> library_versions(["no-such-library"])
    {'no-such-library': None}
    """
    from importlib import metadata  # slow to load, and few commands need it

    def version(name: str) -> str | None:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            return None

    return {name: version(name) for name in names}
