"""Write docs/results/keyphrase-training.md: the rewards of Luo et al. (2021), compared.

    evenmatch study keyphrases --out FOLDER
    python -m tools.pages.keyphrase_generation [FOLDER ...]

A folder named is where `evenmatch study keyphrases` was run; its results are copied to
results/keyphrases, from where the page is made. Needs EVENMATCH_DATA.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from evenmatch.studies.experiment import Experiment
from evenmatch.studies.keyphrase_generation import (
    ABLATIONS,
    KEYPHRASE_ARMS,
    KeyphraseCorpus,
    KeyphraseDesign,
    KeyphraseStudy,
    load_keyphrase_corpus,
)
from evenmatch.studies.keyphrase_generation_report import (
    KeyphraseExperiment,
    check_keyphrase_claims,
    keyphrase_report,
    score_keyphrase_arms,
)
from tools.pages import PAGES, RESULTS
from tools.pages.markdown import claim_lines, table_lines

STORED = RESULTS / "keyphrases"
HEAD = """# Keyphrases trained with rewards

Luo et al. (2021) train catSeq by likelihood and then by self-critical reinforcement: for
F1, for FG, for the scorer FB, or for one of the latter first and then for F1 (2RL). Here is the
same with a small generator and the public samples, since the half million documents of KP20k
cannot be had offline. Their table 1, present phrases, for the order of things (F1@M, F1@5, FG):

| | Inspec | Krapivin | KP20k |
|---|---|---|---|
| catSeq | .262 .225 .381 | .354 .269 .352 | .367 .291 .371 |
| RL(F1) | .300 .250 .382 | .362 .287 .360 | .383 .310 .369 |
| RL(FG) | .252 .201 .460 | .359 .228 .413 | .365 .290 .440 |
| RL(FB) | .254 .200 .463 | .354 .230 .416 | .366 .291 .444 |
| 2RL(FG) | .308 .266 .425 | .375 .304 .389 | .391 .327 .381 |
| 2RL(FB) | .310 .267 .430 | .374 .305 .390 | .392 .330 .383 |

Ours, by

    evenmatch study keyphrases --minutes 40

which stops after 40 minutes and goes on when it is run again:
"""


def main(folders: Sequence[str]) -> None:
    """Copy the results that are named, and write the page of all there are."""
    for folder in folders:
        for part in ("cells", "predictions"):
            shutil.copytree(Path(folder) / part, STORED / part, dirs_exist_ok=True)
    corpus = load_keyphrase_corpus()
    design = KeyphraseDesign((*KEYPHRASE_ARMS, *_ablations(corpus)))
    runs = Experiment(KeyphraseStudy(corpus, design), STORED)
    (PAGES / "keyphrase-training.md").write_text("\n".join([HEAD, *body(runs)]), "utf-8")


def _ablations(corpus: KeyphraseCorpus) -> list[str]:
    """The arms with a part of FG left out that were run at all."""
    known = Experiment(KeyphraseStudy(corpus, KeyphraseDesign(tuple(ABLATIONS))), STORED)
    there = {result.run.rewards for result in known.results()}
    return [arm for arm, rewards in ABLATIONS.items() if rewards in there]


def body(runs: KeyphraseExperiment) -> Iterator[str]:
    """What the results say: tables, claims, figures."""
    found = score_keyphrase_arms(runs.results(), runs.study.corpus)
    report = keyphrase_report(runs, found)
    yield from (f"- {note}" for note in (*runs.describe_missing(), *report.notes))
    for name, table in report.tables.items():
        yield from ["", f"## {name[0].upper()}{name[1:]}", "", *table_lines(table)]
    yield from ["", "## What replicates and what does not", ""]
    yield from claim_lines(list(check_keyphrase_claims(found)), "test documents")
    yield from ["## Distributions (the paper's figure 3) and curves", ""]
    for name, figure in report.figures.items():
        (PAGES / "keyphrases" / f"{name}.svg").write_text(figure, "utf-8")
        yield from [f"![{name.replace('-', ' ')}](keyphrases/{name}.svg)", ""]


if __name__ == "__main__":
    main(sys.argv[1:])
