"""What a recheck of a certificate may cost, on one core of 2020 about ten seconds and one gigabyte.

Decided from the claim before any work; :func:`attngeom.verification.budget.budget_times` multiplies what is afforded.
"""

# verification
ATOM_TERMS = 4 * 10**6  # Products that are written out for one program.
LARGEST_FACTOR = 10_000  # The largest factor of the budget: a day or so.
WRITERS_FACTOR = 100.0  # Writers recheck with so many times the budget: they have just spent more on the search.
CERTIFICATE_BYTES = 2**28  # Of a certificate file.
CLAIMED_COEFFICIENTS = 4 * 10**6  # Coefficients that a claim about one layer is about, zeros included.
# n⁴ b^(5/4) for the exact rank or determinant of an n×n integer matrix with b bits; measured, about ten seconds.
ELIMINATION_WORK = 10**11
COEFFICIENTS_READ = 3 * 10**5  # Coefficients that the definition of an invariant reads, one by one.
RATIONAL_PRODUCTS = 5 * 10**6  # Products of rational numbers, one by one.
MATRIX_PRODUCTS = 2 * 10**7  # Products of numbers in products of matrices, times the words of 64 bits of a number.
FIELD_PRODUCTS = 4 * 10**5  # Products of numbers in a cubic field, each a product of polynomials.
# Entries of all inputs, cotangents and attention matrices that a minor of the Jacobian is evaluated at.
SAMPLE_ENTRIES = 2 * 10**7
JACOBIAN_PRODUCTS = 2 * 10**9  # Multiplications mod p for derivatives in many directions; measured, about ten seconds.
# What the derivatives of one head at one sample take besides their multiplications, counted in these.
HEAD_OVERHEAD = 6 * 10**4
LAYER_CUTS = 10**7  # Three places among the layers of a network: where a part starts, is cut and ends.
# Multiplications mod p in floating point BLAS for the transcript of a matrix-free proof; about ten seconds.
BLAS_PRODUCTS = 10**11
# Random sums that must all be nonzero mod p, over p: about e^3 draws; small primes would make them endless.
SUMS_PER_RESIDUE = 3
COEFFICIENT_PRODUCTS = 200_000  # Products of monomials that are written out.
EXACT_SPAN = 120  # Coefficients whose linear span is computed exactly; of more, equal ones are counted once.
CHANGE_TERMS = 5_000  # Terms of one change; what is longer is given up.
FIELD_MONOMIALS = 400_000  # Products of monomials for one field.
# Monomials that are looked at while the changes along one field are simplified: looking is cheaper than products.
FIELD_STEPS = 8 * 10**6
# How often the work for one field is halved after one that was given up: 64 more cost as much as the first.
FIELD_HALVINGS = 6
SHORT_CHANGE = 64  # Terms of a change that is expanded although it could not be evaluated.
MINOR_SAMPLES = 10**6  # Samples of a minor of a Jacobian.
PAIR_UNKNOWNS = 2600  # Entries of the pairs (X, Y) in a commutant.
COMMUTANT_SLICES = 4  # Random slices whose commutant is looked at before that of all.
LAYER_POINTS = 3  # Random points at which a layer and its coefficients are compared first.
SQUARE_ROOT_DIGITS = 1000  # Of D in a field Q(√D).
LAMBDA_BITS = 64  # Of the numerator and the denominator of λ.
LAYER_PRODUCT_BITS = 10**9  # Bits in products of layers.
LOCAL_DIRECTIONS = 3000  # Directions of a Jacobian at given weights.
LOCAL_SAMPLES = 10**5  # Samples of a Jacobian at given weights.
SAMPLE_INDEX = 2**40  # The largest index of a sample.
SYMMETRY_FIELDS = 20_000  # Fields of a list of symmetries.
FIELD_TERMS = 10**6  # Terms of all fields of a list of symmetries.
PROGRAM_NODES = 20_000  # Of a program in a claim.
PROGRAM_ENTRIES = 2**22  # Of all nodes of a program in a claim.
PROGRAM_ANGLES = 256  # Of a program in a claim, for classes of constant angles.
RELATED_ANGLES = 16  # Angles of a claim whose ratio is a fraction of numbers up to this bound are no two classes.
ROOTS_OF_UNITY = 8192  # A turn of the circle divided by a power of two up to this bound is no class of angles.
ANGLE_DIGITS = 3e-7  # Relative difference of angles that are equal: in the digits of float32.
# Signs and orders of floats at a real point need this share of the largest entry, so that a region is open.
PATTERN_MARGIN = 1e-6
ROUNDING_UNIT = 2.0**-50  # More than the relative error of one operation or function in double precision.
SUMMED_RESIDUES = 2**18  # Products of residues below 2^22 that are added up in 64 bits.
SIGN_SAMPLES = 2**15  # Samples at which roots are looked at to see that their signs are free.
FREE_ARGUMENTS = 2000  # Arguments of functions whose independence is tested: their matrix is eliminated.
FREE_INSIDE = 600  # Arguments of exponentials and logarithms in them whose independence is tested, at as many weights.
DRAWN_SAMPLES = 2**13  # Inputs of one prime that are tried for a sample at which all roots exist.
FREE_SPARE = 40  # Samples beyond the number of arguments whose independence is tested.
GUARD_SAMPLES = 2  # Samples at which the fields are seen to leave the function as it is.
TRANSCRIPT_BITS = 120  # A wrong transcript passes with probability at most 2^−120.

# dimensions
SYMMETRY_ENTRIES = 2 * 10**7  # Entries of the matrix of infinitesimal symmetries.
# Samples at which no entry that is inverted on a slice may always be 0: roots exist at half of them each.
EXISTENCE_SAMPLES = 4096
RECHECKED_DIMENSION = 4000  # Rechecking a minor costs the cube of the dimension; larger claims get a transcript.
RECHECKED_PARAMETERS = 10**6  # Of a network that is evaluated, or of a part whose outputs are seen to span.

# learning
LAW_PARAMETERS = 4000  # Of a network whose laws are proven complete: a square matrix of this size is eliminated.

# deep networks
MAP_OUTPUTS = 4096  # Entries of the output of a map of several layers.
MAP_INPUTS = 10**4  # Inputs at which linear equations of a second layer are written down.
MAP_INPUT_ENTRY = 10**6  # The largest entry of such an input.
HEAD_PAIRS = 10**6  # Pairs of heads whose matrices are compared.

# comparisons
BALL_PRODUCTS = 2 * 10**6  # Products of balls for the outputs of two networks at one input.
ENCLOSING_BITS = (256, 1024)  # Precisions of these balls, tried in turn.
POWER_BITS = 10**8  # Bits of an output of a deep lightning network, which grow as 3^l.
QUADRIC_WIDTH = 64  # Variables of quadrics that are factored.
TELLING_INPUTS = 12  # Small inputs at which an output that is not zero is looked for: almost every one has it.
RECHECKED_SIGNS = 2**12  # Choices of the signs of heads that are tried one by one.

# ideals
COUNTED_COORDINATES = 80  # Coordinates of a layer whose equations are counted degree by degree.
COUNTED_MONOMIALS = 2 * 10**5  # Monomials of one degree that are sorted by weights.
SPARE_POINTS = 8  # Random points beyond the number of monomials of one weight.
