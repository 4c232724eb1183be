"""The example table of domains: whatever implements the contract has a row here and passes every test of it."""

from dataclasses import dataclass

import numpy as np
import pytest

from attngeom.exact import (
    BIG_PRIME,
    BLAS_PRIME,
    GF,
    QQ,
    RR,
    SMALL_PRIME,
    WORD_PRIME,
    BalancedField,
    Balls,
    CubicField,
    Domain,
    PolynomialDomain,
    QuadraticField,
)


@dataclass(frozen=True)
class Example:
    """A domain and what it can do: invert nonzero numbers, decide ranks and solve systems."""

    label: str
    domain: Domain
    is_field: bool
    has_ranks: bool


EXAMPLES = (
    Example("QQ", QQ, True, True),
    Example("GF(2)", GF(2), True, True),
    Example("GF(101)", GF(101), True, True),
    Example("GF(blas)", GF(BLAS_PRIME), True, True),
    Example("GF(word)", GF(WORD_PRIME), True, True),
    Example("GF(big)", GF(BIG_PRIME), True, True),
    Example("balanced small", BalancedField(SMALL_PRIME), True, True),
    Example("balanced blas", BalancedField(BLAS_PRIME), True, True),
    Example("balanced word", BalancedField(WORD_PRIME), True, True),
    Example("Q(√5)", QuadraticField(5), True, True),
    Example("Q(i)", QuadraticField(-1), True, True),
    Example("Q(∛2)", CubicField((-2, 0, 0, 1)), True, True),
    Example("RR", RR, True, False),
    Example("balls", Balls(100), True, False),
    Example("Q[x, y]", PolynomialDomain(("x", "y")), False, False),
    Example("GF(101)[x]", PolynomialDomain(("x",), GF(101)), False, False),
)


def over(examples):
    """Run a test over the domains of these examples."""
    examples = list(examples)
    return pytest.mark.parametrize("domain", [e.domain for e in examples], ids=[e.label for e in examples])


every_domain = over(EXAMPLES)
every_exact_domain = over(e for e in EXAMPLES if e.domain.is_exact)
every_field = over(e for e in EXAMPLES if e.is_field)
every_field_with_ranks = over(e for e in EXAMPLES if e.has_ranks)
every_domain_without_ranks = over(e for e in EXAMPLES if not e.has_ranks)


def close(domain, a, b):
    """Whether two arrays are equal, up to rounding over floats."""
    return np.allclose(a, b) if a.dtype == np.float64 and not domain.is_exact else domain.equal(a, b)
