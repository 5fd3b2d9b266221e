"""evenmatch study: reproduce experiments of papers.

Each subcommand writes its results, figures and an HTML page to a folder. An interrupted study
continues when the command is run again.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import product
from typing import Any

import typer

from evenmatch.cli import options as opt
from evenmatch.cli.console import print_message, print_text_or_json
from evenmatch.data.catalogue.catalogue import data_set
from evenmatch.data.ratings.reading import read_ratings
from evenmatch.data.tables import table_to_text
from evenmatch.reports.study_page import StudyReport
from evenmatch.studies.experiment import Experiment, make_study_folder
from evenmatch.studies.graph_to_text import (
    FINE_TUNING,
    FURTHER_ARMS,
    GRAPH_ARMS,
    GRAPH_CORPORA,
    PRETRAINING,
    GraphStudy,
    add_beam_texts,
    make_graph_design,
)
from evenmatch.studies.graph_to_text_report import graph_report
from evenmatch.studies.keyphrase_generation import (
    ABLATIONS,
    KEYPHRASE_ARMS,
    RL_STAGE,
    KeyphraseDesign,
    KeyphraseStudy,
    baseline_predictions,
    load_keyphrase_corpus,
)
from evenmatch.studies.keyphrase_generation_report import keyphrase_report
from evenmatch.studies.lisa.findings import grid_document, lisa_report, summarize_grid
from evenmatch.studies.lisa.gradient import (
    METHODS,
    GradientSettings,
    gradient_report,
    train_through_metric,
)
from evenmatch.studies.lisa.grid import ALGORITHMS, LENGTHS, Grid, run_lisa_grid
from evenmatch.studies.lisa.trade_off import TradeOffSettings, measure_trade_off, trade_off_report
from evenmatch.studies.repetition import (
    METRICS,
    measure_attacks,
    repetition_report,
    repetition_rows,
)
from evenmatch.studies.sentences import SOURCE_SETS, WMT17, SentencePairs, load_sentence_pairs
from evenmatch.studies.word_alignment import (
    DEV_FILE,
    SOLVERS,
    TEST_FILES,
    measure_word_alignment,
    read_word_alignments,
)
from evenmatch.studies.word_alignment_report import word_alignment_report, word_alignment_rows
from evenmatch.training.loop import training_threads
from evenmatch.vectors.transformer import Transformer

study = typer.Typer(
    help="Reproduce experiments of papers; interrupted runs continue.", no_args_is_help=True
)

SEEDS: list[int] | None = opt.repeatable(None, "--seed N", "Random seed", shown="1, 2, 3", least=0)


def folder_option(default: str) -> str:
    """Return the option --out of a study."""
    return opt.value(default, "--out -o FOLDER", "Folder for results, figures and the HTML page.")


def finish_study(report: StudyReport, out: str, document: dict[str, Any] | None) -> None:
    """Write the folder of a study and print its tables and findings, or `document` as JSON."""
    print_message(f"wrote {report.write(make_study_folder(out))}")
    tables = [table_to_text(table) for table in report.tables.values()]
    text = "\n\n".join([*tables, "\n".join(report.findings)])
    print_text_or_json(text, document or {}, json=document is not None)


@study.command("keyphrases")
@opt.expand_option_groups()
def study_keyphrases(
    out: str = folder_option("keyphrase-study"),
    arm: list[str] | None = opt.repeatable(
        None, "ARM", "Training objective to include", shown=", ".join(KEYPHRASE_ARMS)
    ),
    ablations: bool = opt.flag(
        False,
        "--ablations",
        "Also train 2RL(FG) with each component of FG removed (8 more training stages).",
    ),
    stage_steps: int = opt.count(80, "Number of steps of each stage of reinforcement learning."),
    own_start: bool = opt.flag(
        False,
        "--own-start",
        "Train a start by maximum likelihood for each seed, instead of one for all.",
    ),
    seed: list[int] | None = SEEDS,
    *,
    training: opt.TrainingOptions,
) -> None:
    """Keyphrase generation with rewards.

    Reproduces Luo et al. (2021). Each arm is trained by maximum likelihood (MLE), then by
    reinforcement learning with F1, FG or FB as reward in one stage (RL) or two (2RL). Run the same
    command again to continue; tables and figures show the runs that are finished.
    """
    arms = (*(arm or KEYPHRASE_ARMS), *(ABLATIONS if ablations else ()))
    stage = replace(RL_STAGE.training, most_steps=stage_steps)
    design = KeyphraseDesign(
        arms,
        tuple(seed or (1, 2, 3)),
        stage=replace(RL_STAGE, training=stage),
        shared_start=not own_start,
    )
    with training_threads(training.threads):
        work = KeyphraseStudy(load_keyphrase_corpus(), design)
        should_stop = opt.time_limit(training.minutes)
        runs = Experiment(work, make_study_folder(out), should_stop, print_message)
        runs()
        report = keyphrase_report(runs, baselines=baseline_predictions(work, runs.folder))
    finish_study(report, out, None)


@study.command("graphs")
@opt.expand_option_groups()
def study_graphs(
    out: str = folder_option("graph-study"),
    data: str = opt.value(
        "webnlg", "DATA", "Corpus: webnlg (RDF triples) or amr (AMR graphs of The Little Prince)."
    ),
    model: str = opt.value(
        "smollm2", "MODEL", "Causal language model to start from, by name or folder."
    ),
    arm: list[str] | None = opt.repeatable(
        None,
        "ARM",
        f"Loss to include; also: {', '.join(FURTHER_ARMS)}",
        shown=", ".join(GRAPH_ARMS),
    ),
    start_steps: int = opt.count(PRETRAINING.steps, "Number of steps of cross-entropy first."),
    steps: int = opt.count(FINE_TUNING.steps, "Number of steps of each arm."),
    test_graphs: int = opt.count(
        0, "Number of test graphs, the first in a random order; 0 for all.", least=0
    ),
    valid_graphs: int = opt.count(
        0, "Number of validation graphs of the arms, sampled once; 0 for all.", least=0
    ),
    beams: int = opt.count(
        0, "Also decode the last step of each run with N beams; 0 for greedy texts only.", least=0
    ),
    metric: str = opt.value(
        "",
        "--metric -m METRIC",
        "Additional metric for the evaluation, for example a folder written by fit.",
    ),
    seed: list[int] | None = SEEDS,
    *,
    training: opt.TrainingOptions,
) -> None:
    """Graph-to-text generation with rewards.

    Reproduces Jin & Gildea (2022) from a pretrained causal language model. The loss is
    cross-entropy alone (XENT) or mixed with a reward: BLEU (BL-R), F_BERT, F_CONT or F_DISC. Arms
    named "only …" train with the reward alone. Run the same command again to continue; tables and
    figures show the runs that are finished.
    """
    if data not in GRAPH_CORPORA:
        raise typer.BadParameter(f"unknown corpus {data!r}; known: {', '.join(GRAPH_CORPORA)}")
    design = make_graph_design(
        data,
        tuple(arm or GRAPH_ARMS),
        tuple(seed or (1, 2, 3)),
        model=model,
        start_steps=start_steps,
        steps=steps,
        valid_graphs=valid_graphs,
    )
    with training_threads(training.threads):
        work = GraphStudy(GRAPH_CORPORA[data]().with_test_size(test_graphs), design, beams)
        should_stop = opt.time_limit(training.minutes)
        runs = Experiment(work, make_study_folder(out), should_stop, print_message)
        runs()
        add_beam_texts(runs)
        report = graph_report(runs, learnt=metric)
    finish_study(report, out, None)


STUDY_PAIRS = opt.argument(
    "",
    "DATA",
    "Sentence pairs: a .jsonl, .tsv or .parquet file with candidate, reference and optionally "
    "source. Default: the WMT17 translations if available, else a small sample.",
)

ENCODER = opt.value("minilm", "MODEL", "Encoder, by name or folder.")


@study.command("lisa")
@opt.expand_option_groups(cache=True)
def study_lisa(
    data: str = STUDY_PAIRS,
    out: str = folder_option("lisa-study"),
    model: list[str] | None = opt.repeatable(
        None, "MODEL", "Encoder, by name or folder", shown="minilm"
    ),
    sources: bool = opt.flag(
        False,
        "--sources",
        "Pair candidates with sources instead of references. Without DATA, these are WMT's texts "
        "in eleven languages, --pairs of each.",
    ),
    human: bool = opt.flag(False, "--human", "With --sources, take references for candidates."),
    language: list[str] | None = opt.repeatable(
        None, "CODE", "Source language of --sources without DATA", shown=", ".join(SOURCE_SETS)
    ),
    pairs: int = opt.count(300, "Maximum number of pairs to sample.", least=2),
    length: list[int] | None = opt.repeatable(
        None,
        "N",
        "Pad texts to N sub-words; 0 means no padding",
        shown=", ".join(map(str, LENGTHS)),
        least=0,
    ),
    algorithm: list[str] | None = opt.repeatable(
        None, "SOLVER", "Alignment method", shown=", ".join(ALGORITHMS)
    ),
    seed: int = opt.SEED,
    json: bool = opt.JSON,
    *,
    running: opt.RunOptions,
) -> None:
    """LiSAScore: effect of alignment and padding.

    Measures how the alignment method and padding change scores, and how well each method separates
    true pairs from in-batch and hard negatives (Mander & Phillips 2024). DATA may also be
    menli-adversarial: paraphrases as pairs, and texts with an error as negatives.
    """
    if sources and not model:
        raise typer.BadParameter(
            "sources are in another language; give a multilingual --model, or name the English one"
        )
    if not sources and (human or language):
        raise typer.BadParameter("--human and --language need --sources")
    grid = Grid(
        models=tuple(model or ("minilm",)),
        lengths=tuple(length or LENGTHS),
        algorithms=tuple(algorithm or ALGORITHMS),
    )
    sentences = _load_pairs(
        data, pairs, seed, sources=sources, human=human, languages=language or (), hard=True
    )
    folder = make_study_folder(out)
    with running.settings() as settings:
        runs = run_lisa_grid(sentences, grid, folder, seed=seed, **settings)
    rows = summarize_grid(runs)
    finish_study(lisa_report(runs, rows), out, grid_document(runs, rows) if json else None)


@study.command("lisa-quality")
@opt.expand_option_groups(cache=True)
def study_lisa_quality(
    data: str = STUDY_PAIRS,
    out: str = folder_option("lisa-quality"),
    model: str = ENCODER,
    pairs: int = opt.count(1000, "Maximum number of pairs to align.", least=2),
    rounds: int = opt.count(5, "Number of timing rounds; the fastest counts."),
    seed: int = opt.SEED,
    json: bool = opt.JSON,
    *,
    running: opt.RunOptions,
) -> None:
    """LiSAScore: quality and speed of approximations.

    Compares approximate with exact one-to-one assignment (Mander & Phillips 2024).
    """
    sentences = _load_pairs(data, pairs, seed)
    ratings = read_ratings(WMT17) if data_set(WMT17).present else []
    if not ratings:
        print_message(f"agreement with human ratings is skipped: {data_set(WMT17).missing_message}")
    with running.settings() as settings:
        trade_off = measure_trade_off(
            sentences,
            ratings,
            Transformer(model),
            make_study_folder(out),
            TradeOffSettings(rounds=rounds, device=running.device),
            **settings,
        )
    finish_study(trade_off_report(trade_off), out, asdict(trade_off) if json else None)


@study.command("lisa-gradient")
def study_lisa_gradient(
    data: str = STUDY_PAIRS,
    out: str = folder_option("lisa-gradient"),
    model: str = ENCODER,
    pairs: int = opt.count(512, "Maximum number of pairs to sample.", least=2),
    steps: int = opt.count(200, "Number of training steps."),
    batch: int = opt.count(16, "Number of pairs per batch.", least=2),
    method: list[str] | None = opt.repeatable(
        None, "METHOD", "Gradient estimator", shown=", ".join(METHODS)
    ),
    encoder: bool = opt.flag(
        False, "--encoder", "Train all weights of the encoder instead of a projection."
    ),
    rate: float = opt.value(3e-4, "RATE", "Learning rate; about 3e-5 suits --encoder."),
    length: list[int] | None = opt.repeatable(
        None,
        "N",
        "With --encoder, pad texts to N sub-words; 0 means no padding",
        shown="0",
        least=0,
    ),
    words: int = opt.count(0, "Leave out texts with more words; 0 means no limit.", least=0),
    sources: bool = opt.flag(False, "--sources", "Pair candidates with sources."),
    language: list[str] | None = opt.repeatable(
        None, "CODE", "Source language of --sources without DATA", shown=", ".join(SOURCE_SETS)
    ),
    seed: list[int] | None = opt.repeatable(None, "N", "Random seed", shown="0", least=0),
    json: bool = opt.JSON,
) -> None:
    """LiSAScore: train through the metric.

    A projection, or the encoder, learns to separate true pairs from in-batch negatives.
    """
    settings = [
        GradientSettings(
            name,
            steps=steps,
            batch=batch,
            rate=rate,
            look_every=max(1, steps // (2 if encoder else 10)),
            seed=each,
            encoder=encoder,
            pad_to=padding,
        )
        for padding, name, each in product(length or [0], method or METHODS, seed or [0])
    ]
    sentences = _load_pairs(
        data, pairs, 0, sources=sources, languages=language or (), max_words=words
    )
    folder = make_study_folder(out)
    found = train_through_metric(sentences, Transformer(model), settings, folder, log=print_message)
    report = gradient_report(found, sentences)
    finish_study(report, out, {"curves": [curve.to_dict() for curve in found]} if json else None)


@study.command("alignment")
@opt.expand_option_groups(cache=True)
def study_alignment(
    dev: str = opt.value(
        DEV_FILE,
        "FILE",
        "JSONL file to choose layers and thresholds on, with source, target (lists of words), "
        "sure and possible (lists of [source index, target index]); or a file of MultiMWA by name.",
    ),
    test: list[str] | None = opt.repeatable(
        None, "FILE", "File to test on, like --dev", shown=", ".join(TEST_FILES)
    ),
    out: str = folder_option("alignment-study"),
    model: str = ENCODER,
    solver: list[str] | None = opt.repeatable(
        None, "SOLVER", "Alignment method", shown=", ".join(SOLVERS)
    ),
    json: bool = opt.JSON,
    *,
    running: opt.RunOptions,
) -> None:
    """Word alignments of the solvers and of people.

    Aligns the words of sentence pairs with each solver and compares the links with those drawn by
    people: precision, recall, F1 and alignment error rate.
    """
    chosen_on = read_word_alignments(dev)
    tests = [read_word_alignments(each) for each in test or TEST_FILES]
    folder = make_study_folder(out)
    with running.settings() as settings:
        found = measure_word_alignment(
            chosen_on, tests, folder, model=model, solvers=tuple(solver or SOLVERS), **settings
        )
        report = word_alignment_report(found, chosen_on, tests, model=model, **settings)
    finish_study(report, out, {"rows": word_alignment_rows(found)} if json else None)


@study.command("repetition")
@opt.expand_option_groups(cache=True)
def study_repetition(
    data: str = STUDY_PAIRS,
    out: str = folder_option("repetition-study"),
    metric: list[str] | None = opt.repeatable(
        None, "--metric -m METRIC", "Metric", shown=", ".join(METRICS)
    ),
    pairs: int = opt.count(300, "Maximum number of pairs to sample.", least=2),
    seed: int = opt.SEED,
    json: bool = opt.JSON,
    *,
    running: opt.RunOptions,
) -> None:
    """Scores after repetition and other damage.

    Repeats, drops, shuffles and adds words, and measures how much of its score a text loses.
    """
    sentences = _load_pairs(data, pairs, seed)
    with running.settings() as settings:
        found = measure_attacks(
            sentences,
            make_study_folder(out),
            metrics=tuple(metric or METRICS),
            seed=seed,
            **settings,
        )
    finish_study(repetition_report(found), out, {"rows": repetition_rows(found)} if json else None)


def _load_pairs(data: str, pairs: int, seed: int, **how: Any) -> SentencePairs:
    found = load_sentence_pairs(data, pairs, seed, **how)
    print_message(f"{len(found)} pairs of {found.name}")
    return found
