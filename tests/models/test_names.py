"""Every part of a layer that can differ has the name of a tensor of its file."""

from __future__ import annotations

import pytest

from attngeom.models.layout import norm_specs
from attngeom.models.mismatches import layer_mismatches
from attngeom.models.names import TensorNames, file_name
from attngeom.models.orbits import recover
from tests.models.cases import FAMILIES, reference


@pytest.mark.parametrize("family", FAMILIES)
def test_parts_that_are_measured_have_a_tensor(family: str) -> None:
    model = reference(family)
    for layer in range(model.layers):
        names, own = TensorNames(model, layer), model.layer(layer)
        symmetry = recover(model.block(layer), own, own)
        for mismatches in layer_mismatches(own, symmetry, 1e-7, {}):
            norm = norm_specs(model.block(layer)).get(mismatches.of.name.removeprefix("norm "))
            if norm is not None and not norm.gain:
                continue  # its ones are no tensor and never differ
            assert file_name(names(mismatches.of)) in model.tensors, mismatches.of
