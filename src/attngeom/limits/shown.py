"""How much is printed or drawn; files and ``--json`` have everything."""

# files and processes
SIGNIFICANT_DIGITS = 6  # Digits of a float that mean something to a reader; files keep all.

# network
MATRIX_ENTRIES = 64  # Matrices with more entries are shown by their shape.

# layer
CARD_TERMS = 6  # Terms of a polynomial on a card.

# models
LISTED_NAMES = 5  # Names of a list that are printed unless all are asked for.
MAP_COLUMNS = 56  # Of a map of layers, which fits 60 columns; a larger one is drawn by the largest entry of each cell.
MAP_ROWS = 32  # Of a map of layers; a larger one is drawn by the largest entry of each cell.
MAP_TITLE = 28  # Characters of the path of a parent above its map, the last ones.
LOCATED_UNITS = 64  # Units that are listed, those that differ most first.

# equations
SHAPE_ROWS = 8  # Partitions with more parts are printed by multiplicities.
INTEGER_BITS = 12_000  # Longer integers are printed by their size.

# learning
LAW_MATRICES = 40  # Matrices of laws that are printed one by one; beyond, those of one sort are added up.
PLOT_LINES = 12  # Blocks that are drawn: those that come nearest to a smaller rank.
PLOTTED_ZERO = 1e-17  # Zeros are drawn here, on a logarithmic axis.

# atlas
CURVE_GAP = 0.05  # Curves that end nearer than this share a name.
TABLE_BARS = 4  # Columns of a table that are drawn as bars.
TABLE_ROWS_DRAWN = 12  # Rows of a table that are drawn as bars.
FAILURE_CHARACTERS = 500  # Of the message of a failed task that a store keeps.

# explore
POLYNOMIAL_TERMS = 60  # Terms of a polynomial that a page shows; the others are counted.
EXPANDED_DEGREE = 4  # Equations of higher degree have thousands of terms: they are named, not expanded.
PAGE_ROWS = 50  # Rows of one page of facts.
PIVOT_SIDE = 40  # Rows and columns of a table on a page.
PLOT_POINTS = 2000  # Points of a plot on a page.
CELL_CHARACTERS = 300  # Of a text in a cell of a table.
DRAWN_WIDTH = 8  # Matrices up to this width are drawn.
PAGE_HEADS = 60  # Heads, or tensors, that a page lists.
MEMBER_WIDTH = 3  # Members of families are written out up to this width: others can have millions of terms.
EXPORTED_MEMBERS = 200  # Members of a family in a downloaded file; the command writes all.
FIBER_PARAMETERS = 300  # Parameters of a network whose fiber is walked on a page.

# drawing
LEGEND_LETTERS = 112  # Of a legend, beside each other below a picture.

# cli
MESSAGE_CHARACTERS = 200  # A message is one line.
FACT_ROWS = 40  # Rows of a store that are printed unless more are asked for.
MATRIX_WIDTH = 6  # Matrices up to this width are printed entry by entry.
TEXT_COLUMNS = 24  # Columns that text needs beside labels; with less it goes below them.

# rank
# Squares and products of lines of tensors in one conserved quantity; forms of more terms are named, not written.
LAW_TERMS = 8
PROGRAM_DIGITS = 16  # Of the digest of a program, which tell it from others in a table.
LAW_EXAMPLES = 6  # Laws of a network that are given as examples.
