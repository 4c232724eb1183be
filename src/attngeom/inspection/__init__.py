"""Where given weights lie: strata, ranks, hypotheses of the theorems."""
