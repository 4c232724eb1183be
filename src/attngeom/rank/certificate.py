"""Certificates of the dimension of a network: the program as data, a minor at a named point, and the fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attngeom.errors import InputError
from attngeom.rank.analysis import Analysis
from attngeom.rank.search import Field
from attngeom.verification.records import Certificate


def certify_network(answer: Analysis) -> Certificate:
    """The certificate of a dimension whose bounds meet; InputError if they do not.

    Witness: ``lower`` names the point, and the samples, outputs (−1 for the random form of a sample) and columns of a
    minor; ``upper`` the method, with the fields as [weight that moves, weight by which or null, rational].

    >>> from attngeom.rank.analysis import analyze
    >>> answer = analyze(lambda w, x: w["B"] @ (w["A"] @ x), 3, weights={"A": (2, 3), "B": (3, 2)})
    >>> certify_network(answer).claim["dimension"]
    8
    """
    if answer.rank_proof.standing == "undecided":
        raise InputError(f"no certificate was written: {answer.rank_proof.reason}, so that the rank proves nothing")
    if answer.lower_bound != answer.upper_bound or answer.standing == "undecided":
        raise InputError(
            f"no certificate was written: the dimension lies between {answer.lower_bound} and {answer.upper_bound}; "
            "bounds that meet are required"
        )
    point, upper = answer.lower.point, answer.upper
    lower = {
        "point": point.name,
        "region": point.region,
        "samples": [list(sample) for sample in answer.lower.samples],
        "outputs": list(answer.lower.outputs),
        "columns": list(answer.lower.columns),
    }
    above: dict[str, Any] = {"method": "weights" if upper.method == "all weights" else upper.method}
    if upper.method in ("symmetries", "slice"):
        above["fields"] = _write(upper.fields)
    if upper.slice is not None:
        above |= {"fixed": dict(upper.slice.fixed), "slice_fields": _write(upper.slice_fields)}
    if upper.method == "folds":
        folds = [[x.matrix, x.axis, x.gain, x.shift, x.bias] for x in upper.folds]
        above |= {"folds": folds, "fields": _write(upper.fold_fields)}
    claim = {"kind": "network", "program": answer.program.to_json(), "dimension": answer.dimension}
    provenance = {"seed": answer.seed, "primes": [point.prime]}
    return Certificate(claim, {"lower": lower, "upper": above}, provenance)


def _write(fields: Sequence[Field]) -> list[list[list[Any]]]:
    return [[[moved, source, str(times)] for (moved, source), times in field.items()] for field in fields]
