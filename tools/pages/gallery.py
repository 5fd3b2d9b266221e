"""Make the pictures of docs/gallery.md: reports and the viewer as a browser shows them.

    python -m tools.pages.gallery [NAME ...]

Needs MiniLM, the parser, and Debian's chromium. The numbers are those of the sample and of the
pairs that come with evenmatch; the pictures of agreement and keyphrases are made where
EVENMATCH_DATA has WMT17 and kp-predictions.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenmatch.data.catalogue.catalogue import data_set
from evenmatch.data.pairs import read_everyday_sample
from tools.pages import RESULTS, ROOT

FOLDER = ROOT / "docs" / "gallery"
METRICS = ("-m", "bertscore", "-m", "f_disc", "-m", "chrf")
REFERENCE = "A cat was sitting on the mat."
STUTTER, GOOD = "The cat the cat sat on the mat.", "The cat sat on the mat."
LONG = (
    "Although it had rained all week, the children next door built a small boat in the garden.",
    "Despite a week of rain, the neighbours' children made a little wooden boat in their garden.",
)
RATED, PREDICTED = "wmt17-da", "kp-predictions"
NEEDS = {"meta": RATED, "keyphrases": PREDICTED}
STUDY = RESULTS / "alignments" / "alignment.json"


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture: which page, how wide a window, from where to where, and what is done before."""

    name: str
    page: str
    width: int = 900
    high: int = 760
    dark: bool = False
    below: str = ""  # scrolled to this
    opened: str = ""  # clicked first
    view: str = ""


SHOTS = (
    Shot("score", "score", high=860),
    Shot("score-example", "score", high=760, below="h3", opened="summary"),
    Shot("compare-phone", "compare", width=390, high=900),
    Shot("audit", "audit", dark=True),
    Shot("meta", "meta", dark=True),
    Shot("keyphrases", "keyphrases", high=760),
    Shot("study", "study", high=760, dark=True),
    Shot("viewer-links", "viewer", width=1280, high=940),
    Shot("viewer-map", "viewer", width=900, high=620, dark=True, view="map"),
    Shot("viewer-phone", "viewer", width=390, high=900, dark=True),
    Shot("viewer-trees", "trees", width=1280, high=1000, view="trees"),
)


def main(wanted: Sequence[str]) -> None:
    """Make the pictures of these names, or all of them."""
    FOLDER.mkdir(exist_ok=True)
    shots = [shot for shot in SHOTS if not wanted or shot.name in wanted]
    with tempfile.TemporaryDirectory() as temporary, browsing() as browser:
        folder = Path(temporary)
        write_texts(folder)
        for page in dict.fromkeys(shot.page for shot in shots):
            if page in NEEDS and not data_set(NEEDS[page]).present:
                sys.stdout.write(f"left out: {data_set(NEEDS[page]).missing_message}\n")
                continue
            make(page, folder)
            for shot in shots:
                if shot.page == page:
                    take(shot, browser, folder)


def write_texts(folder: Path) -> None:
    """The sample as files: one of all pairs of two systems, and each system's lines."""
    systems = read_everyday_sample()
    pairs = [pair for name in ("good", "repetitive") for pair in systems[name]]
    records = [{"candidate": p.candidate, "references": list(p.references)} for p in pairs]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records), "utf-8")
    for name, own in systems.items():
        (folder / f"{name}.txt").write_text("".join(f"{p.candidate}\n" for p in own), "utf-8")
    references = "".join(f"{pair.references[0]}\n" for pair in systems["good"])
    (folder / "references.txt").write_text(references, "utf-8")


def make(page: str, folder: Path) -> None:
    """Write the page of that name, by the commands a person would give."""
    align = ("align", STUTTER, REFERENCE, "--against", GOOD, "--plot")
    systems = [word for name in ("terse", "repetitive", "good") for word in ("-c", f"{name}.txt")]
    if page == "keyphrases":
        shutil.copy(data_set(PREDICTED).folder / "nus.jsonl.gz", folder)
    generators = ("--pred", "humaneval-mle", "--pred", "humaneval-rl")
    commands: dict[str, list[Sequence[str]]] = {
        "score": [("score", "pairs.jsonl", *METRICS, "--segments", "--json")],
        "compare": [("compare", *systems, "-r", "references.txt", *METRICS, "--json")],
        "audit": [("audit", *METRICS, "--json")],
        "meta": [("meta", RATED, "--subset", "zh-en", "--level", "segment", *METRICS, "--json")],
        "keyphrases": [("keyphrases", "nus.jsonl.gz", *generators, "--json")],
        "study": [("report", str(STUDY), "-o", "study.html")],
        "viewer": [(*align, "viewer.html", "-m", "f_disc", "--also", "bertscore")],
        "trees": [("align", *LONG, "--plot", "trees.html", "-m", "struct_dep_head")],
    }
    for command in commands[page]:
        printed = run(folder, *command)
        if "--json" in command:
            (folder / f"{page}.json").write_text(printed, "utf-8")
            texts = ("--texts", "pairs.jsonl") if page == "score" else ()
            run(folder, "report", f"{page}.json", *texts)


def run(folder: Path, *command: str) -> str:
    """What one command prints."""
    line = [sys.executable, "-m", "evenmatch", *command]
    return subprocess.run(line, cwd=folder, check=True, capture_output=True, text=True).stdout


@contextmanager
def browsing() -> Iterator[Any]:
    """Debian's chromium, driven by playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        program = shutil.which("chromium")
        # Without its sandbox chromium also starts as root, as in a container.
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def take(shot: Shot, browser: Any, folder: Path) -> None:
    """Visit a page and keep what is seen."""
    window = {"width": shot.width, "height": shot.high}
    scheme = "dark" if shot.dark else "light"
    context = browser.new_context(viewport=window, color_scheme=scheme)
    page = context.new_page()
    address = (folder / f"{shot.page}.html").as_uri()
    page.goto(f"{address}#v={shot.view}" if shot.view else address)
    if shot.opened:
        page.locator(shot.opened).first.click()
    if shot.below:
        page.locator(shot.below).first.evaluate("element => element.scrollIntoView()")
    place = FOLDER / f"{shot.name}.png"
    page.screenshot(path=place)
    context.close()
    shrink(place)
    sys.stdout.write(f"{place.name}: {place.stat().st_size / 1000:.0f} kB\n")


def shrink(place: Path) -> None:
    """Fewer colours: pages have few, and the file becomes a third."""
    from PIL import Image

    with Image.open(place) as image:
        small = image.convert("RGB").quantize(96, dither=Image.Dither.NONE)
    small.save(place, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1:])
