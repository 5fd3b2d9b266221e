"""Make docs/results/graph-to-text.md: the rewards of Jin & Gildea (2022), from a causal start.

    python -m tools.pages.graph_to_text [FOLDER]

FOLDER is where `evenmatch study graphs` was run with the commands below; its results are copied to
results/graph_to_text/webnlg, from where the page is made. Runs that are not done are named on the
page. Also makes graph-to-text-small-t5.md, the tables of an earlier comparison. Needs
EVENMATCH_DATA.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenmatch.data.tables import TextTable
from evenmatch.reports.plots import line_plot_svg
from evenmatch.studies.experiment import (
    NOT_DECIDED,
    NOT_SEEN,
    SEEN,
    Claim,
    Experiment,
    RunResult,
    format_interval,
    results_by_arm,
    run_name,
)
from evenmatch.studies.graph_claims import (
    BLEU,
    CHRF,
    GRAPH_CLAIMS,
    METEOR,
    REPETITION,
    check_graph_claims,
    describe_power,
)
from evenmatch.studies.graph_to_text import (
    GRAPH_ARMS,
    XENT,
    GraphStudy,
    load_webnlg,
    make_graph_design,
)
from evenmatch.studies.graph_to_text_report import (
    GraphExperiment,
    graph_report,
    score_graph_arms,
)
from tools.pages import PAGES, RESULTS
from tools.pages.markdown import table_lines

STORED = RESULTS / "graph_to_text"
BENCHMARK = RESULTS / "benchmarks" / "reward.json"
GRPO = STORED / "grpo.json"
TEST_GRAPHS, VALID_GRAPHS, START_STEPS = 400, 64, 128
LEARNT = "wmt_blend"
COMPARED = (BLEU, METEOR, CHRF, "learnt", "length", REPETITION)  # rows of the table of differences
FEWER = (BLEU, METEOR, CHRF, "covered", "invented", REPETITION)  # columns of further tables
FIGURES = {
    "validation-bleu": "Validation BLEU after the start, by arm",
    "probe-reward": "Each reward alone: reward of sampled texts",
    "probe-repetition": "Each reward alone: repeated bigrams of sampled texts",
    "probe-length": "Each reward alone: length of sampled texts",
    "probe-bleu": "Each reward alone: validation BLEU of greedy texts",
    "probe-chrf": "Each reward alone: validation chrF of greedy texts",
    "probe-greedy-repetition": "Each reward alone: repeated bigrams of greedy texts",
}


@dataclass(frozen=True)
class Part:
    """A part of the experiment: its arms, their number of steps, and the seeds."""

    arms: tuple[str, ...]
    steps: int
    seeds: tuple[int, ...]

    @property
    def command(self) -> str:
        """The command that runs it."""
        chosen = (
            "" if self.arms == tuple(GRAPH_ARMS) else "".join(f" --arm '{a}'" for a in self.arms)
        )
        seeds = "".join(f" --seed {seed}" for seed in self.seeds)
        return (
            f"evenmatch study graphs --start-steps {START_STEPS} --steps {self.steps} "
            f"--test-graphs {TEST_GRAPHS} --valid-graphs {VALID_GRAPHS}{seeds}{chosen}"
        )

    def experiment(self) -> GraphExperiment:
        """The experiment on the stored results."""
        design = make_graph_design(
            "webnlg",
            self.arms,
            self.seeds,
            start_steps=START_STEPS,
            steps=self.steps,
            valid_graphs=VALID_GRAPHS,
        )
        corpus = load_webnlg().with_test_size(TEST_GRAPHS)
        return Experiment(GraphStudy(corpus, design), STORED / "webnlg")


CONTEXTUAL = "contextual f_disc"
COMPARISON = Part((*GRAPH_ARMS, CONTEXTUAL), 60, (1, 2, 3))
PROBE = Part(("only F_BERT", "only F_DISC"), 60, (1, 2, 3))

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

SMALL_T5_HEAD = """# Graph to text with small T5 models

An earlier comparison of the rewards of Jin & Gildea (2022) trained small T5 models from random
weights, with three seeds. They do not write fluent text, and the chosen step mattered more than
the reward; [the comparison from a pretrained model](graph-to-text.md) replaces it, and the tables
are kept as a baseline (`results/graph_to_text/small_t5.json`). `evenmatch tune` without a `model`
trains such a model; the study no longer does.
"""


def main(given: Sequence[str]) -> None:
    """Copy the results of a folder, if one is named, and write the pages."""
    for folder in given:
        for part in ("cells", "texts"):
            shutil.copytree(Path(folder) / part, STORED / "webnlg" / part, dirs_exist_ok=True)
    (PAGES / "graph-to-text.md").write_text("\n".join([HEAD, *sections()]), "utf-8")
    small = "\n".join([SMALL_T5_HEAD, *small_t5_lines()])
    (PAGES / "graph-to-text-small-t5.md").write_text(small, "utf-8")


def sections() -> Iterator[str]:
    """The lines of the page after its head."""
    runs, probes = COMPARISON.experiment(), PROBE.experiment()
    report, probe = graph_report(runs, learnt=LEARNT), graph_report(probes, learnt=LEARNT)
    found = score_graph_arms(runs, learnt=LEARNT)
    claims = [*check_graph_claims(found), *check_graph_claims(score_graph_arms(probes))]
    yield from ("## Claims of the paper", "")
    yield from claim_lines({each.statement: each for each in claims}, runs)
    yield from (f"- {line[0].upper()}{line[1:]}." for line in describe_power(found))
    yield from missing_lines(runs, probes)
    yield from ("", "## Scores", "", *(f"- {note}" for note in report.notes))
    yield "- learnt: `wmt_blend`, the blend of metrics that comes with evenmatch"
    yield "- arms with other seeds are not comparable in the tables; differences use shared seeds"
    yield from ("", "### After the last step", "", *table_lines(report.tables["scores"]), "")
    yield from figure_lines(report.figures, ["validation-bleu"])
    if len(differences := report.tables["differences"]) > 1:
        rows = [row for row in differences[1:] if row[0] in COMPARED]
        yield from ("### What each reward adds to cross-entropy alone", "")
        yield from (*table_lines([differences[0], *rows]), "")
    for name, table in report.tables.items():
        if name.startswith("scores") and name != "scores":
            title = name.removeprefix("scores").strip(" ,")
            columns = [n for n, each in enumerate(table[0]) if each in ("", "seeds", *FEWER)]
            fewer = [[row[n] for n in columns] for row in table]
            yield from (f"### {title.capitalize()}", "", *table_lines(fewer), "")
    yield from ("### Runs", "", *table_lines(report.tables["runs"]), "")
    yield from probe_lines(probe.tables, probe.figures, done=_arms_of(probes) & set(PROBE.arms))
    yield from grpo_lines()
    examples = [list(row) for row in report.tables["examples"]]
    shown = {row[0] for row in examples}
    more = [list(row) for row in probe.tables["examples"] if row[1] in PROBE.arms]
    examples += [row for row in more if row[0] in shown]
    order = list(dict.fromkeys(row[0] for row in examples))  # the header first
    examples.sort(key=lambda row: order.index(row[0]))
    yield from ("## Examples", "", *table_lines(examples), "")
    yield "[Tables of small T5 models](graph-to-text-small-t5.md), trained from random weights."
    yield ""


def _arms_of(runs: GraphExperiment) -> set[str]:
    return {result.run.arm for result in runs.results()}


def missing_lines(runs: GraphExperiment, probes: GraphExperiment) -> Iterator[str]:
    """What the comparison lacks."""
    yield from ("", "## What was not run", "")
    every = [(part, run) for part in (runs, probes) for run in part.study.design.runs()]
    absent = [run_name(run) for part, run in every if part.load_result(run) is None]
    if absent:
        yield f"- These runs are not done: {', '.join(dict.fromkeys(absent))}."
    seeds = len(COMPARISON.seeds)
    yield (
        f"- The arms take {COMPARISON.steps} steps of {runs.study.design.fine_tuning.batch} "
        f"examples, with {seeds} seed{'s' if seeds > 1 else ''}; the paper trains for about twenty "
        "passes over its corpus, from the pretrained model on."
    )
    yield (
        "- The Little Prince (`--data amr`), weights of the reward other than 0.3, several samples "
        "with leave-one-out baselines and other rewards on the embeddings of another model are "
        "arms or options of the same command, and were not run."
    )
    if not any(name.startswith("beam") for r in runs.results() for name in r.outputs):
        yield "- Texts are decoded greedily; `--beams 5` adds beam search, and was not run."


def claim_lines(claims: Mapping[str, Claim], runs: GraphExperiment) -> Iterator[str]:
    """The paper's claims beside what is seen."""
    columns = (BLEU, METEOR, CHRF)
    rows = [["claim", *columns, "other measures"]]
    for wanted in GRAPH_CLAIMS:
        claim = claims.get(wanted.statement)
        cells = {
            where: f"{verdict}: {format_interval(found, signed=True, times=100, places=2)}"
            for where, (found, verdict) in (claim.results if claim else {}).items()
        }
        others = "; ".join(f"{cells[name]}, {name}" for name in cells if name not in columns)
        if wanted.kind == "repeats":
            rows.append([wanted.statement, "", "", "", others or "not run"])
        else:
            rows.append([wanted.statement, *(cells.get(m, "not run") for m in columns), others])
    statement = "F_DISC goes on to improve validation BLEU after cross-entropy overfits"
    rows.append([statement, judge_overfitting(runs.results()), "", "", ""])
    rows.append(["F_CONT is far faster to compute than BLEU", "", "", "", speed_verdict()])
    yield from (*table_lines(rows), "")
    yield (
        "Differences are of the last step, in points, with 95 % intervals over graphs and seeds. "
        "Seen: the interval and the difference of every seed are above 0. Reversed: all are below. "
        "Not seen: neither, and the interval excludes the difference of the paper's table, if it "
        "gives one. Not decided: neither, and it does not; or fewer than two seeds are done. The "
        "claim that two rewards do as well is seen if the interval lies within the gain of BL-R "
        "in the paper's table, and not seen if it lies outside."
    )
    yield ""


def judge_overfitting(results: Sequence[RunResult]) -> str:
    """Judge the claim that F_DISC goes on to improve validation BLEU after cross-entropy overfits.

    Nothing is decided unless the best step of XENT comes before its last one, for every seed.
    """
    arms = results_by_arm(results, (XENT, "F_DISC"))
    runs = {arm: {each.run.seed: each for each in own} for arm, own in arms.items()}
    shared = sorted(set(runs.get(XENT, {})) & set(runs.get("F_DISC", {})))
    if not shared:
        return "not run"
    later, overfitted = 0, 0
    for seed in shared:
        plain, rewarded = (runs[arm][seed].evaluations for arm in (XENT, "F_DISC"))
        best = max(plain, key=lambda each: each[1])[0]
        overfitted += best < plain[-1][0]
        later += max(rewarded, key=lambda each: each[1])[0] > best
    of = f"of {len(shared)} seed{'s' if len(shared) > 1 else ''}"
    if len(shared) < 2 or overfitted < len(shared):
        verdict = NOT_DECIDED
    else:
        verdict = SEEN if later == len(shared) else NOT_SEEN
    return (
        f"{verdict} (XENT is best before its last step for {overfitted} {of}, F_DISC at a later "
        f"step than XENT for {later})"
    )


def speed_verdict() -> str:
    """The claim about speed, from the benchmark of rewards."""
    found = json.loads(BENCHMARK.read_text("utf-8"))["training step"]
    times: dict[str, Any] = found.get("microseconds a text", {})
    if not times:
        return "not run"
    bleu, cont = times["bleu(smoothing='add-k')"], times["f_cont"]
    verdict = "seen" if cont < bleu else "reversed on this CPU"
    return f"{verdict}: {cont} against {bleu} microseconds a text (`python -m benchmarks reward`)"


def probe_lines(
    tables: Mapping[str, TextTable], figures: Mapping[str, str], done: set[str]
) -> Iterator[str]:
    """What a model does to raise one reward without cross-entropy."""
    yield from ("## Each reward alone", "")
    yield (
        "F_BERT aligns greedily: the paper expects that it pays for repetition. Here a reward is "
        "optimised without cross-entropy and with a higher learning rate, and what the model does "
        "to raise it is watched. Rewards are on the scale of each metric and not comparable."
    )
    yield ""
    if not done:
        yield from ("This was not run.", "")
        return
    for name in ("scores", "runs"):
        header, *rows = tables[name]
        own = [row for row in rows if row[0].startswith(("start", "only "))]
        yield from (*table_lines([header, *own]), "")
    yield from figure_lines(figures, [name for name in FIGURES if name.startswith("probe-")])


def grpo_lines() -> Iterator[str]:
    """TRL's GRPO with one reward against BLEU, from the start of the first seed."""
    if not GRPO.exists():
        return
    found = json.loads(GRPO.read_text("utf-8"))
    settings, runs = found["settings"], {name: found[name] for name in ("f_disc", "bleu")}
    yield from ("## TRL's GRPO", "")
    yield (
        "`python examples/grpo.py MODEL OUT.json` trains the start of seed 1 with `em.for_trl` as "
        f"the reward of TRL's GRPO: {settings['max_steps']} steps of "
        f"{settings['per_device_train_batch_size']} texts, {settings['num_generations']} for each "
        f"prompt, learning rate {settings['learning_rate']:g}, one seed. Rewards of sampled texts "
        "vary more between the prompts of two steps than they can rise in so few, so the curves "
        "show that the pieces work together, and not which reward is better."
    )
    yield ""
    for name, own in runs.items():
        if len(own["steps"]) < settings["max_steps"]:
            yield f"The run on `{name}` was stopped after {len(own['steps'])} steps."
            yield ""
    if "start" in found:
        names = ("bleu", "chrf", "f_disc", "repetition")
        rows = [["rewarded", *names, "words", "CPU seconds"]]
        for label, each in (("nothing (start)", found["start"]), *runs.items()):
            cells = [f"{100 * each[name]:.2f}" for name in names]
            rows.append([label, *cells, f"{each['words']:.1f}", str(each.get("seconds", ""))])
        count = found["validation graphs"]
        yield f"Greedy texts for {count} validation graphs, times 100 except words:"
        yield from ("", *table_lines(rows), "")
    figures = {}
    for name, label in (("f_disc", "F_DISC"), ("bleu", "BLEU"), ("repetition", "repeated bigrams")):
        figures[f"grpo-{name}"] = line_plot_svg(
            f"GRPO: {label} of sampled texts, by what is rewarded",
            ("step", label),
            {
                key: [(i + 1.0, step[name]) for i, step in enumerate(own["steps"])]
                for key, own in runs.items()
            },
        )
    yield from figure_lines(figures, list(figures))


def figure_lines(figures: Mapping[str, str], names: Sequence[str]) -> Iterator[str]:
    """The figures, written beside the page."""
    folder = PAGES / "graphs"
    folder.mkdir(exist_ok=True)
    for name in names:
        if name in figures:
            (folder / f"{name}.svg").write_text(figures[name], "utf-8")
            caption = FIGURES.get(name, f"GRPO: {name.removeprefix('grpo-')} over steps")
            yield from (f"![{caption}](graphs/{name}.svg)", "")


def small_t5_lines() -> Iterator[str]:
    """The notes and tables of the earlier comparison."""
    kept = json.loads((STORED / "small_t5.json").read_text("utf-8"))
    for name, title in (("webnlg", "WebNLG v2, up to three triples"), ("amr", "The Little Prince")):
        yield from (f"## {title}", "", *(f"- {note}" for note in kept[name]["notes"]))
        yield f"- {kept[name]['power']}"
        yield from ("", *table_lines(kept[name]["scores"]), "")


if __name__ == "__main__":
    main(sys.argv[1:])
