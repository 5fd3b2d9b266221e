"""Parts of other packages: found by entry point or EVENMATCH_PLUGINS, and harmless when broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.support.program import run

SOLVER = '''
from dataclasses import dataclass

from evenmatch import Alignment, Greedy, register


@register("alignment", "nearest")
@dataclass(frozen=True)
class Nearest:
    """Pairs only units that are each other's nearest."""

    def __call__(self, problems):
        chosen = [Greedy()([p])[0] for p in problems]
        plans = [c.rows * c.cols for c in chosen]
        return [Alignment(plan, plan, exact=False) for plan in plans]
'''

METRIC = '''
from dataclasses import dataclass

import evenmatch as em
from evenmatch.registry import make_signature


@em.register("metric", "constant")
@dataclass(frozen=True)
class Constant:
    """The same score for all pairs."""

    higher_is_better = True
    bounds = (0.0, 1.0)

    @property
    def signature(self):
        return make_signature(self)

    def __call__(self, pairs):
        return em.Scores(tuple(em.Score(0.25) for _ in pairs), self.signature)
'''

BROKEN = "raise RuntimeError('no licence here')\n"

Install: TypeAlias = Callable[..., None]
Shell: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a package: a module `NAME_package`, and an entry point to it for each name."""
    inherited = os.environ.get("PYTHONPATH")
    paths = [str(tmp_path), *([inherited] if inherited else [])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))

    def write(package: str, source: str, *names: str) -> None:
        (tmp_path / f"{package}_package.py").write_text(source)
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        points = "".join(f"{name} = {package}_package\n" for name in names)
        (info / "entry_points.txt").write_text(f"[evenmatch]\n{points}")

    return write


@pytest.fixture
def shell(install: Install, tmp_path: Path) -> Shell:
    """Run an evenmatch command in a process of its own, in a folder with a file of one pair."""
    (tmp_path / "pairs.jsonl").write_text('{"candidate": "a b", "reference": "a b"}\n')

    def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "evenmatch", *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ | environment,
        )

    return call


def test_a_third_party_solver_takes_under_20_lines() -> None:
    assert len(SOLVER.strip().splitlines()) < 20


def test_a_third_party_solver_is_found_by_name(install: Install) -> None:
    install("nearest", SOLVER, "nearest")
    program = """
        import evenmatch as em

        metric = "align(vectors=hashed, alignment=nearest)"
        assert "nearest" in em.names("alignment")
        scores = em.score(["a b b"], ["b a"], metric)
        print(em.build(scores.signature.split(" · ")[0]) == em.build(metric))
        print(em.align("a c", "c a d", metric).pairs)
        print(em.solve([[1.0, 0.5], [0.9, 0.1]], "nearest").rows.tolist())
        em.check_solver(em.build("nearest"))
    """
    assert run(program).splitlines() == [
        "True",
        "[(0, 1, 1.0), (1, 0, 1.0)]",
        "[[1.0, 0.0], [0.0, 0.0]]",
    ]


@pytest.mark.parametrize("used_before", [True, False])
def test_the_name_of_a_built_in_part_is_refused_before_and_after_its_use(
    install: Install, tmp_path: Path, used_before: bool
) -> None:
    (tmp_path / "mine.py").write_text(METRIC.replace('"constant"', '"chrf"'))
    program = f"""
        import evenmatch as em

        if {used_before}:
            em.score(["a b"], ["a b"], "chrf")
        try:
            import mine
        except em.InputError as error:
            print(error)
        print(em.score(["a b"], ["a b"], "chrf").mean)
    """
    assert run(program).splitlines() == [
        "the name 'chrf' is taken by evenmatch.metrics.ngram.sacrebleu; "
        "mine must choose another name",
        "1.0",
    ]


def test_the_name_of_an_installed_part_is_refused_before_it_is_imported(
    install: Install, tmp_path: Path
) -> None:
    install("fixed", METRIC, "constant")
    (tmp_path / "mine.py").write_text(METRIC)
    program = """
        import sys
        import evenmatch as em

        try:
            import mine
        except em.InputError as error:
            print(error)
        print("fixed_package" in sys.modules, em.score(["a"], ["b"], "constant").mean)
    """
    assert run(program).splitlines() == [
        "the name 'constant' is taken by fixed_package; mine must choose another name",
        "False 0.25",
    ]


def test_a_package_may_register_its_parts_before_its_entry_point_is_read(install: Install) -> None:
    install("fixed", METRIC, "constant")
    program = """
        import fixed_package
        import evenmatch as em

        print(em.score(["a"], ["b"], "constant").mean, "constant" in em.names("metric"))
    """
    assert run(program) == "0.25 True\n"


def test_an_entry_point_may_register_a_class_of_another_package(
    install: Install, tmp_path: Path
) -> None:
    (tmp_path / "library.py").write_text(METRIC.replace('@em.register("metric", "constant")\n', ""))
    source = "import library\nfrom evenmatch import register\n"
    install("glue", f"{source}register('metric', 'constant')(library.Constant)\n", "constant")
    program = """
        import evenmatch as em

        print(em.score(["a"], ["b"], "constant").mean)
    """
    assert run(program) == "0.25\n"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (BROKEN, "RuntimeError: no licence here"),
        ("import a_package_nobody_has\n", "ModuleNotFoundError: No module named 'a_package_nobody"),
        (
            METRIC.replace('"constant"', '"bertscore"'),
            "InputError: the name 'bertscore' is taken by evenmatch.metrics.presets; "
            "bad_package must choose another name",
        ),
    ],
)
def test_a_plug_in_that_cannot_be_loaded_affects_no_other(
    install: Install, source: str, reason: str
) -> None:
    install("bad", source, "bad")
    install("fixed", METRIC, "constant")
    program = """
        import warnings
        import evenmatch as em

        print(em.score(["a"], ["b"], "constant").mean)
        with warnings.catch_warnings(record=True) as said:
            print({"constant", "bertscore"} <= set(em.names()), "bad" in em.names())
        print(said[0].message)
        try:
            em.build("bad")
        except em.EvenmatchError as error:
            print(error)
    """
    first, listed, warned, raised = run(program).splitlines()
    assert (first, listed) == ("0.25", "True False")
    assert warned.startswith(f"the plug-in 'bad' of bad 1.0 cannot be loaded: {reason}")
    assert raised == warned


def test_commands_name_a_plug_in_that_cannot_be_loaded_in_one_line(
    install: Install, shell: Shell
) -> None:
    install("bad", BROKEN, "bad")
    listed = shell("list", "metric")
    assert (listed.returncode, listed.stderr.count("\n")) == (0, 1)
    assert listed.stderr.startswith("evenmatch: warning: the plug-in 'bad' of bad 1.0 cannot be")
    misspelled = shell("score", "pairs.jsonl", "-m", "chrff").stderr.splitlines()
    assert misspelled[0] == listed.stderr.strip()
    assert misspelled[1].startswith("evenmatch: unknown metric 'chrff'; did you mean 'chrf'")
    scored = shell("score", "pairs.jsonl", "-m", "chrf")
    assert (scored.returncode, scored.stderr) == (0, "")


def test_the_parts_of_a_plug_in_that_cannot_be_loaded_are_gone(install: Install) -> None:
    install("fixed", METRIC + BROKEN, "constant")
    program = """
        import warnings
        import evenmatch as em

        with warnings.catch_warnings(record=True) as said:
            print("constant" in em.names("metric"), len(said))
        try:
            em.build("constant")
        except em.EvenmatchError as error:
            print(error)
    """
    assert run(program).splitlines() == [
        "False 1",
        "the plug-in 'constant' of fixed 1.0 cannot be loaded: RuntimeError: no licence here; "
        "repair or remove it",
    ]


def test_an_entry_point_cannot_replace_a_built_in_part(install: Install, shell: Shell) -> None:
    install("bad", METRIC.replace('"constant"', '"chrf"'), "chrf")
    scored = shell("score", "pairs.jsonl", "-m", "chrf", "--json")
    assert json.loads(scored.stdout)["metrics"]["chrf"]["mean"] == 1.0
    assert "the plug-in 'chrf' of bad 1.0 cannot be loaded" in shell("list", "metric").stderr


def test_of_two_packages_with_one_name_the_second_is_refused(install: Install) -> None:
    for package in ("first", "second"):
        install(package, METRIC, "constant")
    program = """
        import warnings
        import evenmatch as em

        used = type(em.build("constant")).__module__
        with warnings.catch_warnings(record=True) as said:
            em.names()
        other = {"first_package", "second_package"} - {used}
        print([f"{other.pop()} must choose another name" in str(each.message) for each in said])
    """
    assert run(program) == "[True]\n"


def test_a_part_is_found_if_its_entry_point_has_another_name(
    install: Install, shell: Shell
) -> None:
    install("fixed", METRIC, "c1")
    assert shell("score", "pairs.jsonl", "-m", "Constant").returncode == 0
    assert "unknown name 'c1'; did you mean 'constant'?" in shell("explain", "c1").stderr


def test_a_module_that_a_variable_names_is_a_plug_in(
    install: Install, shell: Shell, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(METRIC)
    (tmp_path / "worse.py").write_text(BROKEN)
    variable = {"EVENMATCH_PLUGINS": "mine, worse"}
    assert "constant" in shell("list", "metric", **variable).stdout
    scored = shell("score", "pairs.jsonl", "-m", "constant", "--json", **variable)
    assert json.loads(scored.stdout)["metrics"]["constant"]["mean"] == 0.25
    assert "the plug-in 'worse' of EVENMATCH_PLUGINS cannot be loaded: Runt" in scored.stderr
    workers = ("--on", "processes", "--workers", "1", "--out", "out.jsonl")
    spread = shell("score", "pairs.jsonl", "-m", "constant", *workers, **variable)
    assert spread.returncode == 0, spread.stderr
    without = shell("score", "pairs.jsonl", "-m", "constant")
    assert (without.returncode, "unknown metric 'constant'" in without.stderr) == (1, True)


@pytest.mark.parametrize("given", ["mine.py", "./mine.py"])
def test_a_python_file_as_metric_is_refused_with_what_to_do(shell: Shell, given: str) -> None:
    refused = shell("score", "pairs.jsonl", "-m", given)
    assert refused.returncode == 1
    assert f"{given} is a module; give the name of its metric and set" in refused.stderr
    assert "EVENMATCH_PLUGINS=mine, with its folder in PYTHONPATH" in refused.stderr
