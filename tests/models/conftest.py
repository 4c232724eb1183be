"""Scripts that need torch or transformers: pytest must not import them for doctests."""

collect_ignore = [
    "data/make_reference.py", "pairs/make_reference.py",
    "live_blocks.py", "live_families.py", "live_mutations.py", "live_pairs.py",
]  # fmt: skip
