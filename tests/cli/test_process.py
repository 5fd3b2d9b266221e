"""The command as a process of its own: what only a real start, pipe and exit can show."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import resource
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import evenmatch as em

EVENMATCH = [sys.executable, "-m", "evenmatch"]
LSA = "align(vectors=hashed, alignment=lsa)"


def run(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*EVENMATCH, *arguments], input=given, capture_output=True, check=False)


def test_version_help_and_no_command() -> None:
    assert run("--version").stdout.decode() == f"evenmatch {em.__version__}\n"
    help_text = run("-h")
    assert help_text.returncode == 0
    assert b"Commands:" in help_text.stdout
    assert run().returncode == 2


def test_list_starts_within_a_second_of_work_and_without_torch() -> None:
    code = (
        "import sys; from evenmatch.cli.main import main\n"
        "try: main(['list'])\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'torch', 'transformers', 'pyarrow', 'matplotlib', 'ot', 'sacrebleu', 'nltk'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )

    def seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # Processor time, the best of three: a busy machine must not fail this.
    assert min(seconds() for _ in range(3)) < 1.0


def test_a_reader_who_leaves_ends_the_command_quietly() -> None:
    with subprocess.Popen(
        [*EVENMATCH, "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*EVENMATCH, "list"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (1, b"evenmatch: No space left on device\n")


def test_a_pipe_in_and_json_out() -> None:
    record = json.dumps({"prediction": "a b", "reference": "a b c"}).encode()
    done = run("score", "-", "-m", LSA, "--json", given=record)
    assert done.returncode == 0
    found = json.loads(done.stdout)["metrics"][LSA]
    assert found["mean"] == em.score(["a b"], ["a b c"], LSA).mean


def test_an_error_is_one_line_and_debug_shows_the_traceback(tmp_path: Path) -> None:
    missing = str(tmp_path / "no.jsonl")
    plain, debug = run("score", missing), run("score", missing, "--debug")
    assert (plain.returncode, debug.returncode) == (1, 1)
    assert plain.stderr.decode() == f"evenmatch: {missing}: No such file or directory\n"
    assert b"Traceback" in debug.stderr
    assert b"FileNotFoundError" in debug.stderr


def test_the_tour_without_its_model_says_how_to_get_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "evenmatch.cli.demo"],
        env={**os.environ, "EVENMATCH_MODELS": "nowhere"},
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(b"evenmatch: the model 'minilm' is not in nowhere; fetch it with")
    assert done.stderr.count(b"\n") == 1


def test_a_terminal_gets_a_bar_on_standard_error_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"candidate": "a b", "reference": "a"}\n' * 3)
    ours, theirs = pty.openpty()
    command = [*EVENMATCH, "score", str(path), "-m", LSA, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs) as running:
        os.close(theirs)
        shown = _everything(ours)
        said, _ = running.communicate()
    assert "pairs scored" in shown
    assert "3/3" in shown
    assert json.loads(said)["metrics"]


def test_tables_fit_the_terminal_and_are_whole_elsewhere(tmp_path: Path) -> None:
    for name, line in {"a": "the cat", "b": "a dog", "r": "the cat sat"}.items():
        (tmp_path / f"{name}.txt").write_text(f"{line}\n" * 2)
    texts = [str(tmp_path / f"{name}.txt") for name in "abr"]
    command = [*EVENMATCH, "compare", "-c", texts[0], "-c", texts[1], "-r", texts[2], "-m", LSA]
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 70, 0, 0))
    known = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env=known):
        os.close(theirs)
        shown = _everything(ours).splitlines()
    whole = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert max(len(line) for line in shown if " · " not in line) <= 70
    assert max(len(line) for line in whole if "p-values" not in line and " · " not in line) > 100
    assert any("better" in line for line in shown)


def _everything(terminal: int) -> str:
    """What is written to a terminal, however often the bar is drawn, until nobody holds it."""
    shown = b""
    with contextlib.suppress(OSError), open(terminal, "rb", buffering=0) as screen:
        while piece := screen.read(4096):
            shown += piece
    return shown.decode()


def test_an_interrupted_run_says_that_it_can_be_continued(tmp_path: Path) -> None:
    rows = "".join(json.dumps({"candidate": f"a {n}", "reference": "a"}) + "\n" for n in range(9))
    (tmp_path / "in.jsonl").write_text(rows * 2000)
    asked = ["score", "in.jsonl", "-m", "ter", "--out", "o.tsv", "--shard-rows", "20"]
    process = subprocess.Popen(
        [sys.executable, "-m", "evenmatch", *asked], cwd=tmp_path, stderr=subprocess.PIPE
    )
    manifest = tmp_path / "o.tsv.partial" / "manifest.jsonl"
    while process.poll() is None and not manifest.exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert said.decode() == (
        "evenmatch: interrupted; the same command continues a run that saves its state\n"
    )
