"""The claims of [G] as data."""

from __future__ import annotations

from attngeom.papers.records import Claim, Named

THEOREMS = "docs/theorems/dimension.md"

CLAIMS: tuple[Claim, ...] = (
    Claim("G-section-1-samples", "Section 1, sample complexity", "double precision", Named("samples.run_samples"),
        "The number of samples that determine a function grows linearly with the dimension of the set of functions,"
        " whatever the number of parameters is.", page="docs/theorems/training.md, Theorem N"),
    Claim("G-definition-3", "Definition 3", "exact arithmetic", Named("remarks.run_shapes"),
        "The weights of a network with widths d_i and attention widths a_i have Σ d_i(2a_i + d_{i−1}) entries.",
        "Q_i and K_i act on the input of layer i: their shape is a_i×d_{i−1}, and the count is Σ d_{i−1}(2a_i + d_i).",
        is_false=True),
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
        "For 1 < a < d the points with rk A < a are singular too.", is_false=True),
    Claim("G-corollary-A.1", "Corollary A.1", "identities of polynomials", Named("layer_fibers.run_closed"),
        "The set of functions of one layer is closed in the Euclidean topology."),
    Claim("G-corollary-A.2", "Corollary A.2", "exact arithmetic", Named("layer_fibers.run_birational"),
        "The projective parametrization by (A, V) is birational onto its image, with special fibers of two points."),
    Claim("G-lemma-A.3", "Lemma A.3", "exact arithmetic", Named("layer_geometry.run_critical"),
        "(A, V) is critical for the parametrization exactly if A = k qᵀ and V = h kᵀ.",
        "It is also critical if one of A, V is zero, whatever the rank of the other.", is_false=True),
    Claim("G-corollary-A.4", "Corollary A.4", "exact arithmetic", Named("layer_geometry.run_singular"),
        "φ_(A,V) is a singular point exactly if rk A · rk V ≤ 1.",
        "Singular exactly if rk A · rk V ≤ 1, or a < d and rk A < a.", is_false=True),
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
        "The last factor is x_{k_m}ᵀ A_1 x_k with the summation index k_m, not x_m, m = (3^l − 1)/2.", is_false=True),
    Claim("G-equation-13", "Equation 13", "exact arithmetic mod p", Named("deep.run_scales"),
        "M_i ↦ λ_i M_i, L ↦ ρ L leaves the function unchanged if Π λ_i^(3^(l−i)) = 1/ρ."),
    Claim("G-theorem-3.7", "Theorem 3.7", "exact arithmetic mod p", Named("deep_fibers.run_deep_fibers"),
        "If t ≥ 3, L ≠ 0, rk M_i ≥ 2 for all i and M_i is not skew-symmetric for i > 1, the fiber in (M, L) consists of"
        " the rescalings of Equation 13.",
        "False for a skew-symmetric M_1: with J = ((0, 1), (−1, 0)) the networks (J, B, L) and (B, J, L/det B) are"
        " equal. With M_1 not skew-symmetric either it is proven, for t ≥ 2. The printed proof takes the quadric of a"
        " matrix of rank 2 to be irreducible, which fails for diag(1, −1), and a factor of its Equation 30 to be"
        " nonzero at x_2 = x_3, which fails for i ≥ 3.", is_false=True, page=f"{THEOREMS}, Theorem F"),
    Claim("G-remark-genericity", "Section 3.3, after Theorem 3.7", "exact arithmetic", Named("remarks.run_genericity"),
        "The conditions of Theorem 3.7 are generic if d_i, a_i ≥ 2 for all i."),
    Claim("G-corollary-3.8", "Corollary 3.8", "certificates", Named("deep.run_deep_dimension"),
        "For t ≥ 3, a_i ≥ 2 and hidden widths δ ≤ d_0, d_l the dimension is 2α_1 d_0 − α_1² + δ(d_0 + d_l) − δ² − l +"
        " Σ_{i>1} (2α_i δ − α_i²).", page=f"{THEOREMS}, Corollary C"),
    Claim("G-remark-parameters", "Section 3.3, after Corollary 3.8", "certificates",
        Named("remarks.run_parameter_count"),
        "For a = δ = d there are (3/2) d² l parameters against dimension d²(l + 1) − l: a ratio of 3/2.",
        "There are 3 d² l parameters, and the ratio tends to 3 (2 if the entries of A and V are counted).",
        is_false=True),
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
        "For deep softmax networks the generic fiber in (M, L) is a single point; so the dimension is that of Corollary"
        " 3.8 plus l (Equation 16).",
        "It is a theorem: the fiber is one point unless a layer before the last is blind (Theorem A; also P. V. Konda,"
        " Identifiability and Observability of Deep Normalized Attention, 2026).", page=f"{THEOREMS}, Theorem A"),
    Claim("G-section-4-skip", "Section 4, skip connections", "certificates", Named("remarks.run_skip"),
        "With skip connections the parametrization by (M, L) is expected to be generically one-to-one.",
        "The scale (λA, V/λ) of every layer remains; what breaks is GL(δ) between layers, so (M, L) is no parameter.",
        is_false=True),
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
)  # fmt: skip
