"""``python -m attngeom``."""

from attngeom.cli import main

main()
