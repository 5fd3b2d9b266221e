from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from evenmatch.stats.p_values import holm

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def test_holm_follows_its_steps() -> None:
    # sorted .01 .02 .03 .5 times 4 3 2 1 is .04 .06 .06 .5
    assert_allclose(holm([0.5, 0.02, 0.01, 0.03]), [0.5, 0.06, 0.04, 0.06])


@given(P_VALUES)
def test_holm_lies_between_the_p_value_and_bonferronis(p: list[float]) -> None:
    found = holm(p)
    assert (found >= np.array(p)).all()
    assert (found <= np.minimum(np.array(p) * len(p), 1) + 1e-12).all()


def test_what_is_missing_is_no_test() -> None:
    found = holm(np.array([[np.nan, 0.02], [0.01, np.nan]]))
    assert_allclose(found, [[np.nan, 0.02], [0.02, np.nan]])
