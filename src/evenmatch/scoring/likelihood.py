"""likelihood: how likely a language model finds one text once it has read the other."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from evenmatch.errors import InputError
from evenmatch.registry import check_settings, register, signature
from evenmatch.scoring.likelihood_asking import Asking, check_prompt
from evenmatch.scoring.likelihood_model import log_probabilities
from evenmatch.scoring.ngram_rows import side_flags
from evenmatch.scoring.portions import scored_in_portions
from evenmatch.types import Pair, Run, Score, Scores
from evenmatch.vectors import checkpoints
from evenmatch.vectors.adapter_files import adapter_source, named_adapter, pinned_adapter
from evenmatch.vectors.adapter_headed import Headed
from evenmatch.vectors.heads import language_head, name_weights

PROMPT = "{source}\nIn other words: {target}"
Direction: TypeAlias = Literal["both", "precision", "recall"]
Texts: TypeAlias = tuple[str, str]  # what is read, and what is then predicted


@register("metric", "likelihood")
@dataclass(frozen=True)
class Likelihood:
    """The mean log-probability of a text's pieces once a model has read the other text.

    Precision is that of the candidate after the reference, recall that of the reference after the
    candidate; `direction` says whether their mean is the value or one of them. `model` is an
    embedded model's name, a Hugging Face name or a folder: an encoder-decoder, or a causal model,
    which reads `prompt` with both texts put in. `source_tag` and `target_tag` are the pieces that
    name a language to an encoder-decoder, before what it reads and what it writes; with the latter
    the target is tag, pieces and closing token, and the tag does not count. `weights` is a file to
    load over the model's own weights. `adapter` switches on one that `debias` trained through this
    metric. `long` says what happens to a text the model cannot take
    whole. An empty text has no piece to predict where a model sets no marks around it, and then
    counts as one drawn blindly from the vocabulary.
    """

    model: str = "smollm2"
    direction: Direction = "both"
    prompt: str = PROMPT
    source_tag: str = ""
    target_tag: str = ""
    weights: str = ""
    long: Literal["truncate", "error"] = "truncate"
    trust_remote_code: bool = False
    adapter: str = ""
    higher_is_better: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (-math.inf, 0.0)

    def __post_init__(self) -> None:
        check_settings(self)
        check_prompt(self.prompt)

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """The scores in order; the best reference counts."""
        return self.carry_out(pairs, Run())

    def carry_out(self, pairs: Sequence[Pair], run: Run) -> Scores:
        """The same, as the run settings have it."""
        return Scores(scored_in_portions(pairs, run, self._scored), self.signature)

    def _scored(self, pairs: Sequence[Pair], run: Run) -> Iterator[Score]:
        wanted = list(dict.fromkeys(text for pair in pairs for text in self._asked(pair)))
        ask = self.asking()
        questions = ask(wanted)
        model = self.headed(run.device).with_adapter(named_adapter(self.adapter))
        answers = log_probabilities(model, ask.head, questions, run)
        cut = {texts for texts, question in zip(wanted, questions, strict=True) if question.cut}
        known = dict(zip(wanted, answers, strict=True))
        for pair in pairs:
            every = (self._one(pair.candidate, r, known, cut) for r in pair.references)
            yield max(every, key=lambda score: score.value)

    def headed(self, device: str) -> Headed:
        """The model that predicts."""
        found = checkpoints.find(self.model)
        return Headed(found, language_head(found), self.trust_remote_code, device, self.weights)

    def asking(self) -> Asking:
        """How texts are put to the model."""
        checkpoint = checkpoints.find(self.model)
        head = language_head(checkpoint)
        if head == "causal" and (self.source_tag or self.target_tag):
            raise InputError(f"{self.model} is a causal model and takes no tags; write a prompt")
        if head == "seq2seq" and self.prompt != PROMPT:
            raise InputError(f"{self.model} has an encoder and takes no prompt; leave it out")
        return Asking(
            checkpoint,
            head,
            self.prompt,
            self.source_tag,
            self.target_tag,
            self.long,
            self.trust_remote_code,
        )

    def _asked(self, pair: Pair) -> Iterator[Texts]:
        for reference in pair.references:
            yield from self.directions(pair.candidate, reference).values()

    def directions(self, candidate: str, reference: str) -> dict[Direction, Texts]:
        """What is asked of the two texts, whose mean is the value."""
        both: dict[Direction, Texts] = {
            "precision": (reference, candidate),
            "recall": (candidate, reference),
        }
        return both if self.direction == "both" else {self.direction: both[self.direction]}

    def _one(
        self, candidate: str, reference: str, known: dict[Texts, float], cut: set[Texts]
    ) -> Score:
        asked = self.directions(candidate, reference)
        found = {name: known[texts] for name, texts in asked.items()}
        flags = side_flags(candidate, reference)
        if cut.intersection(asked.values()):
            flags |= {"truncated"}
        value = sum(found.values()) / len(found)
        return Score(value, found.get("precision"), found.get("recall"), flags)

    def pinned(self) -> Likelihood:
        """A folder, a file of weights and an adapter by what they hold."""
        return dataclasses.replace(
            self,
            model=checkpoints.find(self.model).name,
            weights=name_weights(self.weights),
            adapter=pinned_adapter(self.adapter),
        )

    def sources(self) -> tuple[str, ...]:
        """Model and adapter by content, and the prompt that is read, so that no score hides it."""
        checkpoint = checkpoints.find(self.model)
        prompt = [f"prompt {self.prompt!r}"] if language_head(checkpoint) == "causal" else []
        return (f"model {checkpoint.label}", *adapter_source(self.adapter), *prompt)

    @property
    def signature(self) -> str:
        """The recipe, with the model named by content."""
        return signature(self)
