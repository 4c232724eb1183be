"""The ideal of attention varieties, degree by degree: weight spaces, highest weight vectors, generators, formulas."""

from attngeom.implicitization.completeness import prove_complete
from attngeom.implicitization.degrees import Budget, Run, Task, implicitize, run_task
from attngeom.implicitization.models import CrossColumn, LayerCoefficients, Model, single_column
from attngeom.implicitization.records import Completeness, DegreeSummary, GeneratorModule, IdealSummary, WeightResult

__all__ = [
    "Budget",
    "Completeness",
    "CrossColumn",
    "DegreeSummary",
    "GeneratorModule",
    "IdealSummary",
    "LayerCoefficients",
    "Model",
    "Run",
    "Task",
    "WeightResult",
    "implicitize",
    "prove_complete",
    "run_task",
    "single_column",
]
