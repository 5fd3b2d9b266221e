"""The runs of the graph-to-text experiment: each leaves its curves and what it writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from evenmatch.data.graphs import GraphText
from evenmatch.uses.study.cells import Cells, slug
from evenmatch.uses.study.graph_arms import START, Design, Node
from evenmatch.uses.study.graph_corpus import Corpus
from evenmatch.uses.study.runs import carry_out, read_packed, thinned, write_packed
from evenmatch.uses.train.tune import Tuned, tune
from evenmatch.uses.train.tune_course import CHECKPOINT, MODEL
from evenmatch.uses.train.tune_policy import load_policy
from evenmatch.uses.train.tune_settings import Tuning
from evenmatch.uses.train.tune_writing import write_texts

_AT_A_TIME = 160  # graphs whose texts are written together
_CURVES = ("cross_entropy", "reward", "baseline")


@dataclass(frozen=True, slots=True)
class Result:
    """What a run left: (step, BLEU) at each look, curves, and a text for each test graph."""

    node: Node
    looks: Sequence[tuple[int, float]]
    curves: Mapping[str, Sequence[float]]
    steps: int
    seconds: float
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Runs:
    """The experiment in its folder: results in `cells` and `texts`, weights in `models`."""

    corpus: Corpus
    design: Design
    folder: Path
    enough: Callable[[], bool] = lambda: False
    told: Callable[[str], None] = lambda _: None

    def __call__(self) -> list[Result]:
        """Every result, made now where it is not there; fewer when it was `enough` before."""
        return carry_out(self.design.nodes(), self.kept, self._made)

    def results(self) -> list[Result]:
        """The results that there are."""
        return [result for node in self.design.nodes() if (result := self.kept(node))]

    def kept(self, node: Node) -> Result | None:
        """The result of a run that was carried out before."""
        found = Cells(self.folder).find(node.name, self._recipe(node))
        if found is None:
            return None
        looks = [(int(step), float(bleu)) for step, bleu in found["looks"]]
        texts = tuple(read_packed(self._texts(node)))
        return Result(node, looks, found["curves"], found["steps"], found["seconds"], texts)

    def _made(self, node: Node) -> Result | None:
        start = time.monotonic()
        tuned = self._tuned(node)
        history = tuned.history
        if not history.ended:
            self.told(f"{node.name}: paused after step {len(history.told)}")
            return None
        settings = self.design.tuning(node)
        write_packed(self._texts(node), written(tuned.model, self.corpus.test, settings))
        told = [asdict(each) for each in history.told]
        found = {
            "looks": [(step, round(bleu, 5)) for step, bleu in history.looks],
            "curves": {name: thinned([each[name] for each in told]) for name in _CURVES},
            "steps": len(history.told),
            "seconds": round(time.monotonic() - start),
        }
        Cells(self.folder).keep(node.name, self._recipe(node), found)
        (tuned.model.parent / CHECKPOINT).unlink()  # large, and of no use any more
        step, best = history.best
        self.told(
            f"{node.name}: {found['steps']} steps in {found['seconds']} s, "
            f"best BLEU {100 * best:.2f} at step {step}"
        )
        return self.kept(node)

    def _tuned(self, node: Node) -> Tuned:
        """The model of a run; that of its start is made before."""
        train, valid = self.corpus.write(self.folder / "models")
        usual, out = self.design.tuning(node), str(self._place(node))
        settings = replace(usual, train=train, valid=valid, out=out)
        if node.arm == START:
            return tune(settings, enough=self.enough)
        first = Node(node.seed)
        model = self._place(first) / MODEL
        if not (self.kept(first) and model.is_dir()):
            before = self._tuned(first)
            if not before.history.ended:
                return before
        return tune(replace(settings, model=str(model)), enough=self.enough)

    def _place(self, node: Node) -> Path:
        return self.folder / "models" / slug(node.name)

    def _recipe(self, node: Node) -> dict[str, Any]:
        start = self.design.tuning(Node(node.seed))
        return {
            "corpus": self.corpus.digest,
            "start": asdict(start),
            "run": asdict(self.design.tuning(node)),
        }

    def _texts(self, node: Node) -> Path:
        return self.folder / "texts" / f"{slug(node.name)}.json.gz"


def written(model: Path, graphs: Sequence[GraphText], settings: Tuning) -> list[str]:
    """What a model writes for graphs: the likeliest piece each time."""
    return write_texts(
        load_policy(str(model)),
        [settings.prefix + each.graph.line for each in graphs],
        longest=(settings.longest_source, settings.longest_target),
        at_a_time=_AT_A_TIME,
    )
