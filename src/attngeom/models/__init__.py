"""Real transformers: which weights compute the same function, counted, recovered, compared and moved."""
