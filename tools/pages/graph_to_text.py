"""Make docs/results/graph-to-text.md: the rewards of Jin & Gildea (2022), from a causal start.

    python -m tools.pages.graph_to_text [FOLDER]

FOLDER is where `evenmatch study graphs` was run with the commands below; its results are copied to
results/graph_to_text/webnlg, from where the page is made. Needs EVENMATCH_DATA.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenmatch.studies.experiment import Claim, Experiment, format_interval
from evenmatch.studies.graph_to_text import (
    GRAPH_ARMS,
    START,
    GraphStudy,
    load_webnlg,
    make_graph_design,
)
from evenmatch.studies.graph_to_text_report import (
    GraphExperiment,
    check_graph_claims,
    describe_power,
    graph_report,
    score_graph_arms,
)
from tools.pages import PAGES, RESULTS
from tools.pages.markdown import table_lines

STORED = RESULTS / "graph_to_text"
BENCHMARK = RESULTS / "benchmarks" / "reward.json"
TEST_GRAPHS, VALID_GRAPHS, START_STEPS, SEEDS = 400, 64, 128, (1,)
FIGURES = {
    "validation-bleu": "Validation BLEU after the start, by arm",
    "probe-reward": "Each reward alone: reward of sampled texts",
    "probe-repetition": "Each reward alone: repeated bigrams of sampled texts",
    "probe-length": "Each reward alone: length of sampled texts",
    "probe-bleu": "Each reward alone: validation BLEU of greedy texts",
    "probe-greedy-repetition": "Each reward alone: repeated bigrams of greedy texts",
    "probe-greedy-length": "Each reward alone: length of greedy texts",
}


@dataclass(frozen=True)
class Part:
    """A part of the experiment: its arms and their number of steps."""

    arms: tuple[str, ...]
    steps: int

    @property
    def command(self) -> str:
        """The command that runs it."""
        chosen = (
            "" if self.arms == tuple(GRAPH_ARMS) else "".join(f" --arm '{a}'" for a in self.arms)
        )
        seeds = "".join(f" --seed {seed}" for seed in SEEDS)
        return (
            f"evenmatch study graphs --start-steps {START_STEPS} --steps {self.steps} "
            f"--test-graphs {TEST_GRAPHS} --valid-graphs {VALID_GRAPHS}{seeds}{chosen}"
        )

    def experiment(self) -> GraphExperiment:
        """The experiment on the stored results."""
        design = make_graph_design(
            "webnlg",
            self.arms,
            SEEDS,
            start_steps=START_STEPS,
            steps=self.steps,
            valid_graphs=VALID_GRAPHS,
        )
        corpus = load_webnlg().with_test_size(TEST_GRAPHS)
        return Experiment(GraphStudy(corpus, design), STORED / "webnlg")


COMPARISON = Part(tuple(GRAPH_ARMS), 20)
PROBE = Part(("only F_BERT", "only F_DISC"), 32)

_NOT_RUN = (
    "- The Little Prince (`--data amr`), weights of the reward other than 0.3, several samples "
    "with leave-one-out baselines and contextual rewards are arms or options of the same command, "
    "and were not run. Beam search and a comparison with TRL were not built."
)

HEAD = f"""# Graph to text with rewards

Jin & Gildea (2022) fine-tune T5 on AMR with cross-entropy alone (XENT), or mixed with a reward:
BLEU (BL-R), or F_BERT, F_CONT and F_DISC over the model's own input embeddings. Their table 1, on
LDC2017T10, which is not public:

| | BLEU | METEOR | chrF | BLEURT |
|---|--:|--:|--:|--:|
| XENT | 36.37 | 39.94 | 65.68 | 56.30 |
| BL-R | 37.06 | 40.30 | 66.19 | 56.08 |
| F_BERT | 36.06 | 39.85 | 65.23 | 55.45 |
| F_CONT | 36.91 | 40.34 | 66.07 | 55.96 |
| F_DISC | 37.65 | 40.61 | 66.55 | 57.01 |

Here `smollm2`, a causal language model with 135 million parameters, is fine-tuned on the graphs of
WebNLG v2 with up to three triples by cross-entropy (the start), and every arm continues from it.
This page is written by `python -m tools.pages.graph_to_text` from `results/graph_to_text`:

    {COMPARISON.command}
    {PROBE.command}
"""


def main(given: Sequence[str]) -> None:
    """Copy the results of a folder, if one is named, and write the page."""
    for folder in given:
        for part in ("cells", "texts"):
            shutil.copytree(Path(folder) / part, STORED / "webnlg" / part, dirs_exist_ok=True)
    (PAGES / "graph-to-text.md").write_text("\n".join([HEAD, *sections()]), "utf-8")


def sections() -> Iterator[str]:
    """The lines of the page after its head."""
    runs = COMPARISON.experiment()
    yield from ("## What was not run", "", *missing_lines(runs), "")
    if not runs.results():
        yield from small_t5_lines()
        return
    report, found = graph_report(runs), score_graph_arms(runs)
    yield from ("## Scores", "")
    yield from (f"- {note}" for note in report.notes)
    for name, table in report.tables.items():
        if name.startswith("scores"):
            title = (
                "after the last step"
                if name == "scores"
                else name.removeprefix("scores").strip(" ,")
            )
            yield from ("", f"### {title.capitalize()}", "", *table_lines(table))
    yield from ("", "### Runs", "", *table_lines(report.tables["runs"]))
    if len(report.tables["differences"]) > 1:
        yield from ("", "### What each reward adds to cross-entropy alone", "")
        yield from table_lines(report.tables["differences"])
    yield from ("", "## Claims of the paper", "", *verdict_lines(list(check_graph_claims(found))))
    yield from (f"- {line[0].upper()}{line[1:]}." for line in describe_power(found))
    yield from speed_lines()
    yield from ("", "## Each reward alone", "")
    yield (
        "F_BERT aligns greedily: the paper expects that it pays for repetition. Here a reward is "
        "optimised without cross-entropy, and what the model does to raise it is watched."
    )
    yield ""
    examples, figures = [list(row) for row in report.tables["examples"]], dict(report.figures)
    if any(result.run.arm in PROBE.arms for result in PROBE.experiment().results()):
        probe = graph_report(PROBE.experiment())
        for name in ("scores", "runs"):
            yield from (*table_lines(probe.tables[name]), "")
        figures |= probe.figures
        examples += [row for row in map(list, probe.tables["examples"]) if row not in examples]
    else:
        yield from ("This was not run.", "")
    yield from drawn(figures)
    yield from ("## Examples", "", *table_lines(examples), "")
    yield from small_t5_lines()


def missing_lines(runs: GraphExperiment) -> Iterator[str]:
    """What the comparison lacks."""
    done = {result.run.arm for result in runs.results()} | {
        result.run.arm for result in PROBE.experiment().results()
    }
    absent = [arm for arm in (START, *GRAPH_ARMS, *PROBE.arms) if arm not in done]
    if absent:
        yield f"- These runs are not done: {', '.join(absent)}."
    if not any(arm in done for arm in GRAPH_ARMS):
        yield (
            "- No arm was run after the start, for lack of processor time, so the paper's claims "
            "are neither seen nor refuted here. The commands above run them."
        )
        yield _NOT_RUN
        return
    yield (
        f"- {len(SEEDS)} seed instead of at least three, and {COMPARISON.steps} steps of an arm "
        "instead of as many as it takes for validation curves to flatten: no claim about a reward "
        "can be decided by these runs."
    )
    yield _NOT_RUN


def verdict_lines(claims: Sequence[Claim]) -> Iterator[str]:
    """The paper's claims beside what is seen."""
    if not claims:
        yield from ("No two arms of a claim are done.", "")
        return
    columns = list(dict.fromkeys(where for claim in claims for where in claim.results))
    rows = [["claim", *columns]]
    for claim in claims:
        cells = {
            where: f"{verdict} ({format_interval(found, signed=True, times=100, places=2)})"
            for where, (found, verdict) in claim.results.items()
        }
        rows.append([claim.statement, *(cells.get(where, "") for where in columns)])
    yield from table_lines(rows)
    yield ""
    yield (
        "Seen: the 95 % interval over graphs and seeds and the difference of every seed are above "
        "0. Reversed: all are below. Not seen: neither, and the interval excludes the difference "
        "of the paper's table. Not decided: neither, and it does not; or there is one seed only."
    )
    yield ""


def speed_lines() -> Iterator[str]:
    """The claim about speed, from the benchmark of rewards."""
    found = json.loads(BENCHMARK.read_text("utf-8"))["training step"]
    times: dict[str, Any] = found.get("microseconds a text", {})
    if not times:
        return
    bleu, cont = times["bleu(smoothing='add-k')"], times["f_cont"]
    verdict = "seen" if cont < bleu else "reversed on this CPU"
    yield (
        f"- F_CONT is far faster to compute than BLEU: {verdict}; {cont} against {bleu} "
        "microseconds a text (`python -m benchmarks reward`)."
    )


def drawn(figures: dict[str, str]) -> Iterator[str]:
    """The figures, written beside the page."""
    folder = PAGES / "graphs"
    folder.mkdir(exist_ok=True)
    for name, caption in FIGURES.items():
        if name in figures:
            (folder / f"{name}.svg").write_text(figures[name], "utf-8")
            yield from (f"![{caption}](graphs/{name}.svg)", "")


def small_t5_lines() -> Iterator[str]:
    """The earlier comparison on small models, as a baseline."""
    kept = json.loads((STORED / "small_t5.json").read_text("utf-8"))
    yield "## Small T5 models trained from nothing"
    yield ""
    yield (
        "An earlier comparison trained small T5 models from random weights, with three seeds. They "
        "do not write fluent text, and the chosen step mattered more than the reward; their tables "
        "are kept as a baseline (`results/graph_to_text/small_t5.json`). `evenmatch tune` without "
        "a `model` trains such a model; the study no longer does."
    )
    for name, title in (("webnlg", "WebNLG v2, up to three triples"), ("amr", "The Little Prince")):
        yield from ("", f"### {title}", "", *(f"- {note}" for note in kept[name]["notes"]))
        yield f"- {kept[name]['power']}"
        yield from ("", *table_lines(kept[name]["scores"]))
    yield ""


if __name__ == "__main__":
    main(sys.argv[1:])
