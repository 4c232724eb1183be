"""Dimensions of lists of architectures against what a paper says, proven; certificates that verify."""

from __future__ import annotations

from collections.abc import Mapping

from attngeom.certification import Certification
from attngeom.dimensions import dimension
from attngeom.dimensions.certificate import certify_dimension
from attngeom.network import Architecture
from attngeom.papers.records import Check, Checks
from attngeom.verification import verify


def one_layer_dimension(d: int, d_out: int, a: int) -> int:
    """2αd − α² + d d' − 1 with α = min(a, d), the dimension of one lightning layer ([G] Corollary 3.3).

    >>> one_layer_dimension(3, 2, 2)
    13
    """
    alpha = min(a, d)
    return 2 * alpha * d - alpha**2 + d * d_out - 1


def check_dimensions(statement: str, expected: Mapping[Architecture, int], seed: int) -> Checks:
    """Whether every architecture has the expected dimension, it is proven, and the certificate verifies."""
    answers = {net: dimension(net, prove=True, seed=seed) for net in expected}
    yield Check(statement, all(answers[net].dimension == value for net, value in expected.items()))
    proven = [answer for answer in answers.values() if answer.is_proven]
    statement = "every value is proven: a nonzero minor mod p meets the count of parameters"
    yield Check(statement, len(proven) == len(answers), "support")
    valid = all(verify(certify_dimension(answer)).valid for answer in proven)
    yield Check("every certificate passes the independent verifier", valid, "support")


def is_certified(answer: Certification) -> bool:
    """Whether a verdict has a certificate, which the independent verifier accepts."""
    return answer.certificate is not None and verify(answer.certificate).valid is True


def is_proven(architecture: Architecture, expected: int, seed: int) -> bool:
    """Whether the dimension is proven to be the expected one."""
    answer = dimension(architecture, prove=True, seed=seed)
    return answer.is_proven and answer.dimension == expected
