"""Debiasing of a metric: train an adapter, and audit the metric before and after."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

from evenmatch.data.cards import MetricCard, write_card
from evenmatch.data.fairness_sets import (
    PUBLIC_SET,
    FairnessPair,
    FairnessSet,
    family_pairs,
    read_fair_pairs,
)
from evenmatch.data.pairs import read_sentence_pairs
from evenmatch.data.tables import TextTable
from evenmatch.errors import InputError
from evenmatch.fairness.adapter_training import DebiasSettings, train_adapter
from evenmatch.fairness.audit import audit
from evenmatch.fairness.counterfactuals import Counterfactual, GenderCase, wrong_gender_penalties
from evenmatch.fairness.differentiable import adapted_metric, make_differentiable
from evenmatch.fairness.training_data import (
    Contrast,
    DebiasData,
    build_debias_data,
    full_attribute_name,
    pronoun_contrasts,
    training_families,
)
from evenmatch.models.adapters import ADAPTER_WEIGHTS_FILE, save_adapter
from evenmatch.protocols import Metric
from evenmatch.registry import spec
from evenmatch.registry.parts import check_arguments
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.metric import FOLDER_PLACEHOLDER, as_metric, write_metric
from evenmatch.training.checkpoints import CheckpointFile, content_digest, is_unfinished
from evenmatch.types import Pair, Run

GENDER = "gender"
SELECTION = "selection"  # the set to choose settings by
SentenceSource = str | Sequence[Pair]


@check_arguments
def debias(
    metric: str | Metric,
    out: str | PathLike[str],
    sentences: Sequence[SentenceSource] = (),
    *,
    attributes: Sequence[str] = (GENDER,),
    templates: bool = True,
    settings: DebiasSettings = DebiasSettings(),
    judge_on: Sequence[str | FairnessSet] = ("",),
    **run: Any,
) -> MetricCard:
    """Train an adapter against social bias, save it in `out`, and audit before and after.

    `attributes` are those to debias, such as gender, race, religion, age, appearance and status.
    `sentences` are sets of sentence pairs (see `read_sentence_pairs`). Counterfactuals are made
    from them, and their scores are kept close to those of the original metric. `templates` adds
    built-in sentences. `judge_on` are sets to audit on, '' for the pairs that come with evenmatch;
    their texts are excluded from training. For gender, the card also has the selection set and the
    penalty for a wrong gender where only a noun or a name shows it. The same call resumes
    interrupted training from the checkpoint in `out`. `run` takes the run settings of `score`.
    """
    folder, how = _check_folder(out), make_run(**run)
    plain = as_metric(metric)
    wanted = list(dict.fromkeys(map(full_attribute_name, attributes)))
    if not wanted:
        raise InputError("the list of attributes is empty; give at least one, such as gender")
    sets = [
        each if isinstance(each, FairnessSet) else _read_attribute_pairs(each, wanted)
        for each in judge_on
    ]
    # Before the data are made, so that a metric that cannot be debiased is refused at once.
    through = make_differentiable(plain, how, settings.last_block)
    pairs = [p for s in sentences for p in (read_sentence_pairs(s) if isinstance(s, str) else s)]
    data = exclude_audited(build_debias_data(pairs, wanted, templates=templates), sets)
    recipe = {
        "trainer": "debias",
        "metric": plain.signature,
        "settings": asdict(settings),
        "data": content_digest(data),
    }
    checkpoint = CheckpointFile(folder, recipe)
    start = time.monotonic()
    adapter = train_adapter(through, data, settings, checkpoint, how.progress)
    seconds = time.monotonic() - start
    facts = {
        "attributes": ", ".join(wanted),
        "trained on": f"{len(set(data.counterfactuals))} counterfactuals, "
        f"{len(data.anchors)} sentence pairs",
        "model": through.label,
        "settings": ", ".join(f"{k} {v:g}" for k, v in asdict(settings).items()),
    }
    # One entry: safetensors writes several in random order. The time is in no file either, so that
    # equal weights make equal files.
    save_adapter(adapter, folder, {"evenmatch": json.dumps(facts)})
    adapted = adapted_metric(plain, str(folder))
    write_metric(folder, spec(adapted).replace(repr(str(folder)), FOLDER_PLACEHOLDER))
    if GENDER in wanted:
        sets.append(selection_set())
    table, rows = compare_bias(plain, adapted, sets, how)
    document = {"folder": str(folder), "signature": adapted.signature, **facts}
    card = MetricCard(
        folder,
        "A debiasing adapter",
        adapted.signature,
        facts,
        {"Before and after": table},
        {**document, "time": f"{seconds:.0f} s", "rows": rows},
    )
    write_card(card)
    checkpoint.remove()
    return card


def exclude_audited(data: DebiasData, sets: Sequence[FairnessSet]) -> DebiasData:
    """Remove every example with a text that occurs in the audit sets."""
    audited = {
        text
        for each in sets
        for pairs in each.pairs.values()
        for pair in pairs
        for side in pair.both
        for text in (side.candidate, *side.references)
    }

    def unseen(*texts: str) -> bool:
        return audited.isdisjoint(texts)

    def unseen_twins(each: Counterfactual) -> bool:
        return unseen(each.original, each.swapped, each.neutral)

    return DebiasData(
        tuple(filter(unseen_twins, data.counterfactuals)),
        tuple(pair for pair in data.anchors if unseen(*pair)),
        tuple(
            both
            for both in data.contrasts
            if all(unseen(c.right, c.wrong, c.reference) for c in both)
        ),
        tuple(both for both in data.stereotypes if all(map(unseen_twins, both))),
    )


def selection_set() -> FairnessSet:
    """The gender pairs to choose settings by; they are neither trained on nor in an audit set."""
    families = training_families(SELECTION)
    return FairnessSet(SELECTION, {GENDER: [p for f in families for p in family_pairs(f)]})


def compare_bias(
    plain: Metric, adapted: Metric, sets: Sequence[FairnessSet], run: Run
) -> tuple[TextTable, list[dict[str, Any]]]:
    """Measure bias and the penalty for a wrong group on each set, before and after."""
    how: dict[str, Any] = {
        "device": run.device,
        "threads": run.threads,
        "batch_tokens": run.batch_tokens,
    }
    rows: list[dict[str, Any]] = []
    for each in sets:
        for attribute, pairs in each.pairs.items():
            one = FairnessSet(each.name, {attribute: pairs})
            before, after = audit([plain, adapted], one, worst=0, **how).biases
            measures: dict[str, Sequence[float]] = {
                "bias": (before.bias, after.bias),
                "raw difference": (before.raw, after.raw),
                "stereotype": (before.stereotype, after.stereotype),
                "share that prefers the stereotype": (
                    before.prefers_stereotype,
                    after.prefers_stereotype,
                ),
                "cost of a wrong group": wrong_gender_penalties(
                    [plain, adapted], fairness_pair_cases(pairs), run
                ),
            }
            if before.offset is not None and after.offset is not None:
                measures["group offset"] = (before.offset, after.offset)
            if each.name == SELECTION:
                measures |= {
                    f"cost of a wrong gender, shown by a {kind}": wrong_gender_penalties(
                        [plain, adapted], contrast_cases(pronoun_contrasts(kind)), run
                    )
                    for kind in ("noun", "name")
                }
            rows += [
                {
                    "data": each.name,
                    "attribute": attribute,
                    "what": what,
                    "before": values[0],
                    "after": values[1],
                }
                for what, values in measures.items()
            ]
    cells = []
    for data, attribute, what, before, after in (row.values() for row in rows):
        # of the size, so that a signed measure that comes closer to 0 falls
        change = f"{100 * (abs(after) / abs(before) - 1):+.1f} %" if before else "-"
        cells.append([data, attribute, what, f"{before:.4f}", f"{after:.4f}", change])
    return [["data", "attribute", "what", "before", "after", "change"], *cells], rows


def fairness_pair_cases(pairs: Sequence[FairnessPair]) -> list[GenderCase]:
    """Use each candidate as a reference: itself is right, the other of its pair is wrong."""
    return [
        (Pair(right.candidate, (right.candidate,)), Pair(wrong.candidate, (right.candidate,)))
        for pair in pairs
        for right, wrong in (pair.both, pair.both[::-1])
    ]


def contrast_cases(contrasts: Sequence[Contrast]) -> list[GenderCase]:
    """Contrasts as pairs to score."""
    return [(Pair(c.right, (c.reference,)), Pair(c.wrong, (c.reference,))) for c in contrasts]


def _read_attribute_pairs(data: str, attributes: Sequence[str]) -> FairnessSet:
    return read_fair_pairs(data, attributes=attributes if data in ("", PUBLIC_SET) else [])


def _check_folder(out: str | PathLike[str]) -> Path:
    """Return the output folder; it may hold an unfinished run, but not a finished adapter."""
    folder = Path(out).expanduser()
    finished = (folder / ADAPTER_WEIGHTS_FILE).is_file() and not is_unfinished(folder)
    if folder.is_file() or finished:
        raise InputError(f"{folder} already exists; name a new folder for the adapter")
    return folder
