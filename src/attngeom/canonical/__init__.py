"""One representative for each function: canonical forms, compact files, moves along the fiber."""
