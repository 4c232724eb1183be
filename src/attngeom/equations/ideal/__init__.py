"""The ideal of attention varieties, degree by degree: weight spaces, highest weight vectors, generators, formulas."""

from attngeom.equations.ideal.completeness import check_complete, complete
from attngeom.equations.ideal.degrees import Run
from attngeom.equations.ideal.implicitization import implicitize
from attngeom.equations.ideal.limits import Limits
from attngeom.equations.ideal.records import (
    CompletenessCheck,
    CompletenessResult,
    DegreeSummary,
    GeneratorModule,
    IdealSummary,
    WeightResult,
)

__all__ = [
    "CompletenessCheck",
    "CompletenessResult",
    "DegreeSummary",
    "GeneratorModule",
    "IdealSummary",
    "Limits",
    "Run",
    "WeightResult",
    "check_complete",
    "complete",
    "implicitize",
]
