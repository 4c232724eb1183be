"""The ideal of attention varieties, degree by degree: weight spaces, highest weight vectors, generators, formulas."""
