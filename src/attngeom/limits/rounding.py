"""Tolerances of floats: what counts as zero, as equal, or as a close call, and the precision of balls in bits."""

# files and processes
# Relative differences of numbers of size one below this are rounding errors, magnified by moderate conditions.
PRINTED_ROUNDING = 1e-12

# exact
DAMPING = 1e-3  # The damping of Levenberg and Marquardt at the start, relative to the diagonal.
LEAST_DAMPING = 1e-15  # Smaller dampings are lost to rounding.
DAMPING_EASED = 30.0  # What the damping is divided by after a step that lowers ‖r‖.
DAMPING_HARDENED = 8.0  # What the damping is multiplied by after a step that does not lower ‖r‖.
FIT_PROGRESS = 1e-9  # Steps that lower ‖r‖ by a smaller part end a fit.
# Matrices whose largest entry lies within this factor of 1 are taken as they are: sums of squares stay in range.
MODERATE_SIZE = 2.0**300
# Between the last singular value that counts and the next: a rank of floats with a smaller gap is unsure.
CLEAR_GAP = 1e3

# groups
SINGULAR_CONDITION = 1e12  # Beyond this condition number rows count as dependent.
GRAM_DEPENDENT = 1e13  # Beyond this condition number of their Gram matrix, rows count as dependent.
GRAM_WELL = 1e3  # Up to this condition number, least squares by Gram matrices lose no more than rounding is granted.
SMALLEST_DIVISOR = 1e-300  # Divisors are at least this: quotients by zero become large, not undefined.
PIVOT_SWAP = 1.05  # A pivot is exchanged for one larger by this factor: less gains nothing and may not end.
PIVOT_TIED = 1e-9  # Sizes that differ by less of themselves count as equal when the largest is chosen.
# Up to this ratio of pivots two Cholesky steps give an orthogonal factor to rounding; above, reflections are used.
CHOLESKY_SAFE = 1e6
RANDOM_CONDITION = 9.0  # Condition number of random matrices unless another one is asked for.

# network
# The first entry of at least this share of the largest is chosen: 1/(1 + 1/e), no quotient of simple numbers.
CHOICE_SHARE = 0.7310585786300049
SINGULAR_VALUES_EQUAL = 1e-8  # Singular values whose relative gap is smaller count as one.
SINGULAR_VALUES_CLOSE = 100.0  # A gap within this factor of `SINGULAR_VALUES_EQUAL` is a close call.
BALANCED_RANK = 1e-14  # Singular values below this times the size of the factors, for each row, are rounding errors.
INPUT_EXPONENTS = 600  # Powers of two of inputs: cubes of larger ones leave the floats.
SCORES_FLAT = 2.0**-7  # Scores that differ by less hardly change attention.
SCORES_SATURATED = 2.0**6  # Where scores differ by more, one token is all that counts.

# layer
INPUT_GRID = 2.0**-14  # Inputs of a black box are multiples of this: fifteen decimal digits say them exactly.
# The relative distance within which float coefficients count as those of a layer, unless another is given. The nearest
# layer is looked for with rank A bounded and all copies weighed alike, and its distance is enclosed: a little above the
# rounding of double precision suffices.
DECIDED_DISTANCE = 1e-9
# The relative error that recovered weights may have in what they reproduce, unless another is given. Splitting also
# serves values of black boxes, whose interpolation loses digits: larger than `DECIDED_DISTANCE`.
RECOVERED_ERROR = 1e-6
FIT_FIBER = 1e-11  # Singular values below this part of the largest belong to directions along the fiber.
FIT_REST = 1e-12  # Relative errors of a fit that are rounding errors.

# heads
HEADS_RESIDUAL = 1e-2  # Relative residual beyond which heads are not given, however noisy the input is said to be.
WIDE_GAP = 1e5  # A gap of couplings beyond which no further triple of slices is tried.
# Couplings inside one head differ less: a wider gap than this is needed to cut where the number is not given.
LEAST_GAP = 30.0
NESTED_ROWS = 1e-9  # Row spaces of floats count as nested if they are so to this relative accuracy.
TAYLOR_STEP = 2.0**-4  # Size of inputs whose outputs give the cubic part of softmax attention.

# models
# How far the written change may lie from the one that was computed, relative to it: float32 and its factors.
MERGED_CHANGE = 1e-5
LAYERS_ALIKE = 0.1  # Where two layers of the parent are so near in the sketch, both are compared in full.
# Below this similarity the stream is aligned by second moments as well, and the better of the two counts.
STREAM_DOUBT = 0.3
# The least width of a stream in the reference; in narrower ones only similarities from `UNIT_ALIKE` on decide.
REFERENCE_WIDTH = 64
LAYER_SHARED = 0.99  # From this similarity on a layer may be shared, and is compared as `compare` does.
CONTENT_ZERO = 1e-150  # Smaller contents are zero: a head that writes nothing is like no other.
GRAM_RIDGE = 1e-14  # What is added to Gram matrices, relative to their traces, so that they have Cholesky factors.
ALL_IN_COMMON = 0.9  # Heads or units whose pairs are so alike without being matched tell nothing of one another.
UNIT_ALIKE = 0.5  # A unit of one model counts as one of the other from this cosine on.
STREAM_RANK = 1e-9  # Singular values of the product of the tables below this part of the largest leave R open.
STREAM_RANK_SINGLE = 1e-5  # The same for tables in float32.
FREQUENCY_ROUNDING = 1e-13  # Relative rounding of a frequency that was computed as a power.
DEGENERATE_SIZE = 1e-10  # Relative size below which a head, or a difference of units, is zero up to rounding.
UNEVEN_ROWS = 8  # Exponents of two by which rows of a head may differ.
SCORES_FAR = 1e-4  # Squares of scores that differ by this share are far from equal, whatever their difference has lost.
# A rotary pair that turns by less, in radians over the whole context, is told from a plain one by weights only.
SLOW_ROTATION = 0.1
TENSORS_DIFFER = 10.0  # From so many times the expected residual on, two tensors differ; below nothing is said.
BLOCKS_DIFFER = 4.0  # The same for files with a scale for each few entries, whose errors are means of many.
# Cosine of two token tables from which the stream is taken to be the same; disguised streams are near 0.
SAME_STREAM = 0.5
# What the arithmetic may lose of the mean of squares by which rows differ after the best change of a stream.
STREAM_ROUNDING = 1e-9
PARALLEL_SINE = 1e-6  # Sines of angles below this are zero: the arc between two tensors is then a line.
# In place of the roundoff for float64 files: what the arithmetic of folding and alignment itself loses.
FOLDING_ROUNDING = 1e-12
PLAIN_RESIDUAL = 1.4  # Expected residual of a tensor that no matrix aligns, in units of the roundoff.
MEAN_ROUNDING = 0.42  # Root mean square of the relative error of rounding to nearest, in units of the roundoff.
# What expected residuals of products by latents are multiplied by: their errors are not independent.
RESIDUAL_MARGIN = 1.6
# Rows of two channels whose cosine is below so much of that of their taps are not what their scale is read from.
COLLINEAR_ROWS = 0.9
TENSORS_AGREE = 3.0  # Up to so many times the expected residual two tensors agree.
HEADS_AGREE = 1.4  # Up to so many times the expected residual two heads agree: theirs is a mean of many.
# Outputs that differ by so many units of roundoff, relative to the largest, do not tell two layers apart.
OUTPUTS_AGREE = 10.0
OUTPUTS_OPEN = 0.1  # Outputs that differ by more tell layers apart, however coarse the files are.
OUTPUT_ROUNDING = 1e-13  # In place of the roundoff for float64 files: what evaluation itself loses.
GROSS_DIFFERENCE = 0.05  # Weights that differ by this share differ grossly: rounding is out of the question.
NEAR_ISOMETRY = 1.3  # Condition numbers of a random symmetry are tried down to this; the next smaller one is 1.

# inspection
PRODUCT_EXPONENTS = 900  # Exponents of products over all layers that stay in the floats, with room for sums.

# canonical
CANONICAL_FIXED = 1e-8  # How far, relative to each tensor, canonical floats may be from their own canonical form.
GAUGE_RANK = 1e-12  # Singular values below this part of the largest are zero where a basis of a column space is chosen.
GAUGE_CLOSE_CALL = 30.0  # A singular value within this factor of the cut is a close call.
EXTREME_BITS = 500  # Bits beyond which extended precision may lose a path beside a larger one.
UNIT_ROUNDOFF = 2.0**-53  # Largest relative error of one rounding to double precision.
EXTENDED_EXPONENTS = 40_000  # Beyond the range of extended precision: such a shift gives zero or infinity.
FAITHFUL_OUTPUTS = 1e-8  # Outputs of a canonical form of floats may move by this, relative to each output row.
FAITHFUL_SCALE = 1e-12  # Relative error of the weights that is granted; a network of degree 3^l moves by 3^l times it.
FAITHFUL_BITS = 1024  # Precision of the balls that compare extreme weights with their canonical form.
PERTURBATION = 1e-15  # Relative errors of the weights that show what is lost to rounding: a few roundoffs.
ROW_SWAMPED = 1e-3  # A row that relative errors of 1e-15 in the weights change by so much is a rounding error.
ROW_NEGLIGIBLE = 1e-10  # Only rows below this part of the largest may be called rounding errors.
COLUMNS_APART = 100.0  # Columns that differ by more are tried apart.
FACTOR_KEPT = 1e-9  # A factor that is written by a basis of columns may lose this, relative to its norm.
NORM_PROGRESS = 0.9  # Sweeps that shrink the imbalance by less do not converge: rounding keeps them.
# The moments, relative to the tensors that they balance, at which the sweeps stop: the norm is least to rounding.
NORM_LEAST = 1e-8
NORM_ROUGH = 1e-2  # The relative imbalance at which rough sweeps stop.
NORM_RELAXATION = 1.45  # Factors that are nearly balanced are moved so many times as far: layers pull at each other.
NORM_NEAR = 0.6  # The relative imbalance from which on factors are moved farther than balances them.
# Grams with a smaller ratio of eigenvalues, or of pivots, are left to the factors themselves, which keep digits.
NORM_GRAM = 1e-10
HEADS_SAME = 1e-11  # Attention matrices that differ by less, relative to their size, are one.
HEADS_CLOSE_CALL = 1e-8  # Attention matrices that differ by less but are not one are a close call.

# comparison
ERROR_PROBABILITY = 1e-12  # Agreement with a larger error probability is not called equality.
CORRECTED_LARGEST = 100  # Exponents of weights from which products of equations leave the floats.
CORRECTED_LEAST = -300  # Exponents of weights up to which products of equations underflow.
# Singular values below these parts of the largest are taken as zero, step by step. Near a solution directions in which
# equations are dependent have singular values of the size of the distance to it; they vanish as the steps come closer,
# and what is left is solved for.
CORRECTION_RANKS = (1e-4, 1e-4, 1e-6, 1e-6, 1e-8, 1e-8, 1e-10, 1e-10, 1e-12, 1e-13, 1e-13, 1e-13)
CORRECTIONS_DIVERGE = 1e6  # Corrections beyond so many errors after four steps do not come back.
# Steps end when the equations hold and corrections move by less than this part of the largest, or of an error.
CORRECTIONS_STILL = 0.5
COMPLEX_STEP = 1e-30  # Step of derivatives by imaginary parts, which subtract nothing: far below all roundoff.
# What errors change to first order by such a part of their largest effect is solved for in any case.
CORRECTION_CLEAR = 1e-3
# Equations hold if they miss by less than this part of what the allowed errors of the weights change them by.
EQUATIONS_SOLVED = 0.05
EQUATION_ROUNDING = 2.0**-50  # Rounding errors of an equation, relative to the sum of its parts.
EQUATION_ROUNDINGS = 16.0  # A solution may miss by so many rounding errors of an equation.
OUTPUTS_AMPLIFIED = 100.0  # Outputs may differ by so many times the tolerance: errors of weights add up over layers.
ZERO_SINGULAR_VALUE = 1e-12  # Singular values below this are taken as zero, relative to the largest.
OUTPUTS_SWAMPED = 0.1  # Outputs of which errors of the weights explain more than this say nothing.
MATCH_RANK = 1e-13  # Singular values below this part of the largest are zero where a change of basis is solved for.
MATCH_EXACT = 1e-13  # A symmetry that misses by no more than this cannot be refined.
MATCH_IN_GAUGE = 1e-4  # A symmetry whose residual is larger is not worth a refinement in the gauge as given.
MATCH_AGAIN = 0.5  # A symmetry whose residual is larger is not worth a second refinement.
# Entries beyond this mean that a chain of changes of basis has run away; their products would overflow.
MATCH_OVERFLOW = 1e60
SCORES_UNSURE = 0.25  # Errors of scores that change attention by more than their first order.
GRADIENT_PROGRESS = 0.95  # The factor by which so many iterations must lower the residual.
GRADIENT_ROUNDING = 1e-15  # Residuals of this size, relative to the start, are rounding errors.
GRADIENT_ROUGH = 1e-2  # The largest relative error of a step; steps become exact as the residual becomes small.
PRODUCT_ROUNDING = 1e-15  # Rounding of a product of factors, relative to them.
HEAD_ZERO = 0.04  # A product of factors below so many times what makes two heads one, relative to these, is zero.
# Shares of a head are told apart in so many steps: inputs at which it is heard equally well are taken in turn.
SHARE_STEPS = 16
SEPARATING_BITS = (128, 512, 2048)  # Precisions in which inputs are tried that may separate two networks.
# Exponents of a group element beyond this are cut: what is lost lies below the smallest float beside entries of 1.
ELEMENT_EXPONENTS = 900
FLOAT_EXPONENTS = 2200  # From the smallest float to the largest.
SUM_ROUNDING = 2.0**-48  # Rounding of sums of some thirty products, relative to the largest.
NOISE_EXPLAINS = 4.0  # Differences up to so many times the noise are explained by it.
NOISE_EXCLUDED = 30.0  # Differences from so many times the noise on are not explained by it.
WORST_AMPLIFIED = 10_000.0  # What the worst direction sees may differ by so many times τ and still be called the same.
LARGEST_CHANGE = 0.05  # Outputs that differ by more are never called the same, whatever the tolerance.
ENCLOSURE_BITS = (256, 1024)  # Precisions of the balls, tried in turn.
DIRECTIONS_APART = 10.0  # Directions whose singular values differ by this factor are taken apart.
NOISE_DECIDES = 10 * NOISE_EXCLUDED  # From so many times the noise on, a single output decides.

# recovery
INVERSE_ACCEPTED = 1e-10  # Relative residual of an inverse of a layer that counts.
LEAST_SEPARATION = 1e-9  # Relative distance of eigenvalues below which a layer is not told from the others.
# Inputs without a plan are those of a step if they differ by less, relative to the largest: they were not rounded.
SAME_QUERY = 1e-3
PEELING_BITS = (192, 384, 768, 1536)  # Precisions of a recovery of exact weights, tried in turn.
# Condition numbers of the equations of a layer that are accepted, attempt by attempt.
PEELING_CONDITIONS = (300.0, 300.0, 1e4, 1e6)
# Of tokens before a layer, in the unit of length at which the scores of layer 1 are of size one.
FIRST_DIFFERENCE = 5e-3
BEST_DIFFERENCE = 4.5e-3  # With scores of size one: the part of the next layer, c⁴/16, is then about rounding, ε/c².
LAST_DIFFERENCE = 0.5  # Of tokens before the last layer, after which nothing is lost.
# How far attention moves the mean, relative to the size of the tokens, where scores are neither small nor large.
ATTENTION_VISIBLE = 0.03
RECOVERY_CLEAR = 1e-6  # Relative accuracy of M below which a warning is given.

# learning
# Numbers whose squares and products stay in the range of floats: samples with larger ones are left out of ranks.
LARGE_DENOMINATOR = 1e100
RANK_BITS = 128  # Precision of the balls that enclose a Jacobian.
MAYBE_EQUAL = 1e-12  # Float matrices nearer than this, relative to their norms, may be equal.
RANK_NOISE = 64 * 2.0**-52  # Singular values below this share of the largest one are rounding.

# interop
# Central differences of polynomials and softmax at entries of order one are right to about eight digits.
DIFFERENCE_STEP = 1e-4
# Singular values below this share of the largest are zero: far above the differences, far below what is seen.
DIFFERENCE_RANK = 1e-6
STABLE_STEP = 0.1  # The suggested step is this share of the largest stable one.

# papers
FIT_INTERPOLATES = 1e-10  # Relative residual at the samples of a fit below which it interpolates them.
FIT_EQUALS = 1e-5  # Relative residual at other samples below which the fitted function is the true one.
# Outputs of size 1 computed in double precision that differ by more come from different functions.
DIFFERENT_OUTPUTS = 1e-12

# explore
# Heads whose matrices A and value maps differ by less than this, relative to their norm, are shown as repeated.
HEADS_REPEATED = 1e-9

# programs
# Angles whose ratio is a fraction of numbers up to this bound, in the digits of float32, are commensurable.
ANGLES_RATIO = 64
ANGLES_DENOMINATOR = 16  # π by a fraction with a denominator up to this bound has an algebraic cosine.
ANGLES_TURN = 8192  # A turn of the circle divided by a power of two up to this bound has an algebraic cosine.
ANGLES_DIGITS = 3e-7  # Angles that are nearer than this, relative to their size, are equal in the digits of float32.
# Relative difference of outputs of a traced program and of the network, which computes in float32.
TRACED_OUTPUTS = 1e-6
