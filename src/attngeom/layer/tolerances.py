"""How near counts as equal for float layers: the two default tolerances, and why there are two.

Whether coefficients are those of a layer (:mod:`attngeom.layer.nearest`) and which weights have them
(:mod:`attngeom.layer.float_splitting`) are two questions. The first looks for the layer at least distance, with rank A
bounded and all copies weighed alike, and encloses that distance: the tolerance can lie a little above the rounding of
double precision. The second splits one table of quadrics into all points of its fiber; it also serves values of black
boxes, whose interpolation loses digits, so its tolerance leaves room for them.
"""

DECIDED = 1e-9
"""The relative distance within which float coefficients count as those of a layer, unless another is given."""

RECOVERED = 1e-6
"""The relative error that recovered weights may have in what they reproduce, unless another is given."""
