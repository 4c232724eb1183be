"""Was this model made from that one? What no change of gauge can move, compared head by head and unit by unit."""
