"""The colours of all figures; each differs from the others in lightness, so that grey prints can be read."""

DARK, MIDDLE, LIGHT, WARM = "#1b2a41", "#4a7fb5", "#c9d7e6", "#e0a100"
DIMENSION = MIDDLE
"""The dimension of a set of functions, in bars of parameters and in plots, wherever it is drawn."""
