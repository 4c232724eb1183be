"""Which virtual weights (M', L') have the function of given ones: the fiber in (M, L), in words and as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attngeom.inspection.hypotheses import (
    FIBER_THEOREMS,
    VirtualRanks,
    is_nonzero,
    virtual_ranks,
    visible_layers,
)
from attngeom.network import Architecture, Weights


@dataclass(frozen=True)
class VirtualFiber:
    """The fiber of a network with one head and no skip connection, in (M_1..M_l, L).

    ``determined`` and ``free`` list the matrices that the function fixes and those that it does not see; ``scales``
    says that the former are fixed up to the scales of [G] Eq 13 (lightning), ``finite`` that the others take finitely
    many values, up to scales. ``blind`` are the layers, counted from 1, after which the tokens are equal;
    ``first_blind`` is the first one before the last layer. ``is_known`` is False if no theorem covers the point or
    floats do not tell; then the lists are empty and ``words`` says why.
    """

    theorem: str | None
    words: str
    is_known: bool
    determined: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    scales: bool = False
    blind: tuple[int, ...] = ()
    first_blind: int | None = None
    finite: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "theorem": self.theorem,
            "words": self.words,
            "known": self.is_known,
            "determined": list(self.determined),
            "free": list(self.free),
            "up_to_scales": self.scales,
            "finite": self.finite,
            "blind_layers": list(self.blind),
            "first_blind": self.first_blind,
        }


def virtual_fiber(weights: Weights, noise: float = 0.0) -> VirtualFiber | None:
    """The fiber of the function in (M, L); None for several heads or a skip connection, which have no (M, L).

    Theorem A (softmax): L and M_1..M_j are determined, j the first blind index below l, and M_{j+1}..M_l are free.
    Theorem A' (softmax with a mask), Theorems F, F1, Fc (lightning), Theorem S (sigmoid): docs/theorems/comparison.md.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> virtual_fiber(random_weights(Architecture((2, 2, 2), 2, kind="softmax"), QQ, seed=0)).determined
    ('L', 'M_1', 'M_2')
    """
    if not weights.architecture.has_virtual_weights:
        return None
    ranks = virtual_ranks(weights, noise)
    architecture = weights.architecture
    theorem = FIBER_THEOREMS.get(architecture.kind)
    if theorem is None:
        return VirtualFiber(None, f"no theorem covers the fibers of {architecture.kind} attention", False)
    if theorem == "Theorem F":
        return _lightning_fiber(architecture, ranks)
    everything = _names(1, architecture.num_layers)
    theorem = "Theorem A'" if theorem == "Theorem A" and architecture.mask.hides else theorem
    if theorem != "Theorem S" and architecture.tokens == 1:
        words = f"one token attends to itself alone: the function is L x, and {_listed(everything)} are not seen"
        return VirtualFiber(theorem, words, True, ("L",), everything)
    nonzero = is_nonzero(ranks.L)
    if nonzero is None:
        return VirtualFiber(None, "floats do not tell whether L = 0", False)
    if not nonzero:
        words = f"L = 0: the function is zero, its fiber is {{L = 0}}, and {_listed(everything)} are free"
        return VirtualFiber(theorem, words, True, ("L",), everything)
    return (_masked_fiber if theorem == "Theorem A'" else _seen_fiber)(architecture, ranks)


def _names(first: int, last: int) -> tuple[str, ...]:
    return tuple(f"M_{i}" for i in range(first, last + 1))


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _seen_fiber(architecture: Architecture, ranks: VirtualRanks) -> VirtualFiber:
    """Theorems A and S: L and all M_i up to the first blind layer before the last are seen."""
    theorem, layers, t = FIBER_THEOREMS[architecture.kind], architecture.num_layers, architecture.tokens
    is_softmax = theorem == "Theorem A"
    if not is_softmax and layers > 1 and (t == 1 or architecture.mask.hides):
        why = "one token" if t == 1 else f"a {architecture.mask} mask"
        return VirtualFiber(None, f"several layers with {why}: L is determined, no theorem covers the M_i", False)
    if t == 1:
        words = "one token: L and the symmetric part of M_1 are determined"
        return VirtualFiber(theorem, words, True, ("L", "M_1 + M_1ᵀ"))
    skew_is_blind = is_softmax and t == 2
    seen = visible_layers(ranks, skew_is_blind)
    blind = tuple(i + 1 for i, visible in enumerate(seen) if visible is False)
    hidden = next((i + 1 for i, visible in enumerate(seen[:-1]) if not visible), None)
    if hidden is None:
        nothing = "layer before the last is blind" if is_softmax else "M_i before the last is zero"
        words = f"no {nothing}: the fiber is the point (M, L)"
        return VirtualFiber(theorem, words, True, ("L", *_names(1, layers)), (), False, blind)
    if seen[hidden - 1] is None:
        return VirtualFiber(None, f"floats do not tell whether layer {hidden} is blind", False, blind=blind)
    why = "skew-symmetric and t = 2" if skew_is_blind else "zero"
    words = f"M_{hidden} is {why}: all tokens are equal after layer {hidden}"
    if not is_softmax:
        words += ", and no theorem covers what is seen then"
        return VirtualFiber(None, words, False, blind=blind, first_blind=hidden)
    kept, free = ("L", *_names(1, hidden)), _names(hidden + 1, layers)
    words += f"; {_listed(kept)} are determined, {_listed(free)} {'is' if len(free) == 1 else 'are'} free"
    return VirtualFiber(theorem, words, True, kept, free, False, blind, hidden)


def _masked_fiber(architecture: Architecture, ranks: VirtualRanks) -> VirtualFiber:
    theorem, layers, mask = "Theorem A'", architecture.num_layers, architecture.mask
    everything = ("L", *_names(1, layers))
    if architecture.tokens >= 3 or layers == 1:
        return VirtualFiber(theorem, f"{mask}, t ≥ 3 or one layer: the fiber is the point (M, L)", True, everything)
    if all(is_nonzero(rank) for rank in ranks.M):
        words = f"{mask}, t = 2 and no M_i is zero: other points of the fiber, if any, have some M_i = 0"
        return VirtualFiber(theorem, words, False)
    return VirtualFiber(None, f"{mask}, t = 2 and some M_i may be zero: no theorem covers this point", False)


def _lightning_fiber(architecture: Architecture, ranks: VirtualRanks) -> VirtualFiber:
    """Theorems F, F1, Fc; one token: φ(x) = L x Π (xᵀ M_i x)^(3^(l-i)), by unique factorization, digits in base 3."""
    layers, one_token, masked = architecture.num_layers, architecture.tokens == 1, architecture.mask.hides
    zero = "L = 0 or some M_i {}: the function is zero"
    M, L = [ranks.traits(i) for i in range(layers)], ranks.traits(None)
    if L.is_nonzero is False or any(x.is_nonzero is False for x in M):
        return VirtualFiber("[G] Eq 12", zero.format("= 0"), True)
    if layers == 1 and not one_token:
        return VirtualFiber(None, "one layer: see its stratum", False)
    # Of M_i with i > whole the symmetric part is seen.
    whole = 0 if one_token else layers
    if not (one_token or masked):
        whole = next((i for i, x in enumerate(M[:-1], start=1) if not x.has_rank_two), layers)
    theorem = "Theorem F (one token)" if one_token else "Theorem Fc" if masked else "Theorem F1"
    if whole < layers:
        if whole and M[whole - 1].has_rank_two is None:
            return VirtualFiber(None, f"floats do not tell whether rk M_{whole} = 1", False)
        if any(x.is_not_skew is False for x in M[whole:]):
            return VirtualFiber(theorem, zero.format("that is seen by its symmetric part is skew-symmetric"), True)
    elif not masked:
        theorem = "Theorem F"
    needed = [f"M_{i} not skew-symmetric" for i, x in enumerate(M, start=1) if not x.is_not_skew]
    needed += ["L ≠ 0"] * (not L.is_nonzero) + ["rk L ≥ 2 or rk L = 1, told by floats"] * (L.has_rank_two is None)
    if needed:
        return VirtualFiber(None, f"{theorem} does not apply: {'; '.join(needed)}", False)
    scales, names, later = "up to the scales of [G] Eq 13", _names(1, layers)[:whole], _names(1, layers)[whole:]
    seen, free = tuple(f"{name} + {name}ᵀ" for name in later), tuple(f"{name} − {name}ᵀ" for name in later)
    why = "" if not later else "one token: " if one_token else f"rk M_{whole} = 1, so later M_i show symmetric parts: "
    last = M[-1].has_rank_two
    if L.has_rank_two or (whole == layers and not masked and last):
        kept = ("L", *names, *seen)
        words = f"{why}{_listed(kept)} are determined, {scales}"
        if not later:
            words = "the fiber is the orbit of (M, L) under the scales of [G] Eq 13"
        return VirtualFiber(theorem, words, True, kept, free, True)
    if last is None:
        return VirtualFiber(None, f"floats do not tell whether rk M_{layers} = 1", False)
    words = f"{why}L = h vᵀ, and the fiber is finite, {scales}"
    kept = () if masked else names[:-1]
    return VirtualFiber("Theorem F1" if theorem == "Theorem F" else theorem, words, True, kept, free, True, finite=True)
