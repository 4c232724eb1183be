"""The table of kinds says what the package answers."""

import pytest

from tests.docs.kind_table import row, written
from tests.effort import choose
from tests.network.modern_cases import CASES, label


def test_the_table_has_a_row_for_every_case():
    assert len(written()) == len(CASES)


@pytest.mark.parametrize("place", range(0, len(CASES), choose(4, 1)), ids=lambda i: label(CASES[i]))
def test_rows_are_what_is_answered(place):
    assert written()[place] == row(*CASES[place])
