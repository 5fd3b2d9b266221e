from __future__ import annotations

from pathlib import Path

import pytest

from evenmatch.errors import DataError, InputError
from evenmatch.studies.experiment import ResultStore, make_study_folder


def test_a_result_is_found_again_by_its_recipe_only(tmp_path: Path) -> None:
    cells = ResultStore(tmp_path)
    assert cells.load("a b", {"seed": 1}) is None
    cells.save("a b", {"seed": 1, "sizes": (1, 2)}, {"value": 0.5})
    assert cells.load("a b", {"seed": 1, "sizes": (1, 2)}) == {"value": 0.5}
    assert cells.load("a b", {"seed": 2, "sizes": (1, 2)}) is None


def test_a_result_leaves_one_file_and_no_traces(tmp_path: Path) -> None:
    cells = ResultStore(tmp_path)
    for value in (1, 2):
        cells.save("org/model, lsa", {}, {"value": value})
    assert [p.name for p in (tmp_path / "cells").iterdir()] == ["org-model-lsa.json"]
    assert cells.load("org/model, lsa", {}) == {"value": 2}


def test_a_file_that_is_no_result_is_refused(tmp_path: Path) -> None:
    cells = ResultStore(tmp_path)
    cells.save("a", {}, {})
    (tmp_path / "cells" / "a.json").write_text("[]")
    with pytest.raises(DataError, match=r"a\.json is not a result of a study; remove it"):
        cells.load("a", {})


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot make the folder .*file"):
        make_study_folder(tmp_path / "file")
