"""Lower bounds for the dimension, one method each; every one is a proof, whatever the random choices were."""
