from __future__ import annotations

from pathlib import Path

import pytest

from evenmatch.errors import DataError, InputError
from evenmatch.uses.study.cells import Cells, study_folder


def test_a_result_is_found_again_by_its_recipe_only(tmp_path: Path) -> None:
    cells = Cells(tmp_path)
    assert cells.find("a b", {"seed": 1}) is None
    cells.keep("a b", {"seed": 1, "sizes": (1, 2)}, {"value": 0.5})
    assert cells.find("a b", {"seed": 1, "sizes": (1, 2)}) == {"value": 0.5}
    assert cells.find("a b", {"seed": 2, "sizes": (1, 2)}) is None


def test_a_result_leaves_one_file_and_no_traces(tmp_path: Path) -> None:
    cells = Cells(tmp_path)
    for value in (1, 2):
        cells.keep("org/model, lsa", {}, {"value": value})
    assert [p.name for p in (tmp_path / "cells").iterdir()] == ["org-model-lsa.json"]
    assert cells.find("org/model, lsa", {}) == {"value": 2}


def test_a_file_that_is_no_result_is_refused(tmp_path: Path) -> None:
    cells = Cells(tmp_path)
    cells.keep("a", {}, {})
    (tmp_path / "cells" / "a.json").write_text("[]")
    with pytest.raises(DataError, match=r"a\.json is no result of a study; remove it"):
        cells.find("a", {})


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot make the folder .*file"):
        study_folder(tmp_path / "file")
