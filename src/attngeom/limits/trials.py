"""How many samples, starts and steps a search takes. More never change an answer that was certain."""

# exact
REFUSED_STEPS = 8  # Steps in a row that do not lower ‖r‖ after which a fit ends.
LIFTING_PRIMES = 64  # Primes from which rationals are lifted: numbers of about a thousand bits.
PRIMES_TRIED = 8  # Primes that are tried for one that divides no denominator.

# network
SIZES_BEYOND = 5  # Powers of two beyond the largest natural size of an input that are tried.
ALL_SIZES = 36  # Sizes of inputs that are tried, natural ones and others.
SIZES_MEASURED = 128  # Sizes of inputs at which scores are measured to choose among them.
SIZE_MARGIN = 8  # Powers of two around the natural sizes at which scores are measured.
# Rounds of additions of rows that make a random unimodular matrix: all rows are mixed, entries stay small.
ADDITION_ROUNDS = 6
LEAST_TOKENS = 3  # Fewer tokens see less of softmax attention.

# layer
SPLITTING_LINES = 200  # Random lines on which factors of cubics are told apart; nearly all lines do.
NORM_SAMPLES = 64  # Pseudo-random directions at which eigenvalues bound a distance from below.
SPLITTING_SWEEPS = 30  # Sweeps that improve A and V in turn; they end earlier once little is gained.
INTERPOLATION_CHECKS = 3  # Further inputs at which interpolated coefficients are compared with the black box.
NEAREST_STARTS = 12  # Starts of the search for the nearest layer.
NEAREST_STEPS = 60  # Damped Gauss-Newton steps of each start.
NEAREST_ALTERNATIONS = 50  # Sweeps that improve A and V in turn before these steps.

# dimensions
JACOBIAN_TOKENS = 3  # Tokens of a sample of a Jacobian: one more than scores compare, and each costs a column.
SPARE_JACOBIAN_ROWS = 4  # Rows beyond the rank: an accidental drop of the rank mod p becomes unlikely.
# More tokens per sample make products cheaper up to about the width; beyond that they only cost memory.
KRYLOV_TOKENS = 256
KRYLOV_RIGHT = 16  # Columns of V: more make the Hankel matrix cheaper.
KRYLOV_LEFT = 128  # Columns of U: more in relation to V make products fewer.
# So many samples of which all outputs count were enough in every case tried; the next attempt has more of them.
KRYLOV_FULL_SAMPLES = 4
KRYLOV_CHECKPOINTS = 32  # Blocks that are kept for a recheck, which then needs so many times fewer products.
# Longer inputs cost memory; further tokens are left out where that keeps bounds valid, or for an estimate.
POINT_TOKENS = 8
# Exponentials saturate at large scores, and average tokens at small ones: inputs of several sizes see past both.
INPUT_SCALES = (1.0, 0.5, 2.0, 0.25, 4.0, 0.125, 8.0)
SAMPLE_DOUBLINGS = 3  # Times that the number of samples is doubled while the rank still grows.
# Samples for each weight, tried in turn, where outputs have roots that exist at few samples.
ROOT_SAMPLES = (4, 16, 48)
ROOT_SEEDS = 16  # Random weights that are tried for some at which all roots exist mod p.
# Distinct tokens of a sample, where fewer tokens lose nothing: recurrences and masks, at least one more than heads.
PROGRAM_TOKENS = 3

# programs
SIGN_WEIGHTS = 16  # Random weights at which comparisons are looked at, before they count as fixed.
SIGN_INPUTS = 64  # Random inputs of sizes from 0.03 to 30 at each of these weights.

# heads
SLICE_TRIPLES = 8  # Triples of slices that are tried for the eigenvectors; the one with the widest gap is taken.
BLOCK_NEWTON_STEPS = 4  # Newton steps of a block; each squares the error.
BLOCK_SCALINGS = 2  # Times that slices are made even by changes of basis: later systems are then well conditioned.
# Conjugate gradients for the changes of basis that separate the blocks; each Newton step begins them anew.
BLOCK_GRADIENT_STEPS = 30
RANDOM_SLICES = 12  # Random slices of a table of quadrics whose common blocks are looked for.
WIDE_SLICES = 4  # Random slices where each costs much.
NORMAL_EQUATIONS = 6  # Random equations of T^⊥ whose second derivatives are stacked.
MIXED_SLICES = 3  # Random combinations of slices that stand for all of them in an exact commutant.
TAYLOR_SIZES = 5  # Values at so many sizes of the input cancel the parts of degree 5 to 2·5 + 1 of the odd expansion.
SUMMAND_ELEMENTS = 40  # Elements that are tried before a summand counts as not split.

# models
MOMENT_STEPS = 25  # Steps of the iteration at most; each is a polar factor.
LEAST_NORM_STEPS = 60  # Of Newton's method for a quartic, from above: each takes a quarter of what is left at least.
# Directions of the sketch of a layer: cosines of sketches are right to about 1/48, and the best layer stands out.
SKETCH_DIRECTIONS = 48
INVARIANT_DEGREE = 3  # Largest total degree of an invariant in the random residues.
LIVE_TOKENS = 12  # Tokens of the input at which another library is compared.
RANDOM_PROJECTIONS = 12  # Random projections by which rows are paired: equal ones agree in all of them.
OUTPUT_TOKENS = 8  # Tokens of the inputs at which a written model is compared.
OUTPUT_CHECKS = 2  # Inputs at which a written model is compared.
WITNESS_TOKENS = 6  # Tokens of a random input that shows two layers to differ.
WITNESS_PATCHES = 2**10  # The same where all tokens of an image are needed to show its table: 32 patches a side.
CHOICE_PATHS = 64  # Pairs of states between which a change of the choice of experts is looked for.
CHOICE_BISECTIONS = 40  # How closely a change of the choice of experts is located: to 1e-12.
WRONG_HEADS = 16  # So many heads of a mixer that do not fit are looked at, with steps of all sizes.
WITNESS_STEPS = 24  # Tokens of the inputs that are made for such a head.
WRONG_EXPERTS = 16  # So many experts that do not fit are looked at, each at up to four states.
EXPERT_STATES = 1024  # Random states among which those are looked for that choose a given expert.

# canonical
# Primes of 61 bits at which exact weights are compared: wrong ones pass with probability below 1e-30.
FAITHFUL_PRIMES = 2
FAITHFUL_INPUTS = 2  # Random inputs, each with all output rows, at which a canonical form is compared.
TRIED_SIZES = 8  # Sizes of inputs that are tried: the natural ones, thinned out.
GRADIENT_STEPS = 500  # Steps along the fiber towards a larger gradient; they end earlier once none is gained.
NORM_SWEEPS = 2000  # Sweeps over all factors for weights of least norm; slow ones end by their progress.
NORM_PATIENCE = 100  # Sweeps after which the imbalance must have shrunk by `NORM_PROGRESS`.
ROUGH_NORM_SWEEPS = 40  # Sweeps that only balance roughly, where a start is all that is needed.

# comparison
COMPARED_PRIMES = 8  # Primes after which agreement that is not yet negligible stays a probability.
RANDOM_ERRORS = 8  # Random errors from which the second order of what errors change is told.
# What a solution misses is solved for so many times: small entries become exact relative to themselves.
CORRECTION_REPEATS = 3
OUTPUT_INPUTS = 24  # Inputs at which outputs of homogeneous networks, and of one layer, are compared.
MORE_OUTPUT_INPUTS = 108  # Inputs at which outputs of deep networks are compared whose attention may saturate.
VISIBLE_INPUTS = 8  # Inputs at which outputs are computed without rounding where floats cannot tell.
VISIBLE_AT = 3  # Networks whose outputs differ at so many of them are not called the same.
SPREAD_EXPONENTS = 12  # Exponents of two by which the rows of some inputs differ.
REFINEMENT_STEPS = 10  # Gauss-Newton steps of a symmetry; near a solution each squares the residual.
GRADIENT_ITERATIONS = 300  # Conjugate gradients of one step.
MANY_GRADIENT_ITERATIONS = 1500  # Conjugate gradients of one step whose goal is in sight.
GRADIENT_PATIENCE = 20  # Conjugate gradients stop when so many iterations do not lower the residual.
COMPLETIONS = 16  # Random completions of a basis, of which the best conditioned is taken.
HEAD_INPUTS_TRIED = 384  # Inputs from which those are chosen at which some head is heard best.
HEAD_INPUTS_KEPT = 3  # Inputs that are kept for each head.
ALL_HEAD_INPUTS_KEPT = 144  # Inputs that are kept for all heads together.
SATURATED_SCORES = (4, 6, 8, 10)  # Scores of these powers of two: attention is about to be saturated, or is.
SEPARATING_INPUTS = 12  # Inputs of four sizes that may separate two networks.
SEPARATING_SHRINK = 16  # Inputs are tried in four sizes, each so many times smaller: large ones saturate gates.
HEAD_ORDERS = 120  # Orders of equal heads that are tried: all of five.
POWER_SWEEPS = 6  # Passes in which powers of two of neighbouring tensors are balanced.
OUTPUT_POWER_SWEEPS = 3  # Passes in which powers of two of outputs are balanced.
NOISE_COPIES = 12  # Random errors of the weights whose effects give the noise of outputs.
FIRST_SEPARATIONS = 4  # Inputs of size one that are tried first: they separate nearly all networks.
SEPARATIONS_AT_A_SIZE = 2  # Inputs of each further size.
SINGULAR_BASES = 12  # Bases of singular directions whose sizes are tried.

# equations
FIRST_WEIGHT_POINTS = 64  # Points at which highest weight vectors are evaluated first; as a rule they suffice.
LEDGER_GROUP = 6  # Members that are looked at together until all modules are hit: a few show them.
# Evaluation points beyond the rank; they make an accidental drop of the rank less likely still.
SPARE_WEIGHT_POINTS = 8

# recovery
INVERSE_STARTS = 6  # Random starts of the inverse of a layer.
NEWTON_STEPS = 40  # Newton steps of one start; those that converge need ten.
OVERSAMPLING = 3  # Equations for each unknown of a least squares problem with noise.
POLISH_STEPS = 40  # Damped steps that improve recovered weights; they end once nothing is gained.
PEELING_ATTEMPTS = 8  # Random starts of a recovery in floats.
EXACT_CHECKS = 4  # Random inputs at which recovered weights and the black box must agree exactly.
HELD_OUT = 32  # Inputs that are not used to recover weights, where their error is measured.
SPARE_FIELD_ROWS = 6  # Equations beyond the unknowns of a layer over GF(p).
# So many random planes in a row without a pair of tokens end the search; about one in two holds a pair.
EMPTY_PLANES = 40
SOFTMAX_ATTEMPTS = 4  # Random starts of a recovery of softmax attention, of which the best is given.

# certification
# Primes mod which an invariant that does not vanish is looked for; each fails for a few values only.
REFUTATION_PRIMES = 8

# learning
# Exponentials saturate at large scores and average tokens at small ones; for certificates, few sizes.
FEW_INPUT_SCALES = (1.0, 0.5, 2.0, 0.25)
BRACKET_FUNCTIONS = 6  # Functions whose brackets with all others are formed before the search gives up.
SPARE_SAMPLES = 8  # Samples beyond the number of directions: an accidental drop of the rank becomes unlikely.
BLOCKS_TRIED = 8  # Blocks whose smaller rank is looked at before none is called singular.

# interop
HESSIAN_INPUTS = 400  # Inputs at which the Hessian is measured; its eigenvalues are told with two digits.
INVERSE_TEMPERATURE = 10_000  # Of the sampler that is suggested: the number of data that a chain stands for.

# atlas
# Batches lost in a row after which something must be wrong with all workers: going on would only record failures.
LOST_BATCHES = 10

# papers
FITTED_TRUTHS = 6  # Random networks whose samples are fitted.
QUICK_TRUTHS = 2  # Random networks whose samples are fitted in a quick run.
FIT_STARTS = 12  # Starts of each fit.
FIT_STEPS = 300  # Damped steps of each fit.
TANGENT_COMBINATIONS = 6  # Random combinations of equations whose derivatives are compared.

# proofs
INTEGER_POINTS = 4000  # Small integer points among which one is looked for that shows a refutation.

# deep networks
# Inputs beyond the unknowns of the linear equations of a second layer; weights are expanded and compared anyway.
SPARE_INPUTS = 4
SECOND_LAYER_ROUNDS = 3  # How often more inputs are taken where a solution does not expand to the map.

# programs
JOINT_ROOTS = 6  # An input whose own roots are many is kept for at most 2^6 tries of the others.
INPUTS_IN_VAIN = 2**18  # Inputs of one name that are drawn in vain before the search for their roots is given up.
ROOT_OUTPUTS = 16  # Outputs among which roots are looked for that all of them need.
TRACED_POINTS = 3  # Random inputs at which a traced program and the network are compared.
# Inputs of one level that are drawn in vain for one sample before the search for roots is given up.
SAMPLE_TRIES = 2**13

# Roots of one input alone for which it is drawn until they exist; with more of them values lie in a larger field.
LONE_ROOTS = 4

# rank
ROOTS_DRAWN = 6  # Roots of several inputs from which on values lie in a larger field: 2^6 samples for one that has all.
WITNESS_SAMPLES = 2  # Samples at which changes are evaluated before they are expanded.
INDEPENDENCE_BATCHES = 64  # Batches of samples that are drawn until enough of them exist.
SPARE_ARGUMENTS = 40  # Samples beyond the number of arguments whose independence is tested.
DIFFERENCE_INPUTS = 16  # Inputs at the same weights whose differences are taken.
SPARE_WEIGHT_SAMPLES = 8  # Samples beyond the number of weights.
REGIONS = 8  # Real points whose regions are tried; the best one counts.
MANY_REGIONS = 40  # Real points whose regions are tried for programs of few weights.
CUTS_TRIED = 4  # Choices of derived weights whose symmetries are looked for: of least rank, late ones first.
VARIED_REGIONS = 256  # Real points whose patterns are compared, where the bounds do not meet.
VARIED_INPUTS = 32  # Inputs at which they are compared.
POINT_TRIES = 8  # Points that are drawn until samples exist there, each with even odds.
ROOT_TRIES = 1024  # Points that are drawn until roots of weights alone exist, each with even odds.
ROWS_PER_POINT = 256  # Equations that one random point gives.
FEW_ROWS = 32  # Equations that one point gives for groups of few unknowns: many weights matter more than many inputs.
FEW_POINTS = 4  # Points for groups of few unknowns: many weights matter more than many inputs.
FEW_UNKNOWNS = 64  # Unknowns of a group that count as few.
ERROR_TRIALS = 6  # Points at which ranks are computed until their error probability is small enough to be stated.
SPARE_EQUATIONS = 16  # Equations beyond the unknowns of a group.
ANNIHILATED_POINTS = 2  # Points in a row at which all fields that are left are annihilated.
FRESH_POINTS = 64  # Fresh points at which what is left is tried; as a rule two or three are enough.
MANY_ROOTS = 9  # Roots of inputs, each at every other input, from which on a search takes all outputs of an input.
CONSTANTS_TRIED = 32  # Long constants that are tried.
FIELD_SWEEPS = 8  # Passes in which fields are made short.
SPARE_UNKNOWNS = 8  # Equations beyond the unknowns of a suggestion.
SUGGESTION_ROUNDS = 16  # Rounds of fresh points for a suggestion.
