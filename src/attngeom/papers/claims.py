"""The claims of both papers as data, [G] first, in the order of the papers."""

from __future__ import annotations

from collections.abc import Sequence

from attngeom.errors import InputError
from attngeom.papers.records import Claim, Named

THEOREMS = "docs/theorems/dimension.md"
THEOREM_6 = "docs/theorems/completeness.md, Theorem 6"

CLAIMS: tuple[Claim, ...] = (
    Claim("G-section-1-samples", "Section 1, sample complexity", "double precision", Named("samples.run_samples"),
        "The number of samples that determine a function grows linearly with the dimension of the set of functions,"
        " whatever the number of parameters is.", page="docs/theorems/training.md, Theorem N"),
    Claim("G-definition-3", "Definition 3", "exact arithmetic", Named("remarks.run_shapes"),
        "The weights of a network with widths d_i and attention widths a_i have Σ d_i(2a_i + d_{i−1}) entries.",
        "Q_i and K_i act on the input of layer i: their shape is a_i×d_{i−1}, and the count is Σ d_{i−1}(2a_i + d_i).",
        flaw="misprint"),
    Claim("G-section-2-cost", "Section 2, cost", "operation counts", Named("remarks.run_cost"),
        "One lightning layer can be computed with O(t) operations; by way of normalized scores it takes O(t²)."),
    Claim("G-lemma-3.1", "Lemma 3.1", "exact arithmetic", Named("layer_fibers.run_query_key"),
        "If Kᵀ Q = K'ᵀ Q' has rank a ≤ d, there is exactly one C ∈ GL_a with K' = C K and Q' = C⁻ᵀ Q."),
    Claim("G-theorem-3.2", "Theorem 3.2", "exact arithmetic", Named("layer_fibers.run_fibers"),
        "For t ≥ 2 the fiber of one layer in (A, V), up to the scale (λA, V/λ), is one point; two points (k qᵀ, h vᵀ)"
        " and (v qᵀ, h kᵀ) if both ranks are 1; and A = 0 or V = 0 for the zero function.",
        "The statement stands. The proof takes the quadratic form of A with rk A > 1 to be irreducible; it is zero for"
        " A = ((0, 1), (−1, 0)) and splits for A = diag(1, −1)."),
    Claim("G-corollary-3.3", "Corollary 3.3", "certificates", Named("layer_fibers.run_dimension"),
        "For t ≥ 2 and d, d' ≥ 2 or d, a ≥ 2 the dimension is 2αd − α² + d d' − 1, α = min(a, d)."),
    Claim("G-theorem-3.4", "Theorem 3.4", "exact arithmetic", Named("layer_geometry.run_geometry"),
        "The functions of one layer form a closed set; its boundary points are A = k qᵀ, V = h kᵀ, and its singular"
        " points are those with rk A · rk V ≤ 1.",
        "For 1 < a < d the points with rk A < a are singular too: one error, in the statement of Corollary A.4, from"
        " which this one is taken.", flaw="error"),
    Claim("G-corollary-A.1", "Corollary A.1", "identities of polynomials", Named("layer_fibers.run_closed"),
        "The set of functions of one layer is closed in the Euclidean topology."),
    Claim("G-corollary-A.2", "Corollary A.2", "exact arithmetic", Named("layer_fibers.run_birational"),
        "The projective parametrization by (A, V) is birational onto its image, with special fibers of two points."),
    Claim("G-lemma-A.3", "Lemma A.3", "exact arithmetic", Named("layer_geometry.run_critical"),
        "(A, V) is critical for the parametrization exactly if A = k qᵀ and V = h kᵀ.",
        "It is also critical if one of A, V is zero, whatever the rank of the other, as the printed proof says first;"
        " the statement leaves the case out.", flaw="misprint"),
    Claim("G-corollary-A.4", "Corollary A.4", "exact arithmetic", Named("layer_geometry.run_singular"),
        "φ_(A,V) is a singular point exactly if rk A · rk V ≤ 1.",
        "Singular exactly if rk A · rk V ≤ 1, or a < d and rk A < a; the same error as in Theorem 3.4.", flaw="error"),
    Claim("G-proposition-A.5", "Proposition A.5", "identities of polynomials", Named("layer_fibers.run_table"),
        "One layer is linearly isomorphic to its table of quadrics α_m ν_n, columns of A times rows of V."),
    Claim("G-corollary-A.6", "Corollary A.6", "certificates", Named("layer_geometry.run_boundary"),
        "φ_W is on the relative boundary exactly if W is critical; the functions missing from the Zariski closure are A"
        " = k qᵀ, V = h k̄ᵀ with k ∈ C^d not real.",
        "In the proof, k must not be a multiple of a real vector (k = i e₁ gives a function with real weights)."),
    Claim("G-lemma-3.5", "Lemma 3.5", "exact arithmetic", Named("deep.run_virtual_fibers"),
        "With hidden widths δ ≤ d_0, d_l and rk L = δ, weights (A, V) with the same virtual weights (M, L) differ by"
        " unique C_i ∈ GL_δ between the layers."),
    Claim("G-lemma-3.6", "Lemma 3.6", "identities of polynomials", Named("deep.run_recursion"),
        "φ(X) = L X Π_i D_{l−i} Xᵀ M_{l−i+1} X with D_i = D_{i−1} Xᵀ M_i X D_{i−1} Xᵀ M_iᵀ X D_{i−1}, D_0 = I."),
    Claim("G-equation-12", "Equation 12", "identities of polynomials", Named("deep.run_word"),
        "The unrolled form: a word in the M_i and their transposes, read off base-3 digits, of length (3^l − 1)/2.",
        "The last factor is x_{k_m}ᵀ A_1 x_k with the summation index k_m, not x_m, m = (3^l − 1)/2.", flaw="misprint"),
    Claim("G-equation-13", "Equation 13", "exact arithmetic mod p", Named("deep.run_scales"),
        "M_i ↦ λ_i M_i, L ↦ ρ L leaves the function unchanged if Π λ_i^(3^(l−i)) = 1/ρ."),
    Claim("G-theorem-3.7", "Theorem 3.7", "exact arithmetic mod p", Named("deep_fibers.run_deep_fibers"),
        "If t ≥ 3, L ≠ 0, rk M_i ≥ 2 for all i and M_i is not skew-symmetric for i > 1, the fiber in (M, L) consists of"
        " the rescalings of Equation 13.",
        "False for a skew-symmetric M_1: with J = ((0, 1), (−1, 0)) the networks (J, B, L) and (B, J, L/det B) are"
        " equal. The words of its proof, that M_j is not skew-symmetric \"for all j by hypothesis\", suggest that the"
        " printed range i > 1 is a slip; with M_1 not skew-symmetric either it is proven, for t ≥ 2. The printed proof"
        " takes the quadric of a"
        " matrix of rank 2 to be irreducible, which fails for diag(1, −1), and a factor of its Equation 30 to be"
        " nonzero at x_2 = x_3, which fails for i ≥ 3.", flaw="error", page=f"{THEOREMS}, Theorem F"),
    Claim("G-remark-genericity", "Section 3.3, after Theorem 3.7", "exact arithmetic", Named("remarks.run_genericity"),
        "The conditions of Theorem 3.7 are generic if d_i, a_i ≥ 2 for all i."),
    Claim("G-corollary-3.8", "Corollary 3.8", "certificates", Named("deep.run_deep_dimension"),
        "For t ≥ 3, a_i ≥ 2 and hidden widths δ ≤ d_0, d_l the dimension is 2α_1 d_0 − α_1² + δ(d_0 + d_l) − δ² − l +"
        " Σ_{i>1} (2α_i δ − α_i²).", page=f"{THEOREMS}, Corollary C"),
    Claim("G-remark-parameters", "Section 3.3, after Corollary 3.8", "certificates",
        Named("remarks.run_parameter_count"),
        "For a = δ = d there are (3/2) d² l parameters against dimension d²(l + 1) − l: a ratio of 3/2.",
        "There are 3 d² l parameters, and the ratio tends to 3 (2 if the entries of A and V are counted).",
        flaw="error"),
    Claim("G-theorem-3.9", "Theorem 3.9", "double precision", Named("softmax.run_softmax_fibers"),
        "For one softmax layer and t ≥ 2, φ = 0 only if V = 0, and else the fiber in (A, V) is a single point.",
        "The statement stands. Equation 34 in the proof lacks a factor t − 1 in both numerators; with it the proof goes"
        " through."),
    Claim("G-section-3.4-normalizers", "Section 3.4, normalizers", "identities of polynomials",
        Named("softmax.run_normalizers"),
        "Theorem 3.9 holds for every injective S: R → R_{>0} with S(0) = 1; S(x) = e^{x/τ} replaces A by A/τ.",
        "Deep networks: Conjecture 3.10 is proven for S that is smooth near 0 with S'(0) ≠ 0 and M_i, i < l, not"
        " skew-symmetric; for other injective S it is open."),
    Claim("G-conjecture-3.10", "Conjecture 3.10", "certificates", Named("softmax.run_deep_softmax"),
        "For deep networks normalized by an injective S with S(0) = 1 the generic fiber in (M, L) is a single point; so"
        " the dimension is that of Corollary 3.8 plus l (Equation 16).",
        "A theorem for S = exp(x/τ): the fiber is one point unless a layer before the last is blind (Theorem A; also"
        " P. V. Konda, Identifiability and Observability of Deep Normalized Attention, 2026); and for S that is smooth"
        " near 0 with S'(0) ≠ 0, if M_1, …, M_{l−1} are not skew-symmetric. For other injective S it is open.",
        strength="proven in part", page=f"{THEOREMS}, Theorem A"),
    Claim("G-section-4-skip", "Section 4, skip connections", "certificates", Named("remarks.run_skip"),
        "With skip connections the parametrization by (M, L) is expected to be generically one-to-one.",
        "The scale (λA, V/λ) of every layer remains; what breaks is GL(δ) between layers, so (M, L) is no parameter.",
        flaw="expectation refuted"),
    Claim("G-section-4-heads", "Section 4, heads", "certificates", Named("remarks.run_heads"),
        "Several heads introduce new symmetries: their permutations.",
        "Softmax: the only new ones (Theorem D). Lightning: the only new ones for heads that form a direct sum (Theorem"
        " H); heads of full rank also mix continuously."),
    Claim("G-figure-1", "Figure 1", "certificates", Named("figures.run_umbrella"),
        "A 3-dimensional affine slice of M_{2,1,2}, t = 2: a surface with a singular line, part of which is only in the"
        " Zariski closure."),
    Claim("G-figure-2", "Figure 2", "exact arithmetic", Named("figures.run_word_diagram"),
        "The word of Equation 12 as a diagram of nested mirror-symmetric blocks."),
    Claim("G-figure-3", "Figure 3", "double precision", Named("figures.run_dimension_plot"),
        "For l = 2, t = 3, a = 2 and δ = 3 … 10 the numerical rank of the Jacobian equals the expected dimension.",
        strength="supported"),
    Claim("I-proposition-2", "Proposition 2", "identities of polynomials", Named("expansion.run_expansion"),
        "F_ij(X) = Σ_n Σ_{k,l,m} V_ik A_lm x_kn x_ln x_mj."),
    Claim("I-proposition-3", "Proposition 3", "identities of polynomials", Named("expansion.run_supports"),
        "The monomials of F_ij do not depend on the row i, and different columns j share none."),
    Claim("I-remark-4", "Remark 4", "identities of polynomials", Named("expansion.run_rows"),
        "The coefficients of an output row depend on A and this row of V only, in the same form for every row."),
    Claim("I-proposition-5", "Proposition 5", "identities of polynomials", Named("expansion.run_counts"),
        "One output has C(d+2,3) + (t−1) d C(d+1,2) monomials, all columns t times as many; the density among all"
        " cubics is O(1/t)."),
    Claim("I-proposition-6", "Proposition 6", "identities of polynomials", Named("expansion.run_coefficients"),
        "The coefficient of a monomial is the sum of V_ik A_lm over the distinct permutations of its row indices."),
    Claim("I-proposition-9", "Proposition 9", "identities of polynomials", Named("expansion.run_symmetrization"),
        "|orb R| y_R = Σ |orb S| y_{S,m} over the ways to split R into a pair S and a row m."),
    Claim("I-corollary-10", "Corollary 10", "exact arithmetic", Named("expansion.run_linear_independence"),
        "One output coordinate satisfies C(d+2,3) linearly independent symmetrization relations."),
    Claim("I-remark-11", "Remark 11", "identities of polynomials", Named("expansion.run_copies"),
        "All single-column families of coefficients are copies of one, and so are all cross-column families."),
    Claim("I-example-12", "Example 12", "identities of polynomials", Named("ideals.run_hypersurface"),
        "d = t = 2: the ideal is generated by four linear forms and one quartic.", strength="confirmed in all degrees"),
    Claim("I-example-13", "Example 13", "exact arithmetic", Named("ideals.run_rank_one_ideal"),
        "d = 3, a = 1, t = 2: 10 linear relations do not suffice; 45 quadrics and 10 cubics are needed.",
        page=THEOREM_6, strength="confirmed in all degrees"),
    Claim("I-lemma-16", "Lemma 16", "identities of polynomials", Named("single_column.run_split_kernel"),
        "For d ≥ 3 a cubic that splits into a linear and a quadratic form is killed by a trace-zero operator, so its"
        " Lie flattening has rank below d² − 1."),
    Claim("I-proposition-17", "Proposition 17", "identities of polynomials", Named("single_column.run_low_rank_slice"),
        "The matrix N = (y_kkl) has rank at most 2a + 1, and the single-column cubic is v(x) · xᵀA x."),
    Claim("I-remark-18", "Remark 18", "exact arithmetic", Named("single_column.run_stabilizers"),
        "The kernel of the Lie flattening is the space of trace-zero operators that kill the cubic; it drops rank"
        " exactly if this stabilizer is nontrivial."),
    Claim("I-example-19", "Example 19", "exact arithmetic mod p", Named("single_column.run_octics"),
        "d = 3, t = 1: the variety has codimension 2 and its ideal is generated by 35 octics, which span the 45"
        " maximal minors of the Lie flattening.", strength="confirmed in all degrees"),
    Claim("I-remark-20", "Remark 20", "exact arithmetic mod p", Named("single_column.run_octics"),
        "The Lie flattening drops rank exactly if the orbit of the cubic is smaller than generic; for d = 3, t = 1"
        " its maximal minors generate the ideal."),
    Claim("I-example-21", "Example 21", "exact arithmetic", Named("single_column.run_three_forms"),
        "d = 4, a = t = 1: products of three forms, a cone of dimension 10; the Lie flattening drops from rank 15 to"
        " 10, its 11-minors have Jacobian rank 10 at a random point, and det N = 0 is a further quartic."),
    Claim("I-corollary-22", "Corollary 22", "identities of polynomials", Named("single_column.run_rank_one_cubic"),
        "For a = 1 the single-column cubic is a product of three linear forms."),
    Claim("I-remark-23", "Remark 23", "exact arithmetic", Named("single_column.run_rank_drop"),
        "The Lie flattening drops further for products of three forms than for linear × quadratic, and det N = 0 is"
        " an equation from the attention rank."),
    Claim("I-proposition-24", "Proposition 24", "identities of polynomials", Named("cross_column.run_slices"),
        "Mixed terms are quadratic in one context column; slices do not depend on the context; every pencil of slices"
        " has rank at most 2, which gives C(d,3)² C(d+2,3) cubics."),
    Claim("I-theorem-25", "Theorem 25", "identities of polynomials", Named("cross_column.run_flattening_rank"),
        "The D×d flattening has rank at most a, so its C(D,a+1) C(d,a+1) minors of size a+1 vanish."),
    Claim("I-example-26", "Example 26", "exact arithmetic", Named("ideals.run_rank_one_ideal"),
        "d = 3, a = 1, t = 2: minimal generators are 10 linear forms, 45 quadrics from Theorem 25 and 10 cubics from"
        " Proposition 24.", page=THEOREM_6, strength="confirmed in all degrees"),
    Claim("I-theorem-27", "Theorem 27", "identities of polynomials", Named("cross_column.run_syzygies"),
        "For a ≥ d there are at least C(D,d) − C(2d−1,d) independent relations among the maximal minors of the"
        " flattening."),
    Claim("I-example-28", "Example 28", "exact arithmetic", Named("cross_column.run_new_cubics"),
        "d = a = 3: the 20 maximal minors satisfy exactly 10 relations, which give cubics other than Proposition"
        " 24's."),
    Claim("I-example-29", "Example 29", "identities of polynomials", Named("ideals.run_hypersurface"),
        "d = t = 2: D₂₀ D₀₂ − D₁₁² is a minimal quartic invariant, because D_α = v^α det A."),
    Claim("I-theorem-30", "Theorem 30", "identities of polynomials", Named("veronese.run_veronese"),
        "D_{α,K,L} = v_K^α det A_{K,L} for 2 ≤ r ≤ min(d, a), so the 2×2 minors of catalecticants are invariants of"
        " degree 2r."),
    Claim("I-example-31", "Example 31", "identities of polynomials", Named("veronese.run_quartic"),
        "For r = 2 the construction gives the quartic of Example 29."),
    Claim("I-corollary-32", "Corollary 32", "identities of polynomials", Named("veronese.run_cross_target"),
        "For two target sets the Veronese coordinates are proportional: 2×2 minors of degree 2r vanish."),
    Claim("I-corollary-33", "Corollary 33", "identities of polynomials", Named("veronese.run_block"),
        "The block matrix with entries D_{β+γ,L} has rank one: its 2×2 minors vanish."),
    Claim("I-remark-34", "Remark 34", "identities of polynomials", Named("veronese.run_splits"),
        "The rank-one argument of Corollary 33 holds for every split α = β + γ, |β| + |γ| = r."),
    Claim("I-remark-35", "Remark 35", "exact arithmetic", Named("veronese.run_comparison"),
        "The minors of Corollaries 32 and 33 overlap, but neither list contains the other.",
        "As lists; but every minor of Corollary 32 is a sum of minors of Corollary 33: it adds nothing to the ideal."),
    Claim("I-example-36", "Example 36", "exact arithmetic", Named("ideals.run_full_rank_ideal"),
        "d = a = 3, t = 2: 10 linear forms, 10 + 10 cubics and quartics from Theorem 30, Corollary 33 and resultants;"
        " the sextics of r = 3 are not minimal.", page=THEOREM_6, strength="confirmed in all degrees"),
    Claim("I-proposition-39", "Proposition 39", "identities of polynomials", Named("resultants.run_common_factor"),
        "The slice quadrics q_m(z) = v(z) a_m(z) share the linear factor v."),
    Claim("I-theorem-40", "Theorem 40", "identities of polynomials", Named("resultants.run_resultants"),
        "On a line the resultants of combinations of slice quadrics vanish; their coefficients are quartic"
        " invariants."),
    Claim("I-example-41", "Example 41", "identities of polynomials", Named("resultants.run_line_example"),
        "d = 3: on a coordinate line the resultant of two slices is an explicit quartic that vanishes on the variety."),
    Claim("I-example-42", "Example 42", "exact arithmetic", Named("resultants.run_lines"),
        "d = 3: nine resultants on a line span six quartics, and finitely many lines give all quartics needed."),
    Claim("I-remark-43", "Remark 43", "exact arithmetic mod p", Named("resultants.run_line_count"),
        "Which finite collections of lines give all resultant quartics, and how should they be chosen?",
        "Exactly those on which no quartic of the Grassmannian vanishes; dim S_44(C^d) generic lines are enough, and"
        " fewer never are (15 for d = 3).", strength="answered"),
    Claim("I-proposition-44", "Proposition 44", "identities of polynomials", Named("cross_column.run_cross_rows"),
        "The coefficients of all output rows are V·B(A), so blocks of them have rank at most d."),
    Claim("I-section-6-mixed", "Section 6, mixed relations", "exact arithmetic", Named("ideals.run_mixed"),
        "Nonlinear relations between single-column and cross-column coefficients are not expected among the minimal"
        " generators (t ≥ 2)."),
    Claim("I-section-6-completeness", "Section 6, open problem", "exact arithmetic", Named("ideals.run_completeness"),
        "Do the families of the paper generate the ideal? (The paper does not claim it.)",
        "Yes for d ≤ 3. No for d ≥ 4: cubics are missing for a ≥ 3, quartics for a ≥ 2. With families 12 and 13 they"
        " do, for all d and a.", strength="answered", page=THEOREM_6),
    Claim("I-figure-1", "Figure 1", "certificates", Named("figures.run_quartic_slice"),
        "A plane section of the quartic Veronese invariant of d = t = 2."),
)  # fmt: skip


def find_claims(names: Sequence[str]) -> tuple[Claim, ...]:
    """The claims with these ids, in the order of the table; all of them if no id is given.

    >>> [claim.place for claim in find_claims(["I-proposition-2"])]
    ['Proposition 2']
    """
    known = {claim.id for claim in CLAIMS}
    for name in names:
        if name not in known:
            raise InputError(f"claim {name[:40]!r} given; one of {', '.join(sorted(known)[:3])} … is required")
    return tuple(claim for claim in CLAIMS if not names or claim.id in names)
