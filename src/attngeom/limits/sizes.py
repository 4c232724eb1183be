"""The largest input that is read or accepted; a larger one is refused in one line, before memory is taken."""

# files and processes
JSON_BYTES = 2**31  # Of a file of JSON: what is read takes some ten times its size.
LOCAL_WORKERS = 256  # Processes on one machine.

# exact
NUMBER_DIGITS = 100_000  # Of a number in a file: reading takes the square of its length.
POINT_NAME = 80  # Characters of the name of a seeded point.

# network
MAX_WIDTH = 10**6  # Of an architecture: theorems answer at any size, but no network is wider.
MAX_LAYERS = 10**4  # Of an architecture; each is listed in answers.
MAX_HEADS = 10**4  # Of a layer; each is listed in answers.
MAX_TOKENS = 10**9  # Of an architecture; nothing is stored for them.
TEMPERATURE_PART = 10**40  # Numerator and denominator of a temperature: floats hold their quotient.

# layer
WRITTEN_COEFFICIENTS = 5 * 10**6  # Coefficients of a file of JSON.

# models
# A size in a configuration, unless a smaller one is named for it: more than any vocabulary has.
CONFIGURED_SIZE = 2**28
# Sizes in a configuration by their names: some ten times those of the largest models.
CONFIGURED_SIZES = {
    "width": 2**20,
    "heads": 2**14,
    "groups": 2**14,
    "head_dim": 2**16,
    "value_dim": 2**16,
    "vocabulary": 2**28,
    "positions": 2**28,
    "layers": 2**11,
    "rows": 2**16,
    "distance": 2**20,
}
CONFIGURED_NUMBER = 1e30  # A number in a configuration: products of a few stay in range.
FREQUENCY_RATIO = 1000  # Denominators of quotients of frequencies that count as commensurable.
ROTATION_ORDER = 60  # Rotations of a larger finite order are told from others by no context.
TENSOR_RANK = 8  # Axes of a tensor.
COMPACT_ENTRIES = 2**33  # Of one tensor that is stored by its pattern, which takes no memory by itself.
ROTARY_FREQUENCIES = 2**15  # Of rotary positions: half the largest width of a head.
SHARD_BYTES = 2**31  # Models of up to this many bytes are written as one file, larger ones as one shard per layer.
COPIED_BYTES = 2**27  # Other files of a folder up to this size are copied along.

# comparison
COMPARED_TOKENS = 512  # Tokens of one input; networks that need more are refused.

# equations
LINE_ENTRY = 1000  # Of a line that the user gives: restricted quadrics stay small.

# recovery
QUERY_NUMBERS = 2 * 10**7  # Numbers of a table of inputs and outputs.

# certification
CLAIM_SIZE = 10**9  # Heads, attention and value widths of a claim; no larger number means anything.

# learning
TRACKED_CHECKPOINTS = 10000  # Checkpoints of one track.

# interop
TENSOR_ENTRIES = 2**31  # Of one tensor of a foreign file.

# atlas
# Workers of one run: each has a place in the coordinator, which sees a hundred batches per second.
CLUSTER_WORKERS = 1024
IDEAL_TARGETS = 1000  # Targets of an ideal in a sweep; no ideal of more was ever computed.
SWEEP_RANGE = 10**5  # Values of one range of a sweep.
SWEEP_VALUE = 10**9  # No size in a table is larger.
SWEEP_BYTES = 2**20  # Of the file of a sweep, which a person writes.
SWEEP_TASKS = 5_000_000  # Tasks of one sweep; a plan keeps a line for each in memory.

# explore
CONTROL_NUMBERS = 2000  # Numbers of a field of a page.
ADDRESS_CHARACTERS = 2**15  # Of a request; pages keep their state in the address.
FORM_BYTES = 2**17  # Of a posted form.
# Bytes of a dropped file; larger ones are named on the command line, where nothing is copied.
UPLOAD_BYTES = 64 * 2**20
DROPPED_BYTES = 4 * UPLOAD_BYTES  # Bytes of all dropped files that are kept; the oldest goes first.
PAGE_WIDTH = 65536  # Widths on the page of dimensions.
PAGE_LAYERS = 256  # Layers on the page of dimensions.
PAGE_VARIETY = 6  # The largest d and a of the page; the command has no such bound.
PAGE_BYTES = 2**20  # Of a file that a page reads to draw it.
PAGE_LAYER = 4  # The largest d of a table that is typed in.
PAGE_COORDINATE = 1000  # Coordinates of a point of the surface that is typed in.

# cli
TABLE_ARCHITECTURES = 10000  # Architectures of one table; larger ones are sweeps of the atlas.
# Bytes of the header of a safetensors file; the largest known models have a hundredth of it.
SAFETENSORS_HEADER = 2**27
VARIETY_SIZE = 10**6  # No variety of this size is computed; larger numbers are refused.
COUNTED_WIDTH = 50  # Larger families have counts of thousands of digits.
LISTED_POLYNOMIALS = 10**5  # Polynomials that are listed.
STORED_SEED = 2**63 - 2  # Of a certificate: the signed integers of other languages hold it and its successor.

# proofs
COQ_PRIME = 2**30  # Products of two residues fit into the 63-bit integers of the kernel.
COQ_TOKENS = 8  # Architectures of at most so many tokens are exported with all of them, the further ones zero.
COQ_TERMS = 60_000  # Terms of a cubic map that are exported.

# deep networks as polynomial maps
DEEP_LAYERS = 4  # Layers of a network that is expanded: functions of l layers have degree 3^l.
MAP_DEGREE = 81  # Of a polynomial map in a file: four layers.
MAP_VARIABLES = 64  # Entries of X of a polynomial map; each monomial stores an exponent for each.

# learning
# Matrices of a product whose intervals are put in order: paths of intervals, which a recheck lists, grow like 2^n.
PRODUCT_FACTORS = 10
VOCABULARY_SEQUENCES = 4096  # Sequences of tokens of a finite vocabulary, all of which are inputs.

# programs
TRACED_WEIGHTS = 10**8  # Weights of a program that is built.
TRACED_NODES = 200_000  # Steps of a program.
TRANSPOSED_AXES = 4  # Axes of an array whose permutations are recognised: there are 24.
UNROLLED_POWER = 64  # Exponents of powers that are written as products.
ANGLE_ARGUMENTS = 4096  # Entries under sines and cosines whose relations over Q are looked for.
ANGLE_TERMS = 2**16  # Products of one node that are written out under them.
ANGLE_MULTIPLE = 2**32  # Of a basis: cosines of multiples are written out bit by bit.
FACTORED_BITS = 128  # Of numerators and denominators under a logarithm: they are factored in milliseconds.

# rank
TOWER_DEGREE = 16  # Of fields in which roots exist: roots inside each other, four deep.
LONG_CONSTANT = 256  # Numerators and denominators of constants that count as long.
SHORT_MULTIPLE = 16  # Numerators and denominators of their small multiples.
