"""likelihood: how likely a language model finds one text once it has read the other.

Likelihood metrics by name: BARTScore and PRISM, on their authors' kind of model.

Two texts as a question to a language model: what it reads, and which pieces it is to predict.

What a language model answers: the log-probability of the pieces it is to predict.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from evenmatch.errors import InputError
from evenmatch.models.adapters import adapter_sources, find_optional_adapter, pin_adapter
from evenmatch.models.backbone import run_in_threads
from evenmatch.models.checkpoints import Checkpoint, find_checkpoint
from evenmatch.models.heads import HeadedModel, HeadType, language_model_head, pin_weights
from evenmatch.models.loading import quiet_transformers
from evenmatch.models.packing import equal_size_batches
from evenmatch.models.tokenizer import (
    load_transformers_tokenizer,
    replace_surrogates,
    token_limit,
    unpadded_backend,
)
from evenmatch.registry import check_settings, make_signature, register
from evenmatch.registry.parts import with_settings_of
from evenmatch.scoring.engine import score_in_chunks
from evenmatch.scoring.reducers import empty_text_flags
from evenmatch.types import Array, Pair, Run, Score, Scores

DEFAULT_PROMPT = "{source}\nIn other words: {target}"


Direction: TypeAlias = Literal["both", "precision", "recall"]


SourceAndTarget: TypeAlias = tuple[str, str]  # what is read, and what is then predicted


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
    prompt: str = DEFAULT_PROMPT
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
        return self.score_pairs(pairs, Run())

    def score_pairs(self, pairs: Sequence[Pair], run: Run) -> Scores:
        """The same, as the run settings have it."""
        return Scores(score_in_chunks(pairs, run, self._score_chunk), self.signature)

    def _score_chunk(self, pairs: Sequence[Pair], run: Run) -> Iterator[Score]:
        wanted = list(
            dict.fromkeys(text for pair in pairs for text in self._source_target_texts(pair))
        )
        ask = self.make_tokenizer()
        questions = ask(wanted)
        model = self.model_with_head(run.device).with_adapter(find_optional_adapter(self.adapter))
        answers = log_probabilities(model, ask.head, questions, run)
        cut = {
            texts for texts, question in zip(wanted, questions, strict=True) if question.truncated
        }
        known = dict(zip(wanted, answers, strict=True))
        for pair in pairs:
            every = (self._score_texts(pair.candidate, r, known, cut) for r in pair.references)
            yield max(every, key=lambda score: score.value)

    def model_with_head(self, device: str) -> HeadedModel:
        """The model that predicts."""
        found = find_checkpoint(self.model)
        return HeadedModel(
            found, language_model_head(found), self.trust_remote_code, device, self.weights
        )

    def make_tokenizer(self) -> LikelihoodTokenizer:
        """How texts are put to the model."""
        checkpoint = find_checkpoint(self.model)
        head = language_model_head(checkpoint)
        if head == "causal" and (self.source_tag or self.target_tag):
            raise InputError(f"{self.model} is a causal model and takes no tags; write a prompt")
        if head == "seq2seq" and self.prompt != DEFAULT_PROMPT:
            raise InputError(f"{self.model} has an encoder and takes no prompt; leave it out")
        return LikelihoodTokenizer(
            checkpoint,
            head,
            self.prompt,
            self.source_tag,
            self.target_tag,
            self.long,
            self.trust_remote_code,
        )

    def _source_target_texts(self, pair: Pair) -> Iterator[SourceAndTarget]:
        for reference in pair.references:
            yield from self.directions(pair.candidate, reference).values()

    def directions(self, candidate: str, reference: str) -> dict[Direction, SourceAndTarget]:
        """What is asked of the two texts, whose mean is the value."""
        both: dict[Direction, SourceAndTarget] = {
            "precision": (reference, candidate),
            "recall": (candidate, reference),
        }
        return both if self.direction == "both" else {self.direction: both[self.direction]}

    def _score_texts(
        self,
        candidate: str,
        reference: str,
        known: dict[SourceAndTarget, float],
        cut: set[SourceAndTarget],
    ) -> Score:
        asked = self.directions(candidate, reference)
        found = {name: known[texts] for name, texts in asked.items()}
        flags = empty_text_flags(candidate, reference)
        if cut.intersection(asked.values()):
            flags |= {"truncated"}
        value = sum(found.values()) / len(found)
        return Score(value, found.get("precision"), found.get("recall"), flags)

    def pin(self) -> Likelihood:
        """A folder, a file of weights and an adapter by what they hold."""
        return dataclasses.replace(
            self,
            model=find_checkpoint(self.model).name,
            weights=pin_weights(self.weights),
            adapter=pin_adapter(self.adapter),
        )

    def sources(self) -> tuple[str, ...]:
        """Model and adapter by content, and the prompt that is read, so that no score hides it."""
        checkpoint = find_checkpoint(self.model)
        prompt = [f"prompt {self.prompt!r}"] if language_model_head(checkpoint) == "causal" else []
        return (f"model {checkpoint.label}", *adapter_sources(self.adapter), *prompt)

    @property
    def signature(self) -> str:
        """The recipe, with the model named by content."""
        return make_signature(self)


_BART = "facebook/bart-large-cnn"


_TRANSLATOR = "facebook/m2m100_418M"


@register("metric", "bartscore")
def bartscore(
    model: str = _BART,
    prompt: str = DEFAULT_PROMPT,
    weights: str = "",
    long: Literal["truncate", "error"] = "truncate",
    trust_remote_code: bool = False,
    adapter: str = "",
) -> Likelihood:
    """BARTScore: the mean of precision and recall as log-probabilities (Yuan et al. 2021).

    The mean runs over all pieces of a text and the marks around it. `weights` takes the authors'
    bart_score.pth. A causal model reads `prompt`.
    """
    return Likelihood(
        model,
        prompt=prompt,
        weights=weights,
        long=long,
        trust_remote_code=trust_remote_code,
        adapter=adapter,
    )


@register("metric", "bartscore_precision")
@with_settings_of(bartscore)
def bartscore_precision(**settings: Any) -> Likelihood:
    """BARTScore's precision: the candidate's log-probability after the reference."""
    return replace(bartscore(**settings), direction="precision")


@register("metric", "bartscore_recall")
@with_settings_of(bartscore)
def bartscore_recall(**settings: Any) -> Likelihood:
    """BARTScore's recall: the reference's log-probability after the candidate."""
    return replace(bartscore(**settings), direction="recall")


@register("metric", "prism")
def prism(
    model: str = _TRANSLATOR,
    source_tag: str = "__en__",
    target_tag: str = "__en__",
    weights: str = "",
    long: Literal["truncate", "error"] = "truncate",
    trust_remote_code: bool = False,
    adapter: str = "",
) -> Likelihood:
    """PRISM: a multilingual translator, told to write the same language, as judge.

    The mean runs over the pieces and the closing token, not the tag (Thompson & Post 2020). Their
    own model is none that transformers loads by itself; with a port of it, write target_tag='<en>'
    and source_tag='', since it reads without a tag.
    """
    return Likelihood(
        model,
        "both",
        DEFAULT_PROMPT,
        source_tag,
        target_tag,
        weights,
        long,
        trust_remote_code,
        adapter,
    )


SOURCE_PLACEHOLDER, TARGET_PLACEHOLDER = "{source}", "{target}"


def check_prompt(prompt: str) -> None:
    """Refuse a prompt that does not name both texts, the predicted one last."""
    if (
        prompt.count(SOURCE_PLACEHOLDER) != 1
        or prompt.count(TARGET_PLACEHOLDER) != 1
        or not prompt.endswith(TARGET_PLACEHOLDER)
    ):
        raise InputError(
            f"a prompt holds {SOURCE_PLACEHOLDER} once and ends with {TARGET_PLACEHOLDER}, got {prompt[:80]!r}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class LikelihoodInput:
    """Ids that an encoder reads, ids that are predicted one by one, and which of those count.

    A causal model has no encoder: everything it reads stands before what counts.
    """

    source: Array
    target: Array
    scored_mask: Array
    truncated: bool  # whether a text had to be cut short


@dataclass(frozen=True)
class LikelihoodTokenizer:
    """How texts are put to one model."""

    checkpoint: Checkpoint
    head: HeadType
    prompt: str
    source_tag: str
    target_tag: str
    long: str
    trust_remote_code: bool

    def __call__(self, texts: Sequence[tuple[str, str]]) -> list[LikelihoodInput]:
        """A question for each pair of texts: what is read, and what is then predicted."""
        loaded = load_transformers_tokenizer(self.checkpoint, self.trust_remote_code)
        limit = token_limit(self.checkpoint, int(loaded.model_max_length))
        clean = [tuple(replace_surrogates(t).strip() for t in pair) for pair in texts]
        sources, targets = [c[0] for c in clean], [c[1] for c in clean]
        with quiet_transformers():  # which warns of every text longer than the model takes
            if self.head == "causal":
                return self._encode_prompts(loaded, limit, sources, targets)
            read = self._token_ids(loaded, limit, sources, self.source_tag)
            written = self._token_ids(loaded, limit, targets, self.target_tag)
        return [
            LikelihoodInput(source, target, self._scored_mask(target), longer or long)
            for (source, longer), (target, long) in zip(read, written, strict=True)
        ]

    def _scored_mask(self, target: Array) -> Array:
        """Every piece counts, marks too, but not the tag that says which language to write."""
        return np.arange(len(target)) >= bool(self.target_tag)

    def _token_ids(
        self, loaded: Any, limit: int, texts: Sequence[str], tag: str
    ) -> list[tuple[Array, bool]]:
        """Each text's ids as the model is used to them, and whether there were too many."""
        # With tags the metric says what surrounds a text; without, the tokenizer does.
        tagged = bool(self.source_tag or self.target_tag)
        opening = [self._tag_id(loaded, tag)] if tag else []
        closing = [loaded.eos_token_id] if tagged else []
        given = loaded(list(texts), add_special_tokens=not tagged)["input_ids"] if texts else []
        found = [np.array([*opening, *ids, *closing], dtype=np.int64) for ids in given]
        if not tagged and found and max(map(len, found)) > limit:
            closing = self._closing_tokens(loaded)
        return [self._truncate_ids(ids, limit, len(closing)) for ids in found]

    def _tag_id(self, loaded: Any, tag: str) -> int:
        found = loaded.convert_tokens_to_ids(tag)
        if found is None or found == loaded.unk_token_id:
            raise InputError(
                f"{self.checkpoint.display_name} has no piece {tag!r}; "
                "give the tag as its tokenizer writes it"
            )
        return int(found)

    def _closing_tokens(self, loaded: Any) -> list[int]:
        """What the tokenizer puts after a text."""
        mask = loaded("a", return_special_tokens_mask=True)["special_tokens_mask"]
        return [1] * (len(mask) - 1 - max(i for i, special in enumerate(mask) if not special))

    def _truncate_ids(self, ids: Array, limit: int, closing: int) -> tuple[Array, bool]:
        if len(ids) <= limit:
            return ids, False
        self._refuse_long(len(ids), limit)
        return np.concatenate([ids[: limit - closing], ids[len(ids) - closing :]]), True

    def _refuse_long(self, count: int, limit: int) -> None:
        if self.long == "error":
            raise InputError(
                f"a text has {count} pieces and {self.checkpoint.display_name} takes {limit}; "
                "shorten it, or say long='truncate'"
            )

    def _encode_prompts(
        self, loaded: Any, limit: int, sources: Sequence[str], targets: Sequence[str]
    ) -> list[LikelihoodInput]:
        backend = unpadded_backend(loaded)
        before, rest = self.prompt.split(SOURCE_PLACEHOLDER)
        between = rest.removesuffix(TARGET_PLACEHOLDER)
        # Source and target may each take half of the room that the prompt leaves.
        room = (limit - len(backend.encode(before + between).ids) - 2) // 2
        short = {text: self._truncate_text(backend, text, room) for text in {*sources, *targets}}
        questions = []
        for source, target in zip(sources, targets, strict=True):
            (read, longer), (written, long) = short[source], short[target]
            start = len(before + read + between)
            encoding = backend.encode(before + read + between + written)
            ends = np.array([end for _, end in encoding.offsets], dtype=np.int64)
            ids = np.array(encoding.ids, dtype=np.int64)
            questions.append(LikelihoodInput(ids[:0], ids, ends > start, longer or long))
        return questions

    def _truncate_text(self, backend: Any, text: str, room: int) -> tuple[str, bool]:
        encoding = backend.encode(text, add_special_tokens=False)
        if len(encoding.ids) <= room:
            return text, False
        self._refuse_long(len(encoding.ids), room)
        return text[: encoding.offsets[room - 1][1]], True


_POSITIONS_PER_CHUNK = 128


def log_probabilities(
    model: Any, head: HeadType, questions: Sequence[LikelihoodInput], run: Run
) -> list[float]:
    """The mean log-probability of each question's counted pieces, in natural logarithms."""
    blind = -math.log(model.config.vocab_size)
    answers = [blind] * len(questions)
    asked = [i for i, question in enumerate(questions) if question.scored_mask.any()]
    sizes = [(len(questions[i].source), len(questions[i].target)) for i in asked]
    ask = _seq2seq_log_probabilities if head == "seq2seq" else _causal_log_probabilities

    def one(batch: list[int]) -> None:
        import torch

        own = [asked[i] for i in batch]
        with torch.inference_mode():
            for index, answer in zip(own, ask(model, [questions[i] for i in own]), strict=True):
                answers[index] = answer

    # Never padded: beside a longer text, SmolLM2's answers moved by up to 1e-5.
    run_in_threads(one, list(equal_size_batches(sizes, run.batch_tokens)), run)
    return answers


def _seq2seq_log_probabilities(model: Any, batch: Sequence[LikelihoodInput]) -> list[float]:
    read = _stack_ids([question.source for question in batch], model.device)
    # Labels, so that each kind of model shifts them its own way into what its decoder reads.
    labels = _stack_ids([question.target for question in batch], model.device)
    logits = model(input_ids=read, labels=labels, use_cache=False).logits
    return [
        _mean_log_probability(logits[row], q.target, q.scored_mask) for row, q in enumerate(batch)
    ]


def _causal_log_probabilities(model: Any, batch: Sequence[LikelihoodInput]) -> list[float]:
    read = _stack_ids([question.target for question in batch], model.device)
    logits = model(input_ids=read, use_cache=False).logits
    return [
        _mean_log_probability(logits[row], q.target[1:], q.scored_mask[1:])
        for row, q in enumerate(batch)
    ]


def _stack_ids(rows: Sequence[Array], device: Any) -> Any:
    import torch

    return torch.from_numpy(np.stack(rows)).to(device)


def _mean_log_probability(logits: Any, target: Array, counted: Array) -> float:
    """Row t of the logits predicts piece t."""
    import torch

    at: Any = torch.from_numpy(np.flatnonzero(counted)).to(logits.device)
    wanted: Any = torch.from_numpy(target[counted]).to(logits.device)
    total = 0.0
    # In double precision, since a sum over 50,000 pieces in single is off by 2e-5; and some
    # positions at a time, since a vocabulary is wide.
    for rows, pieces in zip(
        at.split(_POSITIONS_PER_CHUNK), wanted.split(_POSITIONS_PER_CHUNK), strict=True
    ):
        logs = torch.log_softmax(logits[rows].double(), -1)
        total += float(logs.gather(1, pieces[:, None]).sum())
    return total / len(at)
