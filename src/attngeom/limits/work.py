"""The largest problem that is begun; beyond it a cheaper method answers, or the answer says what was left out."""

# exact
SMALL_PRODUCT = 2**12  # Up to this number of products the overhead of the calls is all that counts.

# network
# The largest input width for which products of squares of queries and keys are compared: they are d⁴ numbers.
COMPARED_SQUARES = 64
UNROLLED_LAYERS = 9  # The unrolled word of l layers has 3^l letters.

# layer
SPLIT_WIDTH = 64  # V is found by least squares with d²(d+1)/2 equations for d unknowns, many times over.

# dimensions
PROGRAM_COMPUTED_ANYWAY = 400  # Kinds beyond the papers with so few weights are computed even if a theorem covers them.
# Without a formula, dimensions up to this bound are computed even if no proof was asked for.
DIMENSION_WITHOUT_FORMULA = 2000
# Larger parts are not evaluated to see whether their outputs span; the bound is then the one without this.
CUT_LAYERS = 200
KRYLOV_COLUMNS = 300_000  # Beyond this a proof takes days: products cost about D² / t each, and D of them are needed.
DIMENSION_PROVEN_ANYWAY = 300  # Dimensions up to this bound are proven in a fraction of a second, so they always are.

# heads
WIDE_SLICES_FROM = 200  # Widths from which few slices are drawn: each costs two products of matrices of that width.
EXPANDED_BLOCK = 16  # Widths up to which the block of a head is expanded into its table of quadrics.
PEELED_UNKNOWNS = 200  # Coefficients of the map behind a first layer, which linear equations over Q give.
COMMUTANT_UNKNOWNS = 2500  # Entries of (X, Y): beyond, exact commutants take minutes.
SIGN_CHOICES = 2**14  # Choices of signs of heads that are tried.

# models
# Streams at least so wide are compared in float32: four digits are left of a cosine, and half the time.
SINGLE_PRECISION_WIDTH = 2048
# Units of an MLP of the child that are compared, those of largest ‖up‖ ‖down‖: the median hardly needs more.
COMPARED_UNITS = 1024
STREAM_ROWS = 1024  # Rows of tables that are tried for a change of the stream before one is computed: under a second.
STREAM_STEPS = (8, 2, 1)  # One in so many of these is tried, in this order: large differences are seen by few rows.
BEGINNING = 64  # Columns of a matrix that tell of most rows that they are not zero.
# Named rows of a table that are used: more do not make R better, and a vocabulary of 128,256 would take minutes.
TABLE_ROWS = 2**15
MATCHED_TOKENS = 256  # Tokens of a kind that are matched, drawn at random beyond that; 32 suffice for p = 4e-36.
LOADED_TWICE = 5 * 10**7  # Models of more parameters are not loaded twice by another library for a check.
OUTPUT_PRODUCTS = 2**35  # Parameters times tokens beyond which nothing is evaluated: some minutes.

# inspection
LOCAL_RANK_PARAMETERS = 3000  # Ranks of Jacobians at given weights are computed up to this number of parameters.

# canonical
BALL_BITS = 10**5  # Number of weights times bits of precision up to which outputs are always enclosed by balls.
# Number of weights times bits of precision up to which balls are used for extreme weights.
EXTREME_BALL_BITS = 3 * 10**7

# comparison
EXACT_OUTPUT_BITS = 5_000  # Bits of an exact output beyond which primes compare faster.
CORRECTED_WEIGHTS = 600  # Weights of networks whose errors are solved for: every step decomposes a dense matrix.
CORRECTED_EQUATIONS = 1500  # Equations of networks whose errors are solved for: every step decomposes a dense matrix.
FLOATS_AS_EXACT = 5_000  # Parameters up to which floats are also compared as exact numbers.
ENCLOSED_SCORES = 4 * 10**6  # Scores that are enclosed by balls in one search, at about a microsecond each.
ENCLOSED_TRIAL = 2 * ENCLOSED_SCORES  # One input may take this much, where several may not.

# equations
COMPLETENESS_RANK = 20  # The largest attention width of a finite check: its modules are listed in a minute.
IDEAL_COORDINATES = 10**5  # Coordinates of a variety whose ideal is computed; its quadrics alone are half the square.
FORMULA_FACTORS = 10**6  # Factors of a product formula.
BINOMIAL_FACTORS = 20_000  # α(targets - α) binomial factors in a degree: more give numbers with many thousand digits.
LEDGER_MEMBERS = 4000  # Members of a family that are evaluated for the ledger.
EXPANDED_SLICES = 6  # The largest degree of commuting slices that are written out as polynomials.
EXPANDED_MINOR = 9  # Minors of this size are written out: 9! terms.

# recovery
FIELD_LAYERS = 5  # Five layers take half a minute; each further one multiplies that by more than twenty.

# learning
# Networks with at most so many parameters are proven in a fraction of a second, so they always are.
LAWS_PROVEN_ANYWAY = 600
LISTED_LAWS = 10**5  # Symmetric matrices of laws that are listed.
LISTED_STRATA = 10**5  # Strata of one table.

# atlas
# Members of each family that are looked at: a family is a few modules, and a few members show which.
FAMILY_MEMBERS_TRIED = 48
EXACT_COUNT = 10**18  # Beyond this no count needs to be exact.
# Bound on the dimension of S^{2n}(C^d); at this size the weights of a degree are listed in half a minute.
LISTED_WEIGHTS = 60_000
DEGREE_MONOMIALS = 10**12  # Monomials of a degree beyond which no memory holds its elimination: the task is not tried.
COUNTED_TASKS = 10**7  # Beyond this number of tasks counting ends.

# explore
PAGE_CERTIFICATE_BYTES = 2**17  # Certificates up to this size are rechecked while the page waits.
PAGE_CERTIFICATE_DIMENSION = 100  # Dimensions up to this are rechecked while the page waits.
PAGE_CHECKPOINT_BYTES = 2**18  # Files up to this size are inspected while the page waits.
PAGE_CHECKPOINT_PARAMETERS = 300  # Networks up to this size are inspected while the page waits.
# Networks beyond this are not computed while the page waits, be their dimension as small as it may.
PAGE_DIMENSION_PARAMETERS = 3000
PAGE_DIMENSION = 20000  # Dimensions beyond this are not computed from the page; theorems answer at every size.
PAGE_NETWORK_WEIGHTS = 6000  # Weights of a network that the page analyses: more do not end within the time of a job.
PAGE_IDEAL_WIDTH = 3  # Ideals up to this width are computed by a page.
# Coefficients up to this number are decided while the page waits; more in a process of their own.
PAGE_LAYER_COEFFICIENTS = 3000

# proofs
# d³ t: products of one output that the kernel adds up for given weights; d = 16 with two tokens has 8,192.
COQ_EXPANSION = 12_000
# Products for all derivatives, each sample's at once, and for the inverses; 4·10⁷ a second, so a minute of coqc.
COQ_DUAL_PRODUCTS = 2 * 10**9
COQ_FRACTIONS = 2 * 10**7  # Products of fractions for a comparison; a few minutes of coqc.

# deep networks as polynomial maps
MAP_TERMS = 2 * 10**5  # Monomials of one output times outputs, of a network that is expanded: seconds.

# programs
UNROLLED_STEPS = 512  # Steps of a scan that are unrolled.
SOLVED_SIZE = 64  # Size of a linear system that is written out as operations.

# rank
KERNEL_WEIGHTS = 2000  # Weights up to which the kernel of the Jacobian is computed where symmetries do not tell it.
COUNTED_SAMPLES = 2000  # Ranks up to which samples are counted that determine the network.
TESTED_ARGUMENTS = 2000  # Arguments of functions whose independence is tested: their matrix is eliminated.
# Arguments of exponentials and logarithms in them whose independence is tested, at as many weights.
TESTED_INSIDE = 600
# Pieces of a program with signs on which values are tested, times entries: a few thousand small ones, seconds each.
TESTED_PIECES = 10**7
MANY_REGIONS_UP_TO = 60  # Weights up to which many regions are tried.
EXACT_LAWS = 1200  # Fields whose symmetric combinations are computed exactly.
FINE_UNKNOWNS = 4_000  # Unknowns of the largest group beyond which not every entry of a matrix is translated by itself.
ENTRY_WEIGHTS = 64  # Weights up to which all linear fields are looked for: 64² + 64 unknowns are eliminated in seconds.
MANY_FIELDS = 200  # Fields of few weights beyond which those alone are proven that add to the orbits.
# Weights up to which slices are looked at with one tensor after another fixed: a search for symmetries each.
SLICED_WEIGHTS = 200
TRIPLE_TENSORS = 14  # Up to so many tensors, fields that move three of them are looked for by themselves.
# Entries of a row that are looked at before it is compared as a whole with others; rows that agree so far are rare.
ROW_BEGINNING = 8
SHORT_BITS = 29  # Bits of an integer that is multiplied with a limb of 13 bits: with 11 for 2,048 products that are 53.
LARGEST_SHIFT = 900  # Powers of two by which floats of a block are scaled without leaving their range.
RESTS = 256  # One entry of a block in so many, at most, is done by itself where the others are integers.
