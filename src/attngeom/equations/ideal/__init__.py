"""The ideal of attention varieties, degree by degree: weight spaces, highest weight vectors, generators, formulas."""

from attngeom.equations.ideal.completeness import prove_complete
from attngeom.equations.ideal.degrees import Budget, Run, Task, implicitize, run_task
from attngeom.equations.ideal.models import CrossColumn, LayerCoefficients, Model, single_column
from attngeom.equations.ideal.records import Completeness, DegreeSummary, GeneratorModule, IdealSummary, WeightResult

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
