"""Learning of attention networks: learning coefficients, conservation laws, samples."""
