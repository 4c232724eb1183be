"""The script that makes the reference data needs torch and transformers: pytest must not import it for doctests."""

collect_ignore = ["data/make_reference.py"]
