"""The claims of [G] as data."""

from __future__ import annotations

from attngeom.papers import (
    deep,
    deep_fibers,
    figures,
    layer_fibers,
    layer_geometry,
    remarks,
    samples,
    softmax,
    virtual_fibers,
)
from attngeom.papers.records import Claim

THEOREMS = "docs/theorems/dimension.md"

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "G-section-1-samples", "G", "Section 1, sample complexity",
        "The number of samples that determine a function grows linearly with the dimension of the set of functions,"
        " whatever the number of parameters is.",
        "double precision", "proven", samples.run_samples,
        "attngeom dim --widths 2,2 --attention 1 --tokens 2", "attngeom.dimensions.Dimension.samples",
        page="docs/theorems/training.md, Theorem N",
    ),
    Claim(
        "G-definition-3", "G", "Definition 3",
        "The weights of a network with widths d_i and attention widths a_i have Σ d_i(2a_i + d_{i−1}) entries.",
        "exact arithmetic", "proven", deep.run_shapes,
        "attngeom dim --widths 2,1 --attention 1 --tokens 2", "attngeom.network.Architecture.num_parameters",
        "Q_i and K_i act on the input of layer i: their shape is a_i×d_{i−1}, and the count is Σ d_{i−1}(2a_i + d_i).",
        is_false=True,
    ),
    Claim(
        "G-section-2-cost", "G", "Section 2, cost",
        "One lightning layer can be computed with O(t) operations; by way of normalized scores it takes O(t²).",
        "operation counts", "proven", remarks.run_cost,
        "attngeom forward WEIGHTS X", "attngeom.network.forward",
    ),
    Claim(
        "G-lemma-3.1", "G", "Lemma 3.1",
        "If Kᵀ Q = K'ᵀ Q' has rank a ≤ d, there is exactly one C ∈ GL_a with K' = C K and Q' = C⁻ᵀ Q.",
        "exact arithmetic", "proven", layer_fibers.run_query_key,
        "attngeom compare A B", "attngeom.compare",
    ),
    Claim(
        "G-theorem-3.2", "G", "Theorem 3.2",
        "For t ≥ 2 the fiber of one layer in (A, V), up to the scale (λA, V/λ), is one point; two points"
        " (k qᵀ, h vᵀ) and (v qᵀ, h kᵀ) if both ranks are 1; and A = 0 or V = 0 for the zero function.",
        "exact arithmetic", "proven", layer_fibers.run_fibers,
        "attngeom inspect WEIGHTS", "attngeom.layer.splitting.split_layer",
        "The statement stands. The proof takes the quadratic form of A with rk A > 1 to be irreducible; it is zero for"
        " A = ((0, 1), (−1, 0)) and splits for A = diag(1, −1).",
    ),
    Claim(
        "G-corollary-3.3", "G", "Corollary 3.3",
        "For t ≥ 2 and d, d' ≥ 2 or d, a ≥ 2 the dimension is 2αd − α² + d d' − 1, α = min(a, d).",
        "certificates", "proven", layer_fibers.run_dimension,
        "attngeom dim --widths 3,2 --attention 2 --tokens 2 --prove", "attngeom.dimensions.dimension",
    ),
    Claim(
        "G-theorem-3.4", "G", "Theorem 3.4",
        "The functions of one layer form a closed set; its boundary points are A = k qᵀ, V = h kᵀ, and its singular"
        " points are those with rk A · rk V ≤ 1.",
        "exact arithmetic", "proven", layer_geometry.run_geometry,
        "attngeom inspect WEIGHTS", "attngeom.inspection.geometry.layer_stratum",
        "For 1 < a < d the points with rk A < a are singular too.",
        is_false=True,
    ),
    Claim(
        "G-corollary-A.1", "G", "Corollary A.1",
        "The set of functions of one layer is closed in the Euclidean topology.",
        "identities of polynomials", "proven", layer_fibers.run_closed,
        "attngeom certify COEFFS", "attngeom.certification.certify",
    ),
    Claim(
        "G-corollary-A.2", "G", "Corollary A.2",
        "The projective parametrization by (A, V) is birational onto its image, with special fibers of two points.",
        "exact arithmetic", "proven", layer_fibers.run_birational,
        "attngeom inspect WEIGHTS", "attngeom.layer.splitting.split_layer",
    ),
    Claim(
        "G-lemma-A.3", "G", "Lemma A.3",
        "(A, V) is critical for the parametrization exactly if A = k qᵀ and V = h kᵀ.",
        "exact arithmetic", "proven", layer_geometry.run_critical,
        "attngeom inspect WEIGHTS", "attngeom.inspection.geometry.layer_stratum",
        "It is also critical if one of A, V is zero, whatever the rank of the other.",
        is_false=True,
    ),
    Claim(
        "G-corollary-A.4", "G", "Corollary A.4",
        "φ_(A,V) is a singular point exactly if rk A · rk V ≤ 1.",
        "exact arithmetic", "proven", layer_geometry.run_singular,
        "attngeom inspect WEIGHTS", "attngeom.inspection.geometry.layer_stratum",
        "Singular exactly if rk A · rk V ≤ 1, or a < d and rk A < a.",
        is_false=True,
    ),
    Claim(
        "G-proposition-A.5", "G", "Proposition A.5",
        "One layer is linearly isomorphic to its table of quadrics α_m ν_n, columns of A times rows of V.",
        "identities of polynomials", "proven", layer_fibers.run_table,
        "attngeom coefficients WEIGHTS", "attngeom.layer.coefficients.quadric_table",
    ),
    Claim(
        "G-corollary-A.6", "G", "Corollary A.6",
        "φ_W is on the relative boundary exactly if W is critical; the functions missing from the Zariski closure are"
        " A = k qᵀ, V = h k̄ᵀ with k ∈ C^d not real.",
        "certificates", "proven", layer_geometry.run_boundary,
        "attngeom certify COEFFS", "attngeom.certification.certify",
        "In the proof, k must not be a multiple of a real vector (k = i e₁ gives a function with real weights).",
    ),
    Claim(
        "G-lemma-3.5", "G", "Lemma 3.5",
        "With hidden widths δ ≤ d_0, d_l and rk L = δ, weights (A, V) with the same virtual weights (M, L) differ by"
        " unique C_i ∈ GL_δ between the layers.",
        "exact arithmetic", "proven", virtual_fibers.run_virtual_fibers,
        "attngeom compare A B", "attngeom.compare",
    ),
    Claim(
        "G-lemma-3.6", "G", "Lemma 3.6",
        "φ(X) = L X Π_i D_{l−i} Xᵀ M_{l−i+1} X with D_i = D_{i−1} Xᵀ M_i X D_{i−1} Xᵀ M_iᵀ X D_{i−1}, D_0 = I.",
        "identities of polynomials", "proven", deep.run_recursion,
        "attngeom forward WEIGHTS X", "attngeom.network.virtual.forward_recursion",
    ),
    Claim(
        "G-equation-12", "G", "Equation 12",
        "The unrolled form: a word in the M_i and their transposes, read off base-3 digits, of length (3^l − 1)/2.",
        "identities of polynomials", "proven", deep.run_word,
        "attngeom forward WEIGHTS X", "attngeom.network.virtual.forward_word",
        "The last factor is x_{k_m}ᵀ A_1 x_k with the summation index k_m, not x_m, m = (3^l − 1)/2.",
        is_false=True,
    ),
    Claim(
        "G-equation-13", "G", "Equation 13",
        "M_i ↦ λ_i M_i, L ↦ ρ L leaves the function unchanged if Π λ_i^(3^(l−i)) = 1/ρ.",
        "exact arithmetic mod p", "proven", deep.run_scales,
        "attngeom teleport WEIGHTS --out W2", "attngeom.comparison.virtual.virtual_scales",
    ),
    Claim(
        "G-theorem-3.7", "G", "Theorem 3.7",
        "If t ≥ 3, L ≠ 0, rk M_i ≥ 2 for all i and M_i is not skew-symmetric for i > 1, the fiber in (M, L) consists of"
        " the rescalings of Equation 13.",
        "exact arithmetic mod p", "proven", deep_fibers.run_deep_fibers,
        "attngeom compare A B", "attngeom.compare",
        "False for a skew-symmetric M_1: with J = ((0, 1), (−1, 0)) the networks (J, B, L) and (B, J, L/det B) are"
        " equal. With M_1 not skew-symmetric either it is proven, for t ≥ 2. The printed proof takes the quadric of a"
        " matrix of rank 2 to be irreducible, which fails for diag(1, −1), and a factor of its Equation 30 to be"
        " nonzero at x_2 = x_3, which fails for i ≥ 3.",
        is_false=True,
        page=f"{THEOREMS}, Theorem F",
    ),
    Claim(
        "G-remark-genericity", "G", "Section 3.3, after Theorem 3.7",
        "The conditions of Theorem 3.7 are generic if d_i, a_i ≥ 2 for all i.",
        "exact arithmetic", "proven", remarks.run_genericity,
        "attngeom inspect WEIGHTS", "attngeom.inspection.hypotheses.check_hypotheses",
    ),
    Claim(
        "G-corollary-3.8", "G", "Corollary 3.8",
        "For t ≥ 3, a_i ≥ 2 and hidden widths δ ≤ d_0, d_l the dimension is"
        " 2α_1 d_0 − α_1² + δ(d_0 + d_l) − δ² − l + Σ_{i>1} (2α_i δ − α_i²).",
        "certificates", "proven", deep.run_deep_dimension,
        "attngeom dim --widths 3,3,3 --attention 2 --tokens 3 --prove", "attngeom.dimensions.dimension",
        page=f"{THEOREMS}, Corollary C",
    ),
    Claim(
        "G-remark-parameters", "G", "Section 3.3, after Corollary 3.8",
        "For a = δ = d there are (3/2) d² l parameters against dimension d²(l + 1) − l: a ratio of 3/2.",
        "certificates", "proven", deep.run_parameter_count,
        "attngeom dim --widths 4,4,4 --attention 4 --tokens 3", "attngeom.network.Architecture.num_parameters",
        "There are 3 d² l parameters, and the ratio tends to 3 (2 if the entries of A and V are counted).",
        is_false=True,
    ),
    Claim(
        "G-theorem-3.9", "G", "Theorem 3.9",
        "For one softmax layer and t ≥ 2, φ = 0 only if V = 0, and else the fiber in (A, V) is a single point.",
        "double precision", "proven", softmax.run_softmax_fibers,
        "attngeom compare A B", "attngeom.compare",
        "The statement stands. Equation 34 in the proof lacks a factor t − 1 in both numerators; with it the proof goes"
        " through.",
    ),
    Claim(
        "G-section-3.4-normalizers", "G", "Section 3.4, normalizers",
        "Theorem 3.9 holds for every injective S: R → R_{>0} with S(0) = 1; S(x) = e^{x/τ} replaces A by A/τ.",
        "identities of polynomials", "proven", remarks.run_normalizers,
        "attngeom dim --kind softmax --temperature 1/2 --widths 3,3,3 --attention 2", "attngeom.network.Architecture",
        "Deep networks: Conjecture 3.10 is proven for S that is smooth near 0 with S'(0) ≠ 0 and M_i, i < l, not"
        " skew-symmetric; for other injective S it is open.",
    ),
    Claim(
        "G-conjecture-3.10", "G", "Conjecture 3.10",
        "For deep softmax networks the generic fiber in (M, L) is a single point; so the dimension is that of"
        " Corollary 3.8 plus l (Equation 16).",
        "certificates", "proven", softmax.run_deep_softmax,
        "attngeom dim --kind softmax --widths 3,3,3 --attention 2 --tokens 3 --prove", "attngeom.dimensions.dimension",
        "It is a theorem: the fiber is one point unless a layer before the last is blind (Theorem A; also P. V. Konda,"
        " Identifiability and Observability of Deep Normalized Attention, 2026).",
        page=f"{THEOREMS}, Theorem A",
    ),
    Claim(
        "G-section-4-skip", "G", "Section 4, skip connections",
        "With skip connections the parametrization by (M, L) is expected to be generically one-to-one.",
        "certificates", "proven", deep.run_skip,
        "attngeom dim --residual --widths 2,2,2 --attention 2 --tokens 3 --prove", "attngeom.dimensions.dimension",
        "The scale (λA, V/λ) of every layer remains; what breaks is GL(δ) between layers, so (M, L) is no parameter.",
        is_false=True,
    ),
    Claim(
        "G-section-4-heads", "G", "Section 4, heads",
        "Several heads introduce new symmetries: their permutations.",
        "certificates", "proven", remarks.run_heads,
        "attngeom dim --heads 2 --widths 4,4 --attention 2 --prove", "attngeom.dimensions.dimension",
        "Softmax: the only new ones (Theorem D). Lightning: the only new ones for heads that form a direct sum"
        " (Theorem H); heads of full rank also mix continuously.",
    ),
    Claim(
        "G-figure-1", "G", "Figure 1",
        "A 3-dimensional affine slice of M_{2,1,2}, t = 2: a surface with a singular line, part of which is only in the"
        " Zariski closure.",
        "certificates", "proven", figures.run_umbrella,
        "attngeom reproduce", "attngeom.papers.figures.run_umbrella",
    ),
    Claim(
        "G-figure-2", "G", "Figure 2",
        "The word of Equation 12 as a diagram of nested mirror-symmetric blocks.",
        "exact arithmetic", "proven", figures.run_word_diagram,
        "attngeom reproduce", "attngeom.network.virtual.word",
    ),
    Claim(
        "G-figure-3", "G", "Figure 3",
        "For l = 2, t = 3, a = 2 and δ = 3 … 10 the numerical rank of the Jacobian equals the expected dimension.",
        "double precision", "supported", figures.run_dimension_plot,
        "attngeom dim --kind softmax --widths 10,10,10 --attention 2 --tokens 3", "attngeom.network.tangent.jacobian",
    ),
)  # fmt: skip
