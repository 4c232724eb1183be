"""What is held at once: larger things are cut into pieces, drawn one by one, or refused."""

# files and processes
ITEMS_AHEAD = 4  # Items that are taken up for each process: one that it works on, others that wait.
CHARACTERS_READ = 2**19  # Characters that are read at a time.

# exact
# Columns that are eliminated at once, by inverting a block; recursion makes everything else a matrix product.
ELIMINATION_BLOCK = 16
TILE_ROWS = 512  # Products are formed tile by tile: 4 MB stay in cache while they are subtracted and reduced.
TILE_COLUMNS = 1024  # The other side of a tile of `TILE_ROWS`.

# network
STORED_PARAMETERS = 2 * 10**9  # 16 GB of floats.
STORED_TENSORS = 10**6  # Each is an object of its own.
MASKED_CHUNK = 128  # Queries whose masked scores are formed at once; what lies before them is a sum that is kept.
NODES_AT_ONCE = 2**24  # Entries of all nodes at once when a network is evaluated.
TANGENTS_AT_ONCE = 2**22  # Entries of a Jacobian that are propagated at once.

# layer
FLOAT_COEFFICIENTS = 8 * 10**7  # Coefficients of a layer in floats that are compared in some seconds.
EXACT_COEFFICIENTS = 25 * 10**6  # Coefficients of a layer in exact numbers that are compared in some seconds.
CUBIC_TABLE = 20_000_000  # Numbers in a table; the tensors of d^3 entries are a tenth of that at most.
BLACK_BOX_BATCH = 4096  # Inputs that a black box is given at a time.
NEAREST_JACOBIAN = 2 * 10**6  # Entries of a Jacobian that is held whole; beyond, steps are fewer.
TERMS_AT_ONCE = 4096  # Terms that are written or placed at a time.
KNOWN_NUMBERS = 2**16  # Texts of numbers that are kept while a file is read: many are equal.

# verification
JETS_AT_ONCE = 2**16  # Entries of tangents that are carried at once.

# dimensions
LAYER_KERNEL = 4 * 10**5  # Entries of the matrix of one layer; larger ones are left out, so that the bound is weaker.
JACOBIAN_BALLS = 2 * 10**7  # Balls of a Jacobian: each takes about a hundred bytes.
DENSE_BYTES = 4 * 10**9  # Of a Jacobian that is held whole; beyond, Schur complements or products are used.
KRYLOV_STACK = 2  # Vectors that are pushed forward together: few, so that all of their activations stay in cache.
PIVOT_ENTRIES = 2**24  # Entries of pivot rows that are held at once.
LOCAL_JACOBIAN = 5 * 10**8  # Entries of the Jacobian at given weights: 4 GB.
LOCAL_BALLS = 25 * 10**5  # Balls of the Jacobian at given weights; a minute at this size.

# heads
DENSE_KERNEL = 1300  # Unknowns n² + m² up to which the near kernel is computed by a dense eigenvalue problem.
TANGENT_SPAN = 6 * 10**7  # Entries of the matrix that spans T.

# models
OPEN_FOLDERS = 8  # Folders whose headers a worker keeps between the layers that it is sent.
CACHED_ENTRIES = 2**17  # Entries of a slice of a tensor that stays in the cache during several passes.
SCORES_HELD = 2**26  # Scores of all heads that are held at once.
# Tensors of MLPs and vocabularies with more entries stay in float32 if they are stored in at most 32 bits.
SINGLE_PRECISION = 2**24
RESIDUE_COLUMNS = 2048  # Columns of a slice whose residues stay in the cache.
RESIDUE_ENTRIES = 2**16  # Entries of a slice whose residues stay in the cache.

# canonical
SAMPLE_TOKENS = 64  # Tokens of a sample; more see nothing new and cost the square.
CANONICAL_BITS = 2**32  # Bits of an exact canonical form: half a gigabyte.

# comparison
INPUT_ENTRIES = 10**7  # Entries of one input that two networks are compared at.
QUADRIC_TABLE = 300_000  # Entries of the table of quadrics of a layer, in exact numbers or floats.
SCORES_AT_ONCE = 4 * 10**6  # Scores and inputs of all samples that are evaluated together.

# equations
CHOICES_TABLE = 200_000  # Choices of rows that are kept as a table; others are drawn one by one.
LISTED_COORDINATES = 10**6  # Coordinates of a variety that are listed.
GENERATOR_BYTES = 4000  # Memory for one polynomial and its text: twice what 38,626 generators of (5, 4) take.
ORBIT_ENTRIES = 2**18  # Entries of permuted monomials that are held at once.
LEDGER_ENTRIES = 3 * 10**7  # Entries of the images of all members, which are eliminated together.
UNCOUNTED_BYTES = 2**24  # Growth of the process that is not counted: imports and small tables.
MONOMIAL_CODE = 2**63  # Codes of monomials are integers of 64 bits.
TABLEAU_TAILS = 10**4  # Parts of tableaux that are kept from one weight to the next.
# Values that are computed at once; points lie along the last axis, so that gathering copies whole rows of memory.
MINOR_VALUES = 2**17
RING_VARIABLES = 5000  # Variables of a polynomial ring in all coordinates; each monomial stores as many exponents.

# certification
FACTOR_ENTRIES = 10**6  # Entries of Q and K, which are filled up with zeros to the attention width.

# learning
CERTIFIED_JACOBIAN = 10**7  # Entries of a Jacobian mod p or in floats; a few seconds.
CERTIFIED_BALLS = 10**5  # Entries of a Jacobian in balls or over an extension of Q.
LAW_DIFFERENTIALS = 4 * 10**7  # Of the matrix of differentials of all laws, whose rank counts the independent ones.

# atlas
FACTS_READ = 500  # Facts that are read from a store at a time: one query of SQLite takes at most 999 variables.
FACTS_RECHECKED = 16  # Facts that one process rechecks before it reports: few, so that progress is seen.
RECOMPUTE_MEGABYTES = 4000  # What a fact that is computed again may take beside others that run.
BATCH_TASKS = 5000  # Tasks of one batch, however short they are: a crash loses all of them.
# Batches in flight for each worker: one runs, the others wait, so that no worker is idle while results are stored.
BATCHES_IN_FLIGHT = 3
FACTS_MERGED = 1000  # Facts of one transaction of a merge: long enough for speed, short enough for other writers.
TASKS_PLANNED = 2000  # Tasks that are looked up in a store at a time.

# papers
FIBER_CHUNK = 20_000  # Tuples of a finite group that are multiplied at once.

# explore
JOBS_AT_ONCE = 3  # Jobs that run at the same time; more are refused, so that one page cannot take the machine.
PAGE_FACTS = 20000  # Facts of a store that the page reads; the commands read any number.
JOB_MEGABYTES = 6 * 2**10  # What one job of a page may take.

# deep networks
DEEP_COORDINATES = 4000  # Coordinates of a deep network: its labels are handled one by one.

# programs
TRIED_ENTRIES = 10**6  # Entries of all nodes of the first part, for all inputs that are tried at once.
TRIED_INPUTS = 4096  # Inputs that are tried at once for roots, however small the program is.
SAMPLED_ENTRIES = 4 * 10**6  # Entries of all nodes of a batch of samples, so that memory stays bounded.
TRACED_ENTRIES = 2**26  # Entries of all nodes of a program that is read.
LINEAR_ENTRIES = 2**22  # Entries of the matrix of a linear operation that is read off unit vectors.

# rank
JACOBIAN_WEIGHTS = 20_000  # The Jacobian has N² numbers: 3.2 GB at this size.
GROUP_UNKNOWNS = 16_000  # Of one group: its system has a square of numbers, 2 GB at this size.
ALL_UNKNOWNS = 2 * 10**6  # Unknowns of all groups together.
