"""Converters from upstream file formats to ours.

A converter reads a folder of upstream files, stored as REPOSITORY/PATH, and yields our files as
names and lines or records; `write_converted` writes them. `CONVERTERS` has them by the name in the
catalogue. They are grouped by source format: tables, WMT files, pickles, and trees and graphs.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from evenmatch.data.catalogue.pickles import read_pickle
from evenmatch.errors import DataError

# A converted file: its name, and its lines with line endings, or records for a JSONL file.
ConvertedFile: TypeAlias = tuple[str, Iterable[str | Mapping[str, Any]]]

_AIPHES = "AIPHES/ACL20-Reference-Free-MT-Evaluation"

_BARTSCORE = "neulab/BARTScore"

_LANGUAGE_PAIRS = {
    15: "cs-en de-en fi-en ru-en",
    16: "cs-en de-en fi-en ro-en ru-en tr-en",
    18: "cs-en de-en et-en fi-en ru-en tr-en zh-en en-de",
    19: "de-en fi-en gu-en kk-en lt-en ru-en zh-en en-de",
}

_FAIRNESS_TEXTS = ("cand_a", "ref_a", "cand_b", "ref_b")

_DATA_TO_TEXT_CRITERIA = ("informativeness", "naturalness", "quality")

_GZIPPED_SUFFIX = ".conllu"


def write_converted(converted: Iterator[ConvertedFile], folder: Path) -> dict[str, str]:
    """Write files, gzipped if named .gz, and return the sha256 of each file's content."""
    folder.mkdir(parents=True)
    checksums = {}
    try:
        for name, lines in converted:
            checksums[name] = _write_lines(lines, folder / name)
    except (ValueError, LookupError, TypeError, AttributeError, csv.Error) as error:
        raise DataError(
            f"the upstream files have an unexpected format ({type(error).__name__}: {error}); "
            "nothing was written"
        ) from None
    return checksums


def convert_crows(originals: Path) -> Iterator[ConvertedFile]:
    """CrowS-Pairs, from its CSV."""
    rows = _read_csv_records(originals / "nyu-mll/crows-pairs/data/crows_pairs_anonymized.csv")
    names = ("sent_more", "sent_less", "direction", "bias_type")
    columns = ("sent_more", "sent_less", "stereo_antistereo", "bias_type")
    records = (
        {"id": number} | {name: row[column] for name, column in zip(names, columns, strict=True)}
        for number, row in enumerate(rows)
    )
    yield "crows_pairs.jsonl.gz", records


def convert_menli(originals: Path) -> Iterator[ConvertedFile]:
    """MENLI's adversarial candidates, with unchanged columns."""
    folder = originals / "cyr19/MENLI/experiments/datasets/adv_datasets/wmt20_google/de"
    yield "wmt20_de.jsonl.gz", _read_csv_records(folder / "data_fixed_strict.csv")


def convert_stsb(originals: Path) -> Iterator[ConvertedFile]:
    """STS-B in English, from CSV without a header."""
    for part in ("train", "dev", "test"):
        rows = _read_csv(originals / f"PhilipMay/stsb-multi-mt/data/stsb-en-{part}.csv")
        records = ({"s1": one, "s2": other, "score": float(s)} for one, other, s in rows)
        yield f"{part}.jsonl.gz", records


def convert_sick(originals: Path) -> Iterator[ConvertedFile]:
    """SICK, from its tables with a header."""
    folder = originals / "brmson/dataset-sts/data/sts/sick2014"
    for part, name in (("train", "train"), ("trial", "trial"), ("test", "test_annotated")):
        _, *rows = _read_tsv(folder / f"SICK_{name}.txt")
        records = (
            {"id": id_, "s1": one, "s2": other, "relatedness": float(r), "entailment": label}
            for id_, one, other, r, label in rows
        )
        yield f"{part}.jsonl.gz", records


def convert_snli(originals: Path) -> Iterator[ConvertedFile]:
    """SNLI, without the pairs that have no gold label."""
    for part in ("dev", "test"):
        path = originals / f"Deltaus/sBiMPM/snli_1.0/snli_1.0_{part}.jsonl"
        pairs = (json.loads(line) for line in iter_lines(path))
        records = (
            {"s1": pair["sentence1"], "s2": pair["sentence2"], "label": pair["gold_label"]}
            for pair in pairs
            if pair["gold_label"] != "-"
        )
        yield f"{part}.jsonl.gz", records


def convert_fairness(originals: Path) -> Iterator[ConvertedFile]:
    """The pairs of Metric-Fairness; two consecutive rows form a pair."""
    folder = originals / "txsun1997/Metric-Fairness/measuring_bias/data"
    for path in sorted(folder.glob("*.tsv")):
        yield f"{path.stem}.jsonl.gz", _fairness_records(path)


def _fairness_records(path: Path) -> Iterator[dict[str, Any]]:
    header, *rows = _read_tsv(path)
    metrics = [name for name in header[2:] if name]
    if len(rows) % 2:
        raise ValueError(f"{path.name} has {len(rows)} rows, expected an even number")
    for number, (first, second) in enumerate(zip(rows[::2], rows[1::2], strict=True)):
        texts = dict(zip(_FAIRNESS_TEXTS, (*first[:2], *second[:2]), strict=True))
        a, b = (
            dict(zip(metrics, map(float, row[2 : 2 + len(metrics)]), strict=True))
            for row in (first, second)
        )
        yield {"pair": number, **texts, "scores_a": a, "scores_b": b}


def convert_kp20k(originals: Path) -> Iterator[ConvertedFile]:
    """Documents of KP20k: title and abstract in one file, keyphrases in the other."""
    folder = originals / "jiacheng-ye/kg_one2set/data/kp20k_small"
    for part in ("train", "valid", "test"):
        texts = iter_lines(folder / f"{part}_src.txt")
        phrases = iter_lines(folder / f"{part}_trg.txt")
        rows = enumerate(zip(texts, phrases, strict=True))
        yield f"{part}.jsonl.gz", (_keyphrase_document(n, text, row) for n, (text, row) in rows)


def _keyphrase_document(number: int, text: str, phrases: str) -> dict[str, Any]:
    title, _, abstract = text.partition("<eos>")
    document = {"id": number, "title": title.strip(), "abstract": abstract.strip()}
    present, separator, absent = phrases.partition("<peos>")
    if not separator:
        return {**document, "keyphrases": _split_phrases(phrases)}
    return {**document, "present": _split_phrases(present), "absent": _split_phrases(absent)}


def _split_phrases(text: str) -> list[str]:
    return [phrase for phrase in text.split(";") if phrase]


def convert_daseg(originals: Path) -> Iterator[ConvertedFile]:
    """WMT15 and WMT16: sources, references, outputs and scores in line-aligned files."""
    for year in (15, 16):
        folder = originals / f"cyr19/MENLI/experiments/datasets/DAseg-wmt-newstest20{year}"
        for pair in _LANGUAGE_PAIRS[year].split():
            kinds = ("source", "reference", "mt-system", "human")
            # some file names of 2016 begin with dots instead of the name of the test set
            files = [path for kind in kinds for path in folder.glob(f"*.{kind}.{pair}")]
            rows = zip(*(iter_lines(file) for file in files), strict=True)
            records = ({"src": s, "ref": r, "out": o, "z": float(z)} for s, r, o, z in rows)
            yield f"wmt{year}.{pair}.jsonl.gz", records


def convert_wmt(originals: Path, year: int, ranked: Sequence[str] = ()) -> Iterator[ConvertedFile]:
    """WMT18 or WMT19: all outputs, the systems' scores, and ranks for the `ranked` pairs."""
    for pair in _LANGUAGE_PAIRS[year].split():
        yield f"{pair}.jsonl.gz", _read_segments(originals, year, pair)
    yield "system_scores.tsv", _system_scores(originals, year)
    for pair in ranked:
        ranks = read_pickle(originals / _BARTSCORE / f"WMT/{pair}/data.pkl")
        segments = list(_read_segments(originals, year, pair))
        yield f"{pair}.rr.tsv.gz", _format_ranks(ranks.values(), segments)


def _read_segments(originals: Path, year: int, pair: str) -> Iterator[dict[str, Any]]:
    folder, test = originals / _AIPHES / f"WMT{year}", f"newstest20{year}"
    source, target = pair.split("-")
    start = f"{test}-{source}{target}"
    outputs = {
        path.name.removeprefix(f"{test}.").removesuffix(f".{pair}"): iter_lines(path)
        for path in sorted((folder / "system-outputs" / pair).iterdir())
    }
    rows = zip(
        iter_lines(folder / "source" / f"{start}-src.{source}"),
        iter_lines(folder / "references" / f"{start}-ref.{target}"),
        *outputs.values(),
        strict=True,
    )
    for number, (src, ref, *texts) in enumerate(rows, 1):
        out = dict(zip(outputs, texts, strict=True))
        yield {"sid": number, "src": src, "ref": ref, "out": out}


def _system_scores(originals: Path, year: int) -> Iterator[str]:
    yield "lp\tsystem\tz\n"
    rows = [line.split() for line in iter_lines(originals / _AIPHES / f"WMT{year}/DA-syslevel.csv")]
    for wanted in _LANGUAGE_PAIRS[year].split():
        yield from (f"{pair}\t{system}\t{z}\n" for pair, z, system in rows if pair == wanted)


def _format_ranks(ranks: Iterable[Any], segments: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "sid\tbetter\tworse\n"
    by_source: dict[str, list[dict[str, Any]]] = {}
    for segment in segments:
        by_source.setdefault(segment["src"].strip(), []).append(segment)
    for rank in ranks:
        names = [rank[side]["sys_name"] for side in ("better", "worse")]
        texts = [rank[side]["sys"].strip() for side in ("better", "worse")]
        # a source may occur twice in a test set; the outputs identify the segment
        sids = [
            segment["sid"]
            for segment in by_source[rank["src"].strip()]
            if [segment["out"][name].strip() for name in names] == texts
        ]
        yield f"{sids[0]}\t{names[0]}\t{names[1]}\n"


def convert_summaries(
    originals: Path, name: str, references: str, criteria: str
) -> Iterator[ConvertedFile]:
    """REALSumm or SummEval; the field `references` holds one reference or a list."""
    documents = read_pickle(originals / _BARTSCORE / f"SUM/{name}/data.pkl")
    yield "data.jsonl.gz", _summary_records(documents, references, criteria.split())


def _summary_records(
    documents: Mapping[Any, Any], references: str, criteria: Sequence[str]
) -> Iterator[dict[str, Any]]:
    for number, document in documents.items():
        given, outputs = document[references], {}
        for system, output in document["sys_summs"].items():
            human = {c: float(output["scores"][c]) for c in criteria}
            outputs[system] = {"text": output["sys_summ"], "human": human}
        refs = given if isinstance(given, list) else [given]
        yield {"id": str(number), "src": document["src"], "refs": refs, "out": outputs}


def convert_data_to_text(originals: Path) -> Iterator[ConvertedFile]:
    """BAGEL, SFHOT and SFRES, without duplicate references."""
    for name in ("BAGEL", "SFHOT", "SFRES"):
        outputs = read_pickle(originals / _BARTSCORE / f"D2T/{name}/data.pkl")
        records = (_output_record(number, output) for number, output in outputs.items())
        yield f"{name.lower()}.jsonl.gz", records


def _output_record(number: Any, output: dict[str, Any]) -> dict[str, Any]:
    references = output["ref_summs"]
    return {
        "id": str(number),
        "src": output["src"],
        "out": output["sys_summ"],
        "human": {c: float(output["scores"][c]) for c in _DATA_TO_TEXT_CRITERIA},
        "refs": list(dict.fromkeys(references)),
        "n_refs_with_repeats": len(references),
    }


def copy_unchanged(originals: Path) -> Iterator[ConvertedFile]:
    """Upstream files unchanged; large ones are gzipped."""
    for path in sorted(path for path in originals.rglob("*") if path.is_file()):
        with path.open(encoding="utf-8", newline="") as file:
            yield path.name + (".gz" if path.suffix == _GZIPPED_SUFFIX else ""), file


def convert_amr(originals: Path) -> Iterator[ConvertedFile]:
    """The Little Prince: AMR graphs in PENMAN notation, each after comment lines."""
    path = originals / "wuhao050698/AMR/amr-bank-struct-v3.0.txt"
    yield "lpp_v3.0.jsonl.gz", _read_amr(path)


def _read_amr(path: Path) -> Iterator[dict[str, str]]:
    for block in "\n".join(iter_lines(path)).split("\n\n"):
        lines = block.strip("\n").split("\n")
        comments = dict(
            line.removeprefix("# ::").partition(" ")[::2]
            for line in lines
            if line.startswith("# ::")
        )
        graph = "\n".join(line for line in lines if not line.startswith("#"))
        if "id" in comments:
            yield {"id": comments["id"].split()[0], "snt": comments["snt"], "amr": graph}


def convert_gum(originals: Path) -> Iterator[ConvertedFile]:
    """GUM: bracketed trees over several lines, each written on one line."""
    folder = originals / "amir-zeldes/gum/const"
    records = (record for path in sorted(folder.glob("*.ptb")) for record in _read_trees(path))
    yield "gum_const.jsonl.gz", records


def _read_trees(path: Path) -> Iterator[dict[str, Any]]:
    depth, number, parts = 0, 0, list[str]()
    for line in iter_lines(path):
        parts += line.split()
        depth += line.count("(") - line.count(")")
        if parts and not depth:
            yield {"doc": path.stem, "n": number, "tree": " ".join(parts)}
            number, parts = number + 1, []


def iter_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file without line endings; a byte order mark is part of the first.

    Some systems' outputs begin with one, and humans rated the outputs as they were.
    """
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.removesuffix("\n").removesuffix("\r")


def _write_lines(lines: Iterable[str | Mapping[str, Any]], path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("wb") as raw:
        # No time and no name in the gzip header, so that equal content gives equal files.
        packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else raw
        for line in chain(lines, [""]):
            raw_line = (line if isinstance(line, str) else _json_line(line)).encode()
            packed.write(raw_line)
            digest.update(raw_line)
        if packed is not raw:
            packed.close()
    return digest.hexdigest()


def _json_line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"


def _read_csv(path: Path) -> Iterator[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.reader(file)


def _read_csv_records(path: Path) -> Iterator[dict[str, str]]:
    header, *rows = _read_csv(path)
    return (dict(zip(header, row, strict=True)) for row in rows)


def _read_tsv(path: Path) -> Iterator[list[str]]:
    return (line.split("\t") for line in iter_lines(path))


CONVERTERS: Mapping[str, Callable[[Path], Iterator[ConvertedFile]]] = {
    "amr": convert_amr,
    "crows": convert_crows,
    "daseg": convert_daseg,
    "data_to_text": convert_data_to_text,
    "fairness": convert_fairness,
    "gum": convert_gum,
    "kp20k": convert_kp20k,
    "menli": convert_menli,
    "realsumm": partial(
        convert_summaries, name="REALSumm", references="ref_summ", criteria="litepyramid_recall"
    ),
    "sick": convert_sick,
    "snli": convert_snli,
    "stsb": convert_stsb,
    "summeval": partial(
        convert_summaries,
        name="SummEval",
        references="ref_summs",
        criteria="coherence consistency fluency relevance",
    ),
    "unchanged": copy_unchanged,
    "wmt18": partial(convert_wmt, year=18),
    "wmt19": partial(convert_wmt, year=19, ranked=("gu-en", "kk-en", "lt-en")),
}
