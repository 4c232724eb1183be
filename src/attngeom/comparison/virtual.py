"""Comparison through the virtual weights (M, L): [G] Eq 13 and Theorem F, A and S for lightning, softmax, sigmoid."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from flint import fmpq

from attngeom.comparison.gauges import ratio
from attngeom.comparison.results import Ruling
from attngeom.errors import InputError
from attngeom.exact.domains import GF, Array, Domain
from attngeom.exact.primes import WORD_PRIME
from attngeom.network import Weights
from attngeom.network.attention import Sigmoid, Softmax
from attngeom.network.weights import VirtualWeights


def virtual_scales(first: Weights, second: Weights) -> tuple[object, ...] | None:
    """The scales (λ_1..λ_l, ρ) with M'_i = λ_i M_i, L' = ρ L and ρ Π λ_i^(3^(l-i)) = 1, or None.

    If they exist the functions of two lightning networks are equal: [G] Eq 13, which needs no hypothesis. One token
    sees the symmetric parts of the M_i only, so then these are compared. A zero factor on both sides makes both
    functions zero and leaves all scales free: they are given as 1.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((3, 2), 2), QQ, seed=0)
    >>> virtual_scales(w, w)
    (1, 1)
    """
    architecture, domain = first.architecture, first.domain
    if not architecture.has_virtual_weights:
        return None
    one, two = (_factors(weights.virtual(), architecture.tokens) for weights in (first, second))
    unit = domain.eye(1)
    if any(map(domain.is_zero, one)) and any(map(domain.is_zero, two)):
        return tuple(unit[0, 0] for _ in one)
    scales = []
    for a, b in zip(one, two):
        scale = ratio(a, b, domain)
        if scale is None or not domain.equal(domain.reduce(a * scale), b):
            return None
        scales.append(scale)
    layers = architecture.num_layers
    powers = [*(3 ** (layers - 1 - i) for i in range(layers)), 1]
    return tuple(scales) if is_one(scales, powers) else None


def is_one(factors: list[fmpq], powers: list[int]) -> bool:
    """Whether Π factors^powers = 1 for rational numbers ≠ 0 and powers of any length, without the powers being taken.

    The factors are written as products over a set of coprime integers; each of these must occur with total power 0.

    >>> is_one([fmpq(2, 3), fmpq(9, 4)], [2 * 3**50, 3**50]), is_one([fmpq(-1)], [3])
    (True, False)
    """
    negative = sum(power for factor, power in zip(factors, powers) if factor < 0)
    counts: dict[int, int] = {}
    for factor, power in zip(factors, powers):
        _count(counts, abs(int(factor.p)), power)
        _count(counts, int(factor.q), -power)
    return negative % 2 == 0 and not any(counts.values())


def _count(counts: dict[int, int], n: int, power: int) -> None:
    """Add n^power to a product over coprime bases, splitting bases that share a factor with n."""
    for base in list(counts):
        if n == 1:
            return
        g = gcd(base, n)
        if g == 1:
            continue
        total = counts.pop(base)
        # base^total n^power = g^(total + power) (base/g)^total (n/g)^power
        for part, exponent in ((g, total + power), (base // g, total)):
            _count(counts, part, exponent)
        n //= g
        _count(counts, n, power)
        return
    if n > 1:
        counts[n] = counts.get(n, 0) + power


def _factors(virtual: VirtualWeights, tokens: int) -> list[Array]:
    """M_1..M_l, or their symmetric parts if there is one token, and L."""
    domain = virtual.domain
    M = [domain.reduce(m + m.T) for m in virtual.M] if tokens == 1 else list(virtual.M)
    return [*M, virtual.L]


def compare_virtual(first: Weights, second: Weights) -> Ruling:
    """Theorems A, A' (softmax) and S (sigmoid) for rational networks with one head and no skip connection.

    Different residues are different numbers and nonzero residues are nonzero, so almost all different pairs are told
    apart modulo a prime; equality is checked over Q.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((2, 2, 2), 1, kind="softmax"), QQ, seed=0)
    >>> compare_virtual(w, w).same
    True
    """
    architecture = first.architecture
    tokens, causal = architecture.tokens, architecture.causal
    # Two causal tokens: which M_i vanish matters, and that is seen over Q only.
    if not (causal and tokens == 2):
        try:
            residues = [weights.to(GF(WORD_PRIME)).virtual() for weights in (first, second)]
        except InputError:
            residues = []
        if residues and not residues[0].domain.is_zero(residues[0].L):
            verdict = _decide(residues[0], residues[1], tokens)
            if verdict.same is False:
                return verdict
    return _decide(first.virtual(), second.virtual(), tokens)


def _decide(one: VirtualWeights, two: VirtualWeights, tokens: int) -> Ruling:
    """What the theorem of the kind says; without one, equal (M, L) are one function."""
    theorem = THEOREMS.get(one.rule.name)
    if theorem is not None:
        return theorem(one, two, tokens)
    equal = all(map(one.domain.equal, (*one.M, one.L), (*two.M, two.L)))
    return Ruling(True if equal else None, "the virtual weights (M, L) are equal" if equal else "")


def _theorem_s(one: VirtualWeights, two: VirtualWeights, tokens: int) -> Ruling:
    domain = one.domain
    if not domain.equal(one.L, two.L):
        return Ruling(False, "L = V_l … V_1 differs (Theorem S)")
    if domain.is_zero(one.L):
        return Ruling(True, "L = V_l … V_1 = 0 for both: both functions are zero")
    sides = _factors(one, tokens)[:-1], _factors(two, tokens)[:-1]
    if all(map(domain.equal, *sides)):
        seen = "symmetric parts of M, which one token sees, and L" if tokens == 1 else "virtual weights (M, L)"
        return Ruling(True, f"the {seen} are equal")
    if len(one.M) > 1 and (tokens == 1 or one.rule.causal):
        why = "one token" if tokens == 1 else "a causal mask"
        return Ruling(None, f"M differs, and Theorem S does not cover several layers with {why}")
    for i, (a, b) in enumerate(zip(*sides), start=1):
        if not domain.equal(a, b):
            return Ruling(False, f"L and M_1 … M_{i - 1} do not hide M_{i}, which differs (Theorem S)")
        if domain.is_zero(a):
            break
    later = [domain.reduce(a - b) for a, b in zip(one.M[i:], two.M[i:])]
    if all(domain.is_zero(domain.reduce(x + x.T)) for x in later):
        reason = f"M_{i} = 0 makes all tokens equal, and the symmetric parts of later M, which they see, are equal"
        return Ruling(True, reason)
    return Ruling(None, f"M_{i} = 0 makes all tokens equal, and Theorem S does not cover what is seen then")


def _theorem_a(one: VirtualWeights, two: VirtualWeights, tokens: int) -> Ruling:
    domain, causal = one.domain, one.rule.causal
    theorem = "Theorem A'" if causal else "Theorem A"
    if not domain.equal(one.L, two.L):
        return Ruling(False, f"L = V_l … V_1 differs ({theorem})")
    if domain.is_zero(one.L):
        return Ruling(True, "L = V_l … V_1 = 0 for both: both functions are zero")
    if tokens == 1:
        return Ruling(True, "one token attends to itself alone, and L = V_l … V_1 is equal")
    for i, (a, b) in enumerate(zip(one.M, two.M), start=1):
        if not domain.equal(a, b):
            if causal and tokens == 2 and (domain.is_zero(a) or domain.is_zero(b)):
                return Ruling(None, f"one of M_{i}, M'_{i} is zero, and Theorem A' does not cover that for t = 2")
            return Ruling(False, f"L and M_1 … M_{i - 1} do not hide M_{i}, which differs ({theorem})")
        if not causal and i < len(one.M) and _is_blind(a, tokens, domain):
            reason = f"L and M_1 … M_{i} are equal, and layer {i} is blind: nothing later is seen ({theorem})"
            return Ruling(True, reason)
    return Ruling(True, "the virtual weights (M, L) are equal")


def _is_blind(M: Array, tokens: int, domain: Domain) -> bool:
    """Whether all tokens are equal after a layer: M = 0, or M skew and two tokens."""
    return domain.is_zero(domain.reduce(M + M.T) if tokens == 2 else M)


THEOREMS: dict[str, Callable[[VirtualWeights, VirtualWeights, int], Ruling]] = {
    Softmax.name: _theorem_a,
    Sigmoid.name: _theorem_s,
}
"""What is proven of fibers in (M, L), by kind of attention."""
