"""Pairs of heads and units of two models."""

from __future__ import annotations

import numpy as np

from attngeom.models.matching import assign_points


def test_points_near_the_end_of_the_range_of_floats_are_paired() -> None:
    points = np.random.default_rng(0).normal(size=(6, 3)) * 1e307
    order = np.array([3, 1, 0, 5, 2, 4])
    assert np.array_equal(assign_points(points[order], points), order)
    assert sorted(assign_points(points, np.zeros((6, 3)))) == list(range(6))
