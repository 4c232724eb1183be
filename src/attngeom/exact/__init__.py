"""Exact arithmetic that knows nothing of attention: domains, linear algebra, lifting, polynomials, minors."""

from attngeom.exact.domains import GF, QQ, RR, Balls, Domain
from attngeom.exact.primes import BIG_PRIME, BLAS_PRIME, WORD_PRIME

__all__ = ["BIG_PRIME", "BLAS_PRIME", "GF", "QQ", "RR", "WORD_PRIME", "Balls", "Domain"]
