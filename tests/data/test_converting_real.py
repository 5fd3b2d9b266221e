"""Real sets written back in the upstream format and converted again."""

from __future__ import annotations

import csv
import io
import json
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from evenmatch.data.catalogue.catalogue import data_set
from tests.support.upstream import Files, convert, lines


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(path)]


def as_csv(rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def crows(folder: Path) -> Files:
    fields = ("sent_more", "sent_less", "direction", "bias_type")
    rows = [
        [n, *(r[f] for f in fields)] for n, r in enumerate(read(folder / "crows_pairs.jsonl.gz"))
    ]
    header = ["", "sent_more", "sent_less", "stereo_antistereo", "bias_type"]
    return {"nyu-mll/crows-pairs/data/crows_pairs_anonymized.csv": as_csv([header, *rows])}


def menli(folder: Path) -> Files:
    records = read(folder / "wmt20_de.jsonl.gz")
    path = "cyr19/MENLI/experiments/datasets/adv_datasets/wmt20_google/de/data_fixed_strict.csv"
    return {path: as_csv([list(records[0]), *(list(r.values()) for r in records)])}


def stsb(folder: Path) -> Files:
    return {
        f"PhilipMay/stsb-multi-mt/data/stsb-en-{part}.csv": as_csv(
            list(r.values()) for r in read(folder / f"{part}.jsonl.gz")
        )
        for part in ("train", "dev", "test")
    }


def sick(folder: Path) -> Files:
    names = {"train": "train", "trial": "trial", "test": "test_annotated"}
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    return {
        f"brmson/dataset-sts/data/sts/sick2014/SICK_{name}.txt": header
        + "".join("\t".join(map(str, r.values())) + "\n" for r in read(folder / f"{part}.jsonl.gz"))
        for part, name in names.items()
    }


def kp20k(folder: Path) -> Files:
    files = {}
    top = "jiacheng-ye/kg_one2set/data/kp20k_small"
    for part in ("train", "valid", "test"):
        records = read(folder / f"{part}.jsonl.gz")
        files[f"{top}/{part}_src.txt"] = "".join(
            f"{r['title']} <eos> {r['abstract']}\n" if r["title"] else "\n" for r in records
        )
        files[f"{top}/{part}_trg.txt"] = "".join(
            ";".join(r.get("keyphrases") or [*r.get("present", ()), *peos(r)]) + "\n"
            for r in records
        )
    return files


def peos(record: Mapping[str, Any]) -> list[str]:
    return ["<peos>", *record["absent"]] if "absent" in record else []


def fairness(folder: Path) -> Files:
    files = {}
    for path in folder.glob("*.jsonl.gz"):
        records = read(path)
        rows = [["sys", "ref", *records[0]["scores_a"], ""]]
        for r in records:
            rows += [[r[f"cand_{x}"], r[f"ref_{x}"], *r[f"scores_{x}"].values(), ""] for x in "ab"]
        name = path.name.removesuffix(".jsonl.gz")
        files[f"txsun1997/Metric-Fairness/measuring_bias/data/{name}.tsv"] = "".join(
            "\t".join(map(str, row)) + "\n" for row in rows
        )
    return files


def daseg(folder: Path) -> Files:
    files = {}
    kinds = {"source": "src", "reference": "ref", "mt-system": "out", "human": "z"}
    for path in folder.glob("*.jsonl.gz"):
        year, pair = path.name.split(".")[0].removeprefix("wmt"), path.name.split(".")[1]
        for kind, key in kinds.items():
            name = f"DAseg-wmt-newstest20{year}/newstest20{year}.{kind}.{pair}"
            files[f"cyr19/MENLI/experiments/datasets/{name}"] = "".join(
                f"{record[key]}\n" for record in read(path)
            )
    return files


def summaries(folder: Path) -> bytes:
    return pickle.dumps(
        {
            record["id"]: {
                "src": record["src"],
                "ref_summ": record["refs"][0],
                "ref_summs": record["refs"],
                "sys_summs": {
                    system: {"sys_summ": output["text"], "scores": output["human"]}
                    for system, output in record["out"].items()
                },
            }
            for record in read(folder / "data.jsonl.gz")
        }
    )


def realsumm(folder: Path) -> Files:
    return {"neulab/BARTScore/SUM/REALSumm/data.pkl": summaries(folder)}


def summeval(folder: Path) -> Files:
    return {"neulab/BARTScore/SUM/SummEval/data.pkl": summaries(folder)}


def gum(folder: Path) -> Files:
    files: dict[str, str] = {}
    for record in read(folder / "gum_const.jsonl.gz"):
        path = f"amir-zeldes/gum/const/{record['doc']}.ptb"
        files[path] = files.get(path, "") + record["tree"].replace(" (", "\n  (") + "\n\n"
    return files


def amr(folder: Path) -> Files:
    blocks = (
        f"# ::id {r['id']} ::annotator x\n# ::snt {r['snt']}\n# ::save-date x\n{r['amr']}\n"
        for r in read(folder / "lpp_v3.0.jsonl.gz")
    )
    return {"wuhao050698/AMR/amr-bank-struct-v3.0.txt": "\n".join(blocks)}


def unchanged(folder: Path) -> Files:
    return {
        f"r/x/{path.name.removesuffix('.gz')}": "".join(f"{line}\n" for line in lines(path))
        for path in folder.iterdir()
        if path.suffix == ".gz"
    }


def data_to_text(folder: Path) -> Files:
    """A reference that was there several times comes again as often as were left out."""
    return {
        f"neulab/BARTScore/D2T/{name.upper()}/data.pkl": pickle.dumps(
            {
                r["id"]: {
                    "src": r["src"],
                    "sys_summ": r["out"],
                    "ref_summs": r["refs"]
                    + r["refs"][:1] * (r["n_refs_with_repeats"] - len(r["refs"])),
                    "scores": {**r["human"], "bleu": 0.5},
                }
                for r in read(folder / f"{name}.jsonl.gz")
            }
        )
        for name in ("bagel", "sfhot", "sfres")
    }


def snli(folder: Path) -> Files:
    names = {"s1": "sentence1", "s2": "sentence2", "label": "gold_label"}
    return {
        f"Deltaus/sBiMPM/snli_1.0/snli_1.0_{part}.jsonl": "\n".join(
            json.dumps({names[key]: value for key, value in r.items()})
            for r in read(folder / f"{part}.jsonl.gz")
        )
        for part in ("dev", "test")
    }


def wmt(folder: Path) -> Files:
    files: dict[str, str | bytes] = {}
    year = folder.name[3:5]
    top, test = f"AIPHES/ACL20-Reference-Free-MT-Evaluation/WMT{year}", f"newstest20{year}"
    for path in folder.glob("*.jsonl.gz"):
        pair, records = path.name.removesuffix(".jsonl.gz"), read(path)
        source, target = pair.split("-")
        columns = {
            f"source/{test}-{source}{target}-src.{source}": [r["src"] for r in records],
            f"references/{test}-{source}{target}-ref.{target}": [r["ref"] for r in records],
        }
        for system in records[0]["out"]:
            name = f"system-outputs/{pair}/{test}.{system}.{pair}"
            columns[name] = [r["out"][system] for r in records]
        for name, texts in columns.items():
            files[f"{top}/{name}"] = "".join(f"{text}\n" for text in texts)
        ranks = folder / f"{pair}.rr.tsv.gz"
        if ranks.exists():
            files[f"neulab/BARTScore/WMT/{pair}/data.pkl"] = ranked(ranks, records)
    scores = [line.split("\t") for line in lines(folder / "system_scores.tsv")]
    files[f"{top}/DA-syslevel.csv"] = "".join(f"{lp} {z} {s}\n" for lp, s, z in scores)
    return files


def ranked(path: Path, records: Sequence[dict[str, Any]]) -> bytes:
    _, *rows = (line.split("\t") for line in lines(path))
    ranks = {}
    for number, (sid, better, worse) in enumerate(rows):
        record = records[int(sid) - 1]
        sides = {
            side: {"sys_name": system, "sys": record["out"][system], "scores": {}}
            for side, system in (("better", better), ("worse", worse))
        }
        ranks[str(number)] = {"src": record["src"], "ref": record["ref"], **sides}
    return pickle.dumps(ranks)


TURNED_BACK: Mapping[str, Callable[[Path], Files]] = {
    "amr-little-prince": amr,
    "crows-pairs": crows,
    "d2t-human": data_to_text,
    "gum-const": gum,
    "kp20k-small": kp20k,
    "menli-adversarial": menli,
    "metric-fairness": fairness,
    "sick": sick,
    "snli": snli,
    "sts-b": stsb,
    "summ-realsumm": realsumm,
    "summ-summeval": summeval,
    "ud-english-ewt": unchanged,
    "wmt1516-daseg": daseg,
}


@pytest.mark.parametrize("name", TURNED_BACK)
def test_a_real_set_turned_back_converts_to_the_catalogues_checksums(
    name: str, data: Path, tmp_path: Path
) -> None:
    wanted = data_set(name)
    _, sums = convert(wanted.converter, TURNED_BACK[name](data / name), tmp_path)
    assert sums == dict(wanted.files)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wmt18-da", "wmt19-da"])
def test_a_real_wmt_set_turned_back_converts_to_the_catalogues_checksums(
    name: str, data: Path, tmp_path: Path
) -> None:
    _, sums = convert(data_set(name).converter, wmt(data / name), tmp_path)
    assert sums == dict(data_set(name).files)
