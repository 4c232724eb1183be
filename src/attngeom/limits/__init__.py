"""Every bound on work and every tolerance, named once, with its reason.

One module for each sort of limit: :mod:`~attngeom.limits.sizes` of what is read, :mod:`~attngeom.limits.memory` that is
taken at once, :mod:`~attngeom.limits.work` that is begun, :mod:`~attngeom.limits.seconds` of waiting,
:mod:`~attngeom.limits.trials` of searches, :mod:`~attngeom.limits.rounding` of floats, :mod:`~attngeom.limits.recheck`
of certificates, and what is :mod:`~attngeom.limits.shown`. Nothing here imports anything, and nothing is computed.
A bound is the last value that is allowed. Constants of mathematics, of file formats and of drawings stay beside what
they belong to.
"""
