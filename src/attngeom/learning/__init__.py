"""Learning of attention networks: learning coefficients, conservation laws, tracking of runs."""

from attngeom.learning.answer import LearningCoefficient, learning_coefficient
from attngeom.learning.strata import LearningTable, global_learning_coefficient, learning_table

__all__ = [
    "LearningCoefficient",
    "LearningTable",
    "global_learning_coefficient",
    "learning_coefficient",
    "learning_table",
]


def __dir__() -> list[str]:
    return sorted(__all__)
