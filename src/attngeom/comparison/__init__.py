"""Whether two sets of weights compute one function: a symmetry, a separating input, or neither."""
