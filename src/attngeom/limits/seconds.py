"""Times of waiting, and rates by which the time of a step is foretold. No answer depends on them."""

# files and processes
# A process that was told to end ends at once, unless the machine is very busy; it is waited for no longer.
CHILD_END_SECONDS = 10.0
CHILD_WATCH_SECONDS = 0.005  # How often children that were told to end are looked at.
# After a day without change, a temporary of another machine that nobody holds is abandoned.
ABANDONED_SECONDS = 86400.0

# models
LAYERS_END_SECONDS = 60.0  # Seconds that layers under way may take to end after another one was refused.

# equations
SAVE_SECONDS = 5.0  # Between two saves of what is done: an interruption loses no more.
# Multiplications mod p in one second of elimination: a third of what is measured for matrices of size 500 to 2000.
ELIMINATION_RATE = 2e9
EXPANSION_STEP = 50  # Multiplications of an elimination in the time of one step of an expansion by minors.

# atlas
CHILD_START_SECONDS = 120.0  # What a child may need to start and import; it does not count against a budget.
CONNECT_SECONDS = 30  # A scheduler that does not answer for this long is not there.
# For facts without certificate, which are computed again from another seed, the cheapest first.
RECOMPUTE_SECONDS = 30.0
# Seconds that a batch is cut to: long against the cost of sending it, short against what a crash would lose.
BATCH_SECONDS = 0.25
# With many workers batches grow, so that the coordinator and a scheduler see at most a hundred of them per second.
WORKER_SECONDS = 0.01
POLL_SECONDS = 5.0  # How often workers are counted again while nothing is finished: new ones may have come.
STORE_BUSY_SECONDS = 120.0  # Another process may write a large merge meanwhile; after this the store is called busy.

# explore
JOB_SECONDS = 60.0  # What a page may compute; the commands have no such bound.
JOB_FORGOTTEN_SECONDS = 20.0  # A job that no window asks about for this long is ended.
JOB_WATCH_SECONDS = 0.2  # How often a job is looked at.
BODY_SECONDS = 60.0  # What a body may take to arrive, from this machine to itself.
LOADING_PAUSE_SECONDS = 0.3  # The engine is loaded page by page, after pauses in which requests are answered.
PROGRESS_SECONDS = 0.1  # Between two lines of progress.

# proofs
COQ_SECONDS = 3600  # For coqc and one file: far beyond what is exported.
CHECKER_SECONDS = 3600  # For the lone checker and one certificate.
