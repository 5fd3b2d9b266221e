"""Run the code and commands in the documentation and compare the output with that shown."""

from __future__ import annotations

import contextlib
import dataclasses
import doctest
import inspect
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from ast import literal_eval
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import evenmatch as em
from evenmatch.cli.main import COMMANDS, main
from evenmatch.types import Run

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NEEDS_MODEL = "<!-- runs with the model -->"
NEEDS_PARSER = "<!-- runs with the parser -->"
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_VERSION = re.compile(r"(?<=evenmatch )\d+\.\d+\.\d+\w*")
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, content and first line."""

    language: str
    content: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for match in _FENCE.finditer(text):
        yield Block(match[1], match[2], text.count("\n", 0, match.start()) + 1)


def pages_with_code() -> Iterator[Any]:
    for page in PAGES:
        if any(block.language in ("python", "console") for block in blocks(page)):
            text = page.read_text("utf-8")
            marks = [pytest.mark.model] if NEEDS_MODEL in text else []
            marks += [pytest.mark.model("minilm", "en_core_web_sm")] if NEEDS_PARSER in text else []
            yield pytest.param(page, marks=marks, id=str(page.relative_to(ROOT)))


@pytest.mark.parametrize("page", list(pages_with_code()))
@pytest.mark.usefixtures("registry")
def test_code_runs_and_prints_what_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Python blocks of a page share names; a text block is the output of the block above."""
    monkeypatch.chdir(tmp_path)
    # In a module, so that classes defined on a page can be pickled.
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    names = module.__dict__
    printed = ""
    for block in blocks(page):
        if block.language == "python":
            printed = run_python(block, page, names)
        elif block.language == "console":
            run_commands(block, page)
        elif block.language == "text":
            check(block.content, printed, page, block.line)


def run_python(block: Block, page: Path, names: dict[str, object]) -> str:
    code = compile("\n" * block.line + block.content, str(page), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, names)
    return out.getvalue()


def run_commands(block: Block, page: Path) -> None:
    for command in re.split(r"^\$ ", block.content, flags=re.MULTILINE)[1:]:
        line, _, shown = re.sub(r"(?<!\\)\\\n", " ", command).partition("\n")
        printed = run_command(line)
        if shown.strip():
            check(shown, printed, page, block.line)


def run_command(line: str) -> str:
    """Run one command: evenmatch in this process, others in a shell."""
    words = shlex.split(line)
    if words[0] != "evenmatch" or {"|", ">"} & set(words):
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            line, shell=True, capture_output=True, text=True, env={**os.environ, "PATH": path}
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
    with contextlib.redirect_stdout(io.StringIO()) as out, pytest.raises(SystemExit) as end:
        main(words[1:])
    assert not end.value.code, line
    return out.getvalue()


def check(shown: str, printed: str, page: Path, line: int) -> None:
    """Compare texts, ignoring the version and trailing spaces; ... matches anything."""
    wanted, got = (
        "\n".join(row.rstrip() for row in _VERSION.sub("", text).strip("\n").split("\n")) + "\n"
        for text in (shown, printed)
    )
    if not doctest.OutputChecker().check_output(wanted, got, doctest.ELLIPSIS):
        pytest.fail(f"{page.name} line {line} shows\n{wanted}but the output is\n{got}")


@pytest.mark.parametrize("page", PAGES, ids=[str(p.relative_to(ROOT)) for p in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    for target in _LINK.findall(_FENCE.sub("", page.read_text("utf-8"))):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_menu_lists_every_page_once() -> None:
    config = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))
    listed = sorted(_leaves(config["project"]["nav"]))
    there = sorted(str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md"))
    assert listed == there


def _leaves(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for item in nav.values() if isinstance(nav, dict) else nav:
            yield from _leaves(item)


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    program = Path(sys.executable).parent / "zensical"
    if not program.exists():
        pytest.skip("zensical is not installed")
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    config = (ROOT / "zensical.toml").read_text("utf-8")
    (tmp_path / "zensical.toml").write_text(config.replace('["src"]', f'["{ROOT / "src"}"]'))
    done = subprocess.run(
        [program, "build", "--strict"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    functions = (tmp_path / "site" / "reference" / "functions" / "index.html").read_text("utf-8")
    assert "Score each candidate against its reference" in functions


def test_the_readme_lists_only_existing_metrics() -> None:
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    claimed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert {"bertscore", "f_disc", "f_cont"} <= claimed <= set(em.names("metric"))


def test_the_page_of_metrics_by_name_is_up_to_date() -> None:
    from tools.pages import metrics

    built_in = [point.name for point in metadata.entry_points(group="evenmatch")]
    assert metrics.PAGE.read_text("utf-8") == metrics.page(built_in)


def test_the_generated_pages_of_the_reference_are_up_to_date() -> None:
    from tools.pages import reference

    for name, page in reference.PAGES.items():
        text = (reference.FOLDER / name).read_text("utf-8")
        assert text == page(), f"{name} is out of date; run: python -m tools.pages.reference"


def test_every_public_name_has_a_reference() -> None:
    from tools.pages.reference import reference_places

    assert set(em.__all__) - set(reference_places()) == {"__version__"}


def test_every_field_of_tune_has_a_meaning() -> None:
    from tools.pages.reference import field_meanings

    from evenmatch.training.generator.tune_settings import T5Shape

    for settings in (em.TuneSettings, T5Shape):
        assert list(field_meanings(settings)) == [f.name for f in dataclasses.fields(settings)]


def test_every_run_setting_is_explained() -> None:
    page = (ROOT / "docs" / "reference" / "types.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `(.*?)` \|", page.partition("## Run settings")[2], re.M)
    defaults = {f.name: f.default for f in dataclasses.fields(Run) if f.name != "check_cost"}
    assert {name: literal_eval(default) for name, default in rows} == defaults
    assert all(f"`{name}`" in (inspect.getdoc(em.score) or "") for name in defaults)


HOW_TOS = {path.name for path in (ROOT / "docs" / "how-to").glob("*.md")}


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_every_guide_is_listed_by_job(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    _, _, table = text.partition("| job | first step | guides |\n|---|---|---|\n")
    rows = dict(re.findall(r"^\| ([^|]+) \| (.+) \|$", table.partition("\n\n")[0], re.MULTILINE))
    assert list(rows) == [
        "Score",
        "Compare",
        "Check against people",
        "Fairness",
        "Keyphrases",
        "Rewards and training",
        "Scale",
        "Serve",
        "Extend",
    ]
    commands = [name for row in rows.values() for name in re.findall(r"`evenmatch ([\w-]+)", row)]
    assert set(commands) <= set(COMMANDS)
    listed = [Path(link).name for row in rows.values() for link in _LINK.findall(row)]
    assert sorted(listed) == sorted(HOW_TOS)


def test_every_page_is_reached_by_links_from_the_readme() -> None:
    waiting, reached = [ROOT / "README.md"], set[Path]()
    while waiting:
        page = waiting.pop().resolve()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        links = _LINK.findall(_FENCE.sub("", page.read_text("utf-8")))
        waiting += [page.parent / link for link in links if "://" not in link]
    orphans = {page.resolve() for page in PAGES} - reached
    assert not orphans, f"no link leads to {', '.join(sorted(page.name for page in orphans))}"


def test_the_page_on_choosing_a_metric_follows_the_results() -> None:
    from tools.pages import choose_a_metric

    text = choose_a_metric.PAGE.read_text("utf-8")
    assert text == choose_a_metric.page()
    assert "(.249 against .446 for `bertscore`" in text  # REALSumm
    assert len(text.splitlines()) <= 45  # one screen


def test_defaults_follow_the_page_on_choosing_a_metric() -> None:
    defaults = {
        name: inspect.signature(getattr(em, name)).parameters["metric"].default
        for name in ("score", "align", "reward")
    }
    assert defaults == {"score": "bertscore", "align": "f_disc", "reward": "f_disc"}
    assert em.TuneSettings("a", "b", "c").reward == defaults["reward"]
    text = " ".join((ROOT / "docs" / "choose-a-metric.md").read_text("utf-8").split())
    assert "`em.score` uses `bertscore`" in text
    assert "`em.align`, `em.reward` and `evenmatch tune` use `f_disc`" in text
    for name, default in defaults.items():
        assert "default" in (inspect.getdoc(getattr(em, name)) or ""), (name, default)


def test_the_agreement_page_opens_with_our_metrics() -> None:
    text = (ROOT / "docs" / "results" / "agreement.md").read_text("utf-8")
    first_row = re.search(r"^\| metric .*\n\|---.*\n\| (\S+)", text, re.MULTILINE)
    assert first_row
    assert first_row[1].startswith("bertscore")


def test_the_cheat_sheet_fits_on_a_screen_and_its_names_exist() -> None:
    text = (ROOT / "docs" / "cheat-sheet.md").read_text("utf-8")
    assert len(text.splitlines()) <= 45
    assert set(re.findall(r"\bem\.(\w+)", text)) <= set(em.__all__)
    commands = re.findall(r"`evenmatch ([\w-]+)", text)
    assert set(commands) <= set(COMMANDS)


def test_the_installation_section_lists_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    section = (ROOT / "docs" / "index.md").read_text("utf-8").partition("## Installation")[2]
    rows = re.findall(r"^\| (`.*`) \|", section, re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`([\w-]+)`", row)]
    assert sorted(listed) == sorted(project["optional-dependencies"].keys() - {"all"})
    packages = re.search(r"itself depends on (.*?)\.", section, re.DOTALL)
    assert packages
    required = {re.split(r"[<>=]", name)[0] for name in project["dependencies"]}
    assert set(re.split(r",\s+|\s+and\s+", packages[1])) == required


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 110


def test_every_decision_fits_on_a_page() -> None:
    decisions = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    assert [int(p.name[:4]) for p in decisions] == list(range(1, len(decisions) + 1))
    for page in decisions:
        text = page.read_text("utf-8")
        assert len(text.split()) < 500
        for heading in ("## Question", "## Choice", "## Refused"):
            assert heading in text, f"{page.name} lacks {heading}"


def test_changelog_fragments_are_named_and_single_sentences() -> None:
    for path in (ROOT / "changelog.d").glob("*.md"):
        assert path.suffixes[0] in (".added", ".changed", ".fixed")
        assert len(path.read_text("utf-8").strip().splitlines()) == 1


def test_the_citation_names_the_software_and_its_sources() -> None:
    yaml = pytest.importorskip("yaml")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert cited["title"] == "evenmatch"
    assert cited["version"] == em.__version__
    assert len(cited["references"]) == 5
    assert all(r["title"] and r["authors"] and r["year"] for r in cited["references"])


def test_no_page_holds_a_merge_conflict() -> None:
    conflict = re.compile(r"^(<{7} |>{7} |={7}$)", re.MULTILINE)
    assert [page.name for page in PAGES if conflict.search(page.read_text("utf-8"))] == []
