"""The public surface: names, layers, docstrings, import time, and parts of other packages."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import evenmatch as em
from evenmatch.registry import find_entry
from tests.support.program import run

SOURCE = Path(em.__file__).parent
HEAVY = ["torch", "transformers", "scipy.optimize", "matplotlib", "ot", "polars", "pandas", "nltk"]


def test_public_names_are_sorted_and_there() -> None:
    assert em.__all__ == sorted(set(em.__all__))
    for name in em.__all__:
        assert getattr(em, name) is not None


def test_dir_shows_the_public_names_and_nothing_else() -> None:
    assert dir(em) == list(em.__all__)
    assert {"score", "align", "solve", "solve_batch", "build", "spec", "names", "register"} <= set(
        em.__all__
    )


def test_every_public_name_that_is_imported_is_listed() -> None:
    tree = ast.parse((SOURCE / "__init__.pyi").read_text("utf-8"))
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == set(em.__all__)


def test_no_class_name_is_defined_twice() -> None:
    places: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_no_public_name_is_the_name_of_a_folder_or_module() -> None:
    modules = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert not modules & set(em.__all__)


def test_no_function_hides_a_module_of_its_folder() -> None:
    for folder in (path.parent for path in SOURCE.rglob("__init__.py")):
        tree = ast.parse((folder / "__init__.py").read_text("utf-8"))
        imported = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        beside = {path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()}
        assert not imported & beside, folder


def test_every_public_class_and_function_has_a_docstring() -> None:
    for name in em.__all__:
        thing = getattr(em, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert is_a_sentence(inspect.getdoc(thing)), name


@pytest.mark.parametrize("name", em.names())
def test_every_part_has_a_docstring(name: str) -> None:
    assert is_a_sentence(inspect.getdoc(find_entry(name).factory))


def is_a_sentence(doc: str | None) -> bool:
    # the default docstring of a dataclass is its signature, not a sentence
    first = (doc or "").splitlines()[0] if doc else ""
    return first.endswith((".", ":")) and len(first) > 15


def test_every_name_of_a_part_is_its_entry_point() -> None:
    from importlib.metadata import entry_points

    points = {p.name: p.value for p in entry_points(group="evenmatch")}
    for name in em.names():
        made = find_entry(name).factory.__module__
        if made.startswith("evenmatch."):
            assert points[name] == made, f"point {name} at {made} in pyproject.toml"


def test_importing_evenmatch_is_quick() -> None:
    # CPU time of the process, which other processes affect less than elapsed time.
    program = """
        import time
        start = time.process_time()
        import evenmatch
        print(time.process_time() - start)
    """
    # Another process on the same core still slows it down, so one fast attempt is enough.
    assert any(float(run(program)) < 0.3 for _ in range(20))


def test_importing_evenmatch_loads_nothing_heavy() -> None:
    program = f"""
        import sys
        import evenmatch
        print([name for name in {HEAVY!r} if name in sys.modules])
    """
    assert run(program).strip() == "[]"


def test_scoring_without_a_model_loads_no_framework() -> None:
    program = """
        import sys
        import evenmatch as em
        em.score(["the cat"], ["a cat"], "align(vectors=hashed, alignment=lsa)")
        em.align("the cat", "a cat", "align(vectors=hashed)")
        print([name for name in ("torch", "transformers", "matplotlib") if name in sys.modules])
    """
    assert run(program).strip() == "[]"


def test_the_layers_point_one_way() -> None:
    process = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        capture_output=True,
        text=True,
        cwd=SOURCE.parents[1],
    )
    assert process.returncode == 0, process.stdout
