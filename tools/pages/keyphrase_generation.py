"""Write docs/results/keyphrase-training.md: the rewards of Luo et al. (2021), compared.

    evenmatch study keyphrases --out FOLDER
    python -m tools.pages.keyphrase_generation [FOLDER ...]

A folder named is where `evenmatch study keyphrases` was run; its results are copied to
results/keyphrases/hinted-start, from where the page is made. Needs EVENMATCH_DATA.
results/keyphrases also holds two earlier experiments with other starts.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from evenmatch.data.tables import TextTable
from evenmatch.stats.bootstrap import Interval
from evenmatch.studies.experiment import (
    NOT_DECIDED,
    NOT_SEEN,
    REVERSED,
    SEEN,
    Experiment,
    RunResult,
    format_interval,
    run_name,
    slug,
)
from evenmatch.studies.keyphrase_arms import PEOPLE, KeyphraseArmScores, score_keyphrase_arms
from evenmatch.studies.keyphrase_generation import (
    ABLATIONS,
    KEYPHRASE_ARMS,
    MLE,
    KeyphraseCorpus,
    KeyphraseDesign,
    KeyphraseRun,
    KeyphraseStudy,
    baseline_predictions,
    load_keyphrase_corpus,
)
from evenmatch.studies.keyphrase_generation_report import (
    KeyphraseExperiment,
    case_study,
    check_keyphrase_claims,
    keyphrase_report,
    measure_repetition,
)
from evenmatch.training.keyphrases.sequences import make_keyphrase_examples
from tools.pages import PAGES, RESULTS
from tools.pages.markdown import table_lines

STORED = RESULTS / "keyphrases" / "hinted-start"
START = RESULTS / "benchmarks" / "keyphrase-start.json"
EARLIER = {
    "GRU on encoder": RESULTS / "keyphrases" / "encoder-start",
    "small": RESULTS / "keyphrases" / "small-start",
}
SEEDS = (1, 2, 3, 4, 5)
CASES = 2  # documents shown in the case study
HEAD = """# Keyphrases trained with rewards

Luo et al. (2021) train catSeq by likelihood and then by self-critical reinforcement: for
F1, for FG, for the scorer FB, or for one of the latter first and then for F1 (2RL). Here is the
same with a small generator and the public samples, since the half million documents of KP20k
cannot be had offline.

    evenmatch study keyphrases --minutes 40 --ablations \\
      --seed 1 --seed 2 --seed 3 --seed 4 --seed 5 --out keyphrase-study
    python -m tools.pages.keyphrase_generation keyphrase-study

The first command stops after 40 minutes and goes on when it is run again; the second makes this
page.
"""

DESIGN = """
## Design

A start is trained by maximum likelihood: catSeq with a decoder that copies, on the frozen states of
the embedded encoder, word by word. A few thousand documents are too few to learn from them which
words are rare, or often in keyphrases. So the reader gets *hints*: what a candidate ranker, fitted
to the same documents, knows of each token, without a document's own keyphrases. The decoder gets a
*history*: which words of the document follow what it has written, and which it has written already.
Stages of reinforcement learning follow, as the authors describe them: a reward for the present and
one for the absent phrases, self-critical, with patience, and without the model that a stage starts
from among those it may end with. Unlike theirs, they are short, and leave the reader as it is.

A claim is *seen* if the 95 % interval of the difference is above 0, *reversed* if it is below, *not
seen* if it contains 0 and excludes the published difference, and *not decided* otherwise or with
fewer than three seeds. Intervals are from a hierarchical bootstrap: each resample draws seeds, and
documents, with replacement. *Detectable* is the true difference that an experiment with this
standard error finds in 80 % of repetitions; smaller ones are beyond its power.
"""

PUBLISHED = """
## The paper's table 1

Present phrases: F1@M, F1@5, FG.

| | Inspec | Krapivin | KP20k |
|---|---|---|---|
| catSeq | .262 .225 .381 | .354 .269 .352 | .367 .291 .371 |
| RL(F1) | .300 .250 .382 | .362 .287 .360 | .383 .310 .369 |
| RL(FG) | .252 .201 .460 | .359 .228 .413 | .365 .290 .440 |
| RL(FB) | .254 .200 .463 | .354 .230 .416 | .366 .291 .444 |
| 2RL(FG) | .308 .266 .425 | .375 .304 .389 | .391 .327 .381 |
| 2RL(FB) | .310 .267 .430 | .374 .305 .390 | .392 .330 .383 |
"""

REPETITION_TEXT = """
## Repeated words in absent phrases

A reward by a trained scorer can be gamed: from the small start below, RL(FB) learnt to write absent
phrases of fifty words. The scorer has been trained with degenerate phrases since, and never scores
long or repetitive ones above what FG can give to their length.

An arm is called degenerate only if the interval of one of its seeds excludes twice people's share,
for few absent phrases are written: where people repeat some words in thousands, a system that
writes 50 words exceeds twice their share with a single one. What FB still does on Inspec is not its
own: RL(FG) does it too, and so does a published system trained by likelihood. All of it are words
written twice ("wave wave"); a generator now leaves out phrases in which a word follows itself, and
the last two columns show what remains. All other tables are of the phrases as written.

Both the interval and this rule were chosen after the results were seen: a plain comparison of the
share with the limit, without intervals, finds more (see above). And the rule has a price: some of
people's own phrases double a word, as the rows of people show.
"""

EARLIER_TEXT = """
## Earlier starts

Two starts came before, both below the candidate ranker: a GRU reader on the states of the encoder,
without hints and history, and a smaller catSeq without a pretrained encoder, trained on Inspec as
well. Present phrases of KP20k, means over seeds; the last column is the share of words of absent
phrases that repeat an earlier one, in the worst seed:
"""


def main(folders: Sequence[str]) -> None:
    """Copy the results that are named, and write the page of all there are."""
    for folder in folders:
        for part in ("cells", "predictions"):
            shutil.copytree(Path(folder) / part, STORED / part, dirs_exist_ok=True)
    corpus = load_keyphrase_corpus()
    design = KeyphraseDesign((*KEYPHRASE_ARMS, *ABLATIONS), SEEDS)
    runs = Experiment(KeyphraseStudy(corpus, design), STORED)
    lines = [HEAD, *body(runs, list(earlier_lines(corpus)))]
    (PAGES / "keyphrase-training.md").write_text("\n".join(lines) + "\n", "utf-8")


def body(runs: KeyphraseExperiment, earlier: Sequence[str] = ()) -> Iterator[str]:
    """What the results say: a summary, then tables and figures; `earlier` come before the last."""
    study = runs.study
    baselines = baseline_predictions(study, runs.folder)
    results = runs.results()
    shared = study.design.shared_start
    found = score_keyphrase_arms(results, study.corpus, baselines, shared_start=shared)
    report = keyphrase_report(runs, found)
    tables = dict(report.tables)
    every_run, repetition = (
        tables.pop(name, [[]]) for name in ("every run", "repetition in absent phrases")
    )
    tables.pop("claims", None)
    yield from ["## In short", "", *summary_lines(runs, found), "", *claim_lines(found), ""]
    yield "Not run:"
    yield ""
    yield from (f"- {line}" for line in (*runs.describe_missing(), *NOT_RUN))
    yield DESIGN
    yield from (f"- {note}" for note in report.notes)
    yield PUBLISHED
    for name, table in tables.items():
        yield from section(name, table)
    yield from start_lines()
    yield REPETITION_TEXT
    yield from table_lines(repetition)
    yield from ["", "## A case (the paper's figure 2)", ""]
    yield from case_lines(study.corpus, results)
    yield from ["## Distributions (the paper's figure 3) and curves", ""]
    for name, figure in report.figures.items():
        (PAGES / "keyphrases" / f"{name}.svg").write_text(figure, "utf-8")
        yield from [f"![{name.replace('-', ' ')}](keyphrases/{name}.svg)", ""]
    yield from earlier
    yield from section("every run", every_run)


def summary_lines(runs: KeyphraseExperiment, found: Sequence[KeyphraseArmScores]) -> Iterator[str]:
    """Yield the result in a few lines: size, verdicts, power, start and repetition."""
    design, training = runs.study.design, runs.study.training_data.training
    yield (
        f"- {len(training.examples)} training documents, one start by maximum likelihood, stages "
        f"of {design.stage.training.most_steps} steps, up to {len(design.seeds)} seeds of each "
        f"arm, tests on {', '.join(runs.study.corpus.tests)}."
    )
    claims = list(check_keyphrase_claims(found))
    if claims:
        counts = Counter(each.verdict for each in claims)
        said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
        small, large = (f(100 * each.detectable for each in claims) for f in (min, max))
        beyond = sum(
            abs(each.claim.published.get(each.data, 1)) < each.detectable for each in claims
        )
        yield f"- Of {len(claims)} claims about a test set: {said}."
        yield (
            f"- Power: the experiment can detect differences of {small:.1f} to {large:.1f} points; "
            f"{beyond} of the {len(claims)} published ones are smaller than that."
        )
    yield COPIED_START
    yield from describe_start(found)
    measured = [m for m in measure_repetition(found) if m.arm in KEYPHRASE_ARMS and "FB" in m.arm]
    if measured:
        for what, bad in (
            ("more than twice people's share", [m for m in measured if m.share.value > m.limit]),
            ("whose interval excludes that (degenerate)", [m for m in measured if m.degenerate]),
            (
                "degenerate without phrases in which a word follows itself",
                [m for m in measured if m.guarded_degenerate],
            ),
        ):
            where = ", ".join(f"{m.arm} on {m.data}" for m in bad) or "none"
            yield f"- Repeated words in absent phrases after FB, worst seed: {what}: {where}."


def claim_lines(found: Sequence[KeyphraseArmScores]) -> Iterator[str]:
    """Yield a table of the claims, a row for each; differences are times 100."""
    claims = list(check_keyphrase_claims(found))
    data = list(dict.fromkeys(each.data for each in claims))
    rows: dict[str, list[str]] = {}
    for each in claims:
        claim, published = each.claim, each.claim.published.get(each.data)
        name = (
            f"{claim.statement} ({claim.metric}: {claim.arm} - {claim.other}, {each.seeds} seeds)"
        )
        paper = "" if published is None else f"paper {100 * published:+.1f}, "
        rows.setdefault(name, []).append(
            f"**{each.verdict}** "
            f"{format_interval(each.difference, signed=True, times=100, places=1)} "
            f"({paper}detectable {100 * each.detectable:.1f})"
        )
    yield from table_lines([["claim", *data], *([name, *cells] for name, cells in rows.items())])


def describe_start(found: Sequence[KeyphraseArmScores]) -> Iterator[str]:
    """Yield whether the start is above the candidate ranker on the last test set."""
    test = found[-1].data if found else ""
    scores = {each.scores.arm: each.scores for each in found if each.data == test}
    if MLE in scores and RANKER in scores:
        start, ranker = (scores[name].mean("present F1@M").value for name in (MLE, RANKER))
        verdict = "above" if start > ranker else "not above"
        yield (
            f"- The start is {verdict} the candidate ranker on {test}: F1@M of present phrases "
            f"{start:.3f} against {ranker:.3f}. What rewards do to a weak start need not be what "
            "they do to a good one."
        )


START_TEXT = """
## Can the start be lifted above the ranker?

    python -m benchmarks.training.keyphrase_start keyphrase-study

Another start would make the stages of reinforcement incomparable, so this changes only which of its
phrases are kept: its present phrases are ordered by their log-probability, alone or with the
log-odds that its hints give them, down to a threshold chosen on validation documents. It brings the
start near the ranker, not above it; more epochs and beam search were not tried. F1@M of present
phrases, KP20k:
"""


COPIED_START = (
    "- RL(FB) and 2RL(FB) with seeds 4 and 5 and all ablations begin with a copy of the start that "
    "was trained again and differs a little (below), so a small difference between them and other "
    "arms may be one of the starts."
)
RETRAINED_TEXT = """
The weights of the start are not stored, so it was trained again for this by the same command: close
to the stored one, but not equal (compare the table above), for a reason that was not found. RL(FB)
and 2RL(FB) with seeds 4 and 5 and all ablations start from this copy, and the phrase scorer of
these seeds is trained on its phrases.
"""


def start_lines() -> Iterator[str]:
    """Yield what other choices of the start's phrases score."""
    stored = json.loads(START.read_text("utf-8"))
    rows = [["", "F1@M", "the ranker's minus this"]]
    for row in stored["rows"]:
        own = Interval(row["f1_at_m"], row["low"], row["high"])
        less = stored["ranker minus"].get(row["system"])
        difference = format_interval(Interval(*less), signed=True) if less else ""
        rows.append([row["system"], format_interval(own), difference])
    yield from [START_TEXT, *table_lines(rows), RETRAINED_TEXT]


RANKER = "candidate ranker"
VERDICTS = (SEEN, NOT_SEEN, REVERSED, NOT_DECIDED)

NOT_RUN = (
    "the authors' half million training documents of KP20k, which cannot be had offline",
    "catSeqD, catSeqCorr and catSeqTG as starts: they are settings of the model "
    "([how](../how-to/train-a-keyphrase-generator.md)), tested but not trained at length",
    "NUS and SemEval, which the paper's table 1 does not have either",
)


def section(name: str, table: TextTable) -> list[str]:
    """Return a heading and a table."""
    return ["", f"## {name[0].upper()}{name[1:]}", "", *table_lines(table), ""]


def case_lines(corpus: KeyphraseCorpus, results: Sequence[RunResult]) -> Iterator[str]:
    """Yield the phrases of the first test documents of the last test set, by arm, first seed."""
    test = list(corpus.tests)[-1]
    first = min((result.run.seed for result in results), default=0)
    outputs = {r.run.arm: r.outputs[test] for r in results if r.run.seed == first}
    for number in range(CASES if outputs else 0):
        yield from [f"Document {number + 1} of {test}:", ""]
        yield from table_lines(case_study(corpus.tests[test], outputs, number))
        yield ""


def earlier_lines(corpus: KeyphraseCorpus) -> Iterator[str]:
    """What came before: a short table, and what its scores do not show."""
    data = list(corpus.tests)[-1]
    only = KeyphraseCorpus((), (), {data: corpus.tests[data]})
    rows = [["start", "arm", "seeds", "F1@M", "FG", "repeated in absent"]]
    for name, folder in EARLIER.items():
        for each in score_keyphrase_arms(read_results(folder), only):
            if each.scores.arm != PEOPLE:
                f1, fg = (each.scores.mean(f"present {metric}").value for metric in ("F1@M", "FG"))
                worst = max(run.repetition[0].value for run in each.runs)
                values = [f"{f1:.3f}", f"{fg:.3f}", f"{100 * worst:.0f} %"]
                rows.append([name, each.scores.arm, str(len(each.runs)), *values])
    yield from [EARLIER_TEXT, *table_lines(rows), ""]
    yield "Of the small start, from its stored predictions:"
    yield ""
    yield from (f"- {line}" for line in describe_results(read_results(EARLIER["small"])))
    documents = make_keyphrase_examples(
        load_keyphrase_corpus(train_on_inspec=True).train, longest=300, most_phrases=14
    )
    yield (
        f"- Training documents: {documents}. Inspec's training part and 400 of its validation "
        "documents are among them, while the paper trains on KP20k alone."
    )
    yield "- A stage could end with the model that it started from, which the authors' cannot."
    small = check_keyphrase_claims(score_keyphrase_arms(read_results(EARLIER["small"]), corpus))
    counts = Counter(each.verdict for each in small)
    yield f"- Claims: {', '.join(f'{counts[v]} {v}' for v in VERDICTS if counts[v])}."


def read_results(folder: Path) -> list[RunResult]:
    """Read stored results by their names, whatever settings they were made with."""
    found = []
    for seed in range(10):
        for arm, rewards in KEYPHRASE_ARMS.items():
            run = KeyphraseRun(seed, rewards)
            name = slug(run_name(run))
            path = folder / "cells" / f"{name}.json"
            if path.exists():
                cell = json.loads(path.read_text("utf-8"))["found"]
                packed = (folder / "predictions" / f"{name}.json.gz").read_bytes()
                outputs = json.loads(gzip.decompress(packed))
                looks = [(int(step), float(value)) for step, value in cell["looks"]]
                found.append(RunResult(run, looks, {}, cell["seconds"], outputs))
                assert run.arm == arm
    return found


def describe_results(results: Sequence[RunResult]) -> Iterator[str]:
    """Yield what stored predictions show: equal runs, starts that were kept, overlong phrases."""
    for one, other in combinations(results, 2):
        if one.outputs == other.outputs:
            yield f"{run_name(other.run)} is {run_name(one.run)}: all their predictions are equal."
    for result in results:
        step, _ = max(result.evaluations, key=lambda each: each[1])
        if step == 0 and result.run.arm != MLE:
            yield f"{run_name(result.run)} ended with the model that it started from."
    for result in results:
        share, words = count_overlong(result.outputs)
        if share > OVERLONG_SHARE:
            yield (
                f"{run_name(result.run)} writes phrases of more than {OVERLONG} words for "
                f"{100 * share:.0f} % of the documents, {words:.0f} words long on average."
            )


OVERLONG, OVERLONG_SHARE = 15, 0.02


def count_overlong(outputs: Mapping[str, Sequence[Sequence[str]]]) -> tuple[float, float]:
    """Return the share of documents with an overlong phrase, and the mean length of these."""
    documents = [phrases for each in outputs.values() for phrases in each]
    longest = [max((len(p.split()) for p in phrases), default=0) for phrases in documents]
    over = [length for length in longest if length > OVERLONG]
    return len(over) / max(1, len(documents)), sum(over) / max(1, len(over))


if __name__ == "__main__":
    main(sys.argv[1:])
