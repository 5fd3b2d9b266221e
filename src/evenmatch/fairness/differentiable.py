"""Metrics that a gradient goes through, to train an adapter by: one form for each kind.

Scores of an alignment metric that a gradient goes through, to train an adapter by.

The alignment is a constant to the gradient, as everywhere (see `scoring.reduce`).

Scores of a fitted two-tower metric that a gradient goes through.

Scores of a model that reads two texts side by side, with a gradient through them.

Log-probabilities under a language model, with a gradient through them.

Texts through an encoder of one's own, with gradients: what two-sided metrics train through.

Rows of different lengths as one table, for passes through a model that is trained through.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from evenmatch.errors import InputError
from evenmatch.metrics.fitted import BiEncoderHead, FittedMetric, pair_features_torch
from evenmatch.metrics.likelihood import Likelihood, LikelihoodInput
from evenmatch.metrics.regression import Regression, TokenizedPair
from evenmatch.models.adapters import Adapter, use_adapter
from evenmatch.models.backbone import Blocks, PretrainedBackbone, load_trainable_blocks
from evenmatch.models.heads import HeadedBlocks
from evenmatch.models.hidden_states import HiddenStates
from evenmatch.models.tokenizer import ModelTokenizer, TokenizedText
from evenmatch.protocols import Metric
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.reducers import Prf, precision_recall
from evenmatch.types import Alignment, Array, Embedded, Pair, Problem, Run
from evenmatch.vectors.transformer import Transformer


class Differentiable(Protocol):
    """A metric over a model of one's own, whose blocks an adapter may stand behind."""

    @property
    def dim(self) -> int:
        """How long a vector is."""

    @property
    def blocks(self) -> int:
        """How many blocks, from the lowest, an adapter stands behind."""

    @property
    def label(self) -> str:
        """The model by content."""

    def scores(self, pairs: Sequence[TextPair], adapter: Adapter | None) -> Any:
        """The scores of the pairs as one tensor, by the model with the adapter or without."""


def make_differentiable(metric: Metric, run: Run) -> Differentiable:
    """The metric ready to be trained through; refused where no gradient can go through it."""
    if isinstance(metric, AlignMetric):
        return differentiable_alignment(metric, run)
    if not isinstance(metric, FittedMetric | Regression | Likelihood):
        raise InputError(
            "only metrics over a transformer can be trained through: alignment metrics such as "
            "bertscore, f_disc and f_cont, fitted, regression and likelihood metrics"
        )
    if metric.adapter:
        raise InputError("a metric to train through has no adapter yet; leave out adapter=")
    if isinstance(metric, FittedMetric):
        return differentiable_bi_encoder(metric, run)
    if isinstance(metric, Regression):
        return differentiable_regression(metric, run)
    return differentiable_likelihood(metric, run)


def adapted_metric(metric: Metric, adapter: str) -> Metric:
    """The metric with an adapter switched on."""
    if isinstance(metric, FittedMetric | Regression | Likelihood):
        return dataclasses.replace(metric, adapter=adapter)
    if isinstance(metric, AlignMetric) and isinstance(metric.vectors, Transformer):
        encoder = dataclasses.replace(metric.vectors, adapter=adapter)
        return dataclasses.replace(metric, vectors=encoder)
    raise InputError("only a metric over a transformer takes an adapter, such as bertscore")


@dataclass(frozen=True, slots=True, eq=False)
class PreparedUnits:
    """Which of a text's pieces are units, with which weights."""

    rows: Array
    keys: Array
    weights: Any
    embedded: Embedded


@dataclass(frozen=True, eq=False)
class DifferentiableAlignment:
    """An alignment metric over a model of one's own, whose blocks an adapter may stand behind."""

    metric: AlignMetric
    encoder: Transformer
    text_encoder: DifferentiableEncoder
    blocks: int
    prepared: dict[str, PreparedUnits] = field(default_factory=dict)

    @property
    def dim(self) -> int:
        """How long a vector is."""
        return self.text_encoder.dim

    @property
    def label(self) -> str:
        """The model by content."""
        return self.text_encoder.label

    def scores(self, pairs: Sequence[TextPair], adapter: Adapter | None) -> Any:
        """The scores of the pairs as one tensor, by the model with the adapter or without."""
        import torch

        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        states = self.text_encoder.hidden_states(texts, [self.blocks], adapter)[self.blocks]
        sides = {text: self._embed(text, states[row]) for row, text in enumerate(texts)}
        both = [(sides[c], sides[r]) for c, r in pairs]
        similarities = [self.metric.similarity(x, y) for x, y in both]
        problems = [
            Problem(s.detach().cpu().numpy(), x.mass, y.mass)
            for s, (x, y) in zip(similarities, both, strict=True)
        ]
        solved = self.metric.alignment(problems)
        every = zip(similarities, solved, both, strict=True)
        return torch.stack([_f_score(s, a, x, y) for s, a, (x, y) in every])

    def _embed(self, text: str, states: Any) -> Embedded:
        if text not in self.prepared:
            self.prepared[text] = self._prepare(text)
        own = self.prepared[text]
        vectors = states[own.rows]
        mass = self.encoder.mass(own.keys, vectors.detach().cpu().numpy())
        return Embedded(own.embedded.units, vectors, own.weights, mass)

    def _prepare(self, text: str) -> PreparedUnits:
        cut = self.text_encoder.tokenize(text)
        # Numbered pieces instead of vectors: what comes out says which are units.
        numbers = {self.blocks: np.arange(len(cut.token_ids))[:, None]}
        found = self.encoder.embed(
            self.metric.units(text), HiddenStates(text, cut.token_ids, cut.spans, cut.special_tokens, numbers),
            self.blocks,
        )  # fmt: skip
        rows = np.asarray(found.vectors)[:, 0]
        return PreparedUnits(rows, cut.token_ids[rows], _tensor(found.weights), found)


def differentiable_alignment(metric: AlignMetric, run: Run) -> DifferentiableAlignment:
    """The metric ready to be trained through; refused where no gradient can go through it."""
    encoder = metric.vectors
    if not isinstance(encoder, Transformer):
        raise InputError(
            "no gradient goes through an alignment metric that is not over a transformer; "
            "train through bertscore, f_disc or f_cont"
        )
    if not metric.units("a").by_model or not isinstance(metric.scoring, Prf) or encoder.pad_to:
        raise InputError(
            "a metric to train through has pieces as units, prf as scoring and no padding; "
            "train bertscore, f_disc or f_cont and use the adapter in any metric of that model"
        )
    if encoder.needs_idf or encoder.adapter:
        raise InputError(
            "a metric to train through has neither an adapter nor an idf that is still to be "
            "counted; leave out adapter= and idf="
        )
    texts = load_differentiable_encoder(encoder.backbone, run)
    return DifferentiableAlignment(metric, encoder, texts, encoder.layer_index())


def _f_score(similarity: Any, alignment: Alignment, x: Embedded, y: Embedded) -> Any:
    kept = Alignment(_tensor(alignment.rows), _tensor(alignment.cols))
    if not len(x.weights) or not len(y.weights):
        return similarity.sum() * 0.0
    precision, recall = precision_recall(similarity, kept, x.weights, y.weights)
    return 2 * precision * recall / (precision + recall).clamp(min=1e-6)


def _tensor(array: Array) -> Any:
    import torch

    return torch.as_tensor(np.asarray(array, dtype=np.float32))


@dataclass(frozen=True, eq=False)
class DifferentiableBiEncoder:
    """A fitted metric over a model of one's own; its head stays as it is."""

    text_encoder: DifferentiableEncoder
    head: BiEncoderHead

    @property
    def dim(self) -> int:
        """How long a vector is."""
        return self.text_encoder.dim

    @property
    def blocks(self) -> int:
        """How many blocks an adapter stands behind."""
        return max(self.head.layers)

    @property
    def label(self) -> str:
        """The model by content."""
        return self.text_encoder.label

    def scores(self, pairs: Sequence[TextPair], adapter: Adapter | None) -> Any:
        """The scores of the pairs as one tensor, by the model with the adapter or without."""
        import torch

        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        states = self.text_encoder.hidden_states(texts, self.head.layers, adapter)
        pieces = self._piece_mask(texts)
        x, y = (
            ({layer: own[at] for layer, own in states.items()}, pieces[at])
            for at in ([texts.index(text) for text in side] for side in zip(*pairs, strict=True))
        )
        seen = pair_features_torch(*x, *y, self.head.layers)
        weights = torch.as_tensor(self.head.weights, dtype=seen.dtype, device=seen.device)
        return seen @ weights + self.head.bias

    def _piece_mask(self, texts: Sequence[str]) -> Any:
        """Where the pieces of the texts stand, without the marks around them."""
        cuts = [self.text_encoder.tokenize(text) for text in texts]
        inner = [~np.isin(np.arange(len(cut.token_ids)), list(cut.special_tokens)) for cut in cuts]
        return pad_rows(inner, self.text_encoder.blocks.device).bool()


def differentiable_bi_encoder(metric: FittedMetric, run: Run) -> DifferentiableBiEncoder:
    """The metric ready to be trained through."""
    return DifferentiableBiEncoder(
        load_differentiable_encoder(metric.encoder().backbone, run), metric.head()
    )


@dataclass(frozen=True, eq=False)
class DifferentiableRegression:
    """A regression metric over a model of one's own, and the pairs it has read so far."""

    metric: Regression
    headed: HeadedBlocks
    label: str
    tokenized: dict[TextPair, TokenizedPair] = field(default_factory=dict)

    @property
    def dim(self) -> int:
        """How long a vector is."""
        return int(self.headed.module.config.hidden_size)

    @property
    def blocks(self) -> int:
        """How many blocks an adapter stands behind."""
        return len(self.headed.stack)

    def scores(self, pairs: Sequence[TextPair], adapter: Adapter | None) -> Any:
        """The scores of the pairs as one tensor, by the model with the adapter or without."""
        self._prepare([pair for pair in dict.fromkeys(pairs) if pair not in self.tokenized])
        inputs = [self.tokenized[pair].inputs for pair in pairs]
        model = self.headed.module
        given = {
            name: pad_rows([own[name] for own in inputs], model.device, self._pad_value(name))
            for name in inputs[0]
        }
        seen = build_attention_mask([own["input_ids"] for own in inputs], model.device)
        with use_adapter(self.headed, adapter):
            return model(**given, attention_mask=seen).logits.float().reshape(-1)

    def _pad_value(self, name: str) -> int:
        return (self.headed.module.config.pad_token_id or 0) if name == "input_ids" else 0

    def _prepare(self, pairs: Sequence[TextPair]) -> None:
        sides = [next(self.metric.ordered_texts(Pair(c, (r,)))) for c, r in pairs]
        self.tokenized.update(zip(pairs, self.metric.make_tokenizer()(sides), strict=True))


def differentiable_regression(metric: Regression, run: Run) -> DifferentiableRegression:
    """The metric ready to be trained through."""
    headed = metric.model_with_head(run.device)
    return DifferentiableRegression(metric, headed.copy_blocks(), headed.checkpoint.label)


_IGNORE_INDEX = -100  # what a model's own shifting of labels takes for nothing


@dataclass(frozen=True, eq=False)
class DifferentiableLikelihood:
    """A likelihood metric over a model of one's own, and the questions it was asked so far."""

    metric: Likelihood
    headed: HeadedBlocks
    label: str
    questions: dict[TextPair, LikelihoodInput] = field(default_factory=dict)

    @property
    def dim(self) -> int:
        """How long a vector is."""
        return int(self.headed.module.config.hidden_size)

    @property
    def blocks(self) -> int:
        """How many blocks an adapter stands behind, encoder and decoder together."""
        return len(self.headed.stack)

    def scores(self, pairs: Sequence[TextPair], adapter: Adapter | None) -> Any:
        """The scores of the pairs as one tensor, by the model with the adapter or without."""
        import torch

        wanted = [list(self.metric.directions(c, r).values()) for c, r in pairs]
        every = list(dict.fromkeys(texts for own in wanted for texts in own))
        new = [texts for texts in every if texts not in self.questions]
        self.questions.update(zip(new, self.metric.make_tokenizer()(new), strict=True))
        with use_adapter(self.headed, adapter):
            answers = self._mean_log_probabilities([self.questions[texts] for texts in every])
        at = torch.tensor([[every.index(texts) for texts in own] for own in wanted])
        return answers[at].mean(1)

    def _mean_log_probabilities(self, questions: Sequence[LikelihoodInput]) -> Any:
        """The mean log-probability of the pieces of each question that count."""
        import torch

        model = self.headed.module
        logits, first = self._logits(questions)  # row t predicts piece t + first
        pieces = pad_rows([q.target[first:] for q in questions], model.device)
        counted = pad_rows([q.scored_mask[first:] for q in questions], model.device).bool()
        logs = torch.log_softmax(logits[counted], -1).gather(1, pieces[counted][:, None])[:, 0]
        rows, _ = counted.nonzero(as_tuple=True)
        total = torch.zeros(len(questions), device=model.device).index_add(0, rows, logs)
        many = counted.sum(1)
        blind = -math.log(model.config.vocab_size)
        return torch.where(many > 0, total / many.clamp(min=1), blind)

    def _logits(self, questions: Sequence[LikelihoodInput]) -> tuple[Any, int]:
        model = self.headed.module
        targets = [question.target for question in questions]
        if not model.config.is_encoder_decoder:
            seen = build_attention_mask(targets, model.device)
            read = pad_rows(targets, model.device)
            return model(input_ids=read, attention_mask=seen, use_cache=False).logits[:, :-1], 1
        sources = [question.source for question in questions]
        answer = model(
            input_ids=pad_rows(sources, model.device, model.config.pad_token_id or 0),
            attention_mask=build_attention_mask(sources, model.device),
            labels=pad_rows(targets, model.device, _IGNORE_INDEX),
            use_cache=False,
        )
        return answer.logits, 0


def differentiable_likelihood(metric: Likelihood, run: Run) -> DifferentiableLikelihood:
    """The metric ready to be trained through."""
    headed = metric.model_with_head(run.device)
    return DifferentiableLikelihood(metric, headed.copy_blocks(), headed.checkpoint.label)


@dataclass(frozen=True, eq=False)
class DifferentiableEncoder:
    """An encoder whose blocks an adapter may stand behind, and the texts it has cut so far."""

    backbone: PretrainedBackbone
    blocks: Blocks
    tokenized: dict[str, TokenizedText] = field(default_factory=dict)

    @property
    def dim(self) -> int:
        """How long a vector is."""
        return int(self.blocks.module.config.hidden_size)

    @property
    def label(self) -> str:
        """The model by content."""
        return self.backbone.checkpoint().label

    def tokenize(self, text: str) -> TokenizedText:
        """The text as pieces, as many as the model takes."""
        if text not in self.tokenized:
            tokens = self.backbone.tokenizer()
            self.tokenized[text] = _truncate(tokens([text])[0], tokens)
        return self.tokenized[text]

    def hidden_states(
        self, texts: Sequence[str], layers: Sequence[int], adapter: Adapter | None
    ) -> dict[int, Any]:
        """By layer the states of all texts, (texts, pieces, dim), filled up on the right."""
        rows = [self.tokenize(text).token_ids for text in texts]
        device = self.blocks.device
        with self.blocks.truncate_to(layers) as forward, use_adapter(self.blocks, adapter):
            return forward(pad_rows(rows, device), build_attention_mask(rows, device))


def load_differentiable_encoder(body: PretrainedBackbone, run: Run) -> DifferentiableEncoder:
    """The encoder of a metric, loaded for oneself."""
    return DifferentiableEncoder(
        body, load_trainable_blocks(body.checkpoint(), body.trust_remote_code, run.device)
    )


def _truncate(cut: TokenizedText, tokens: ModelTokenizer) -> TokenizedText:
    most, closing = tokens.max_tokens, len(tokens.closing_tokens)
    if len(cut.token_ids) <= most:
        return cut
    keep = np.r_[0 : most - closing, len(cut.token_ids) - closing : len(cut.token_ids)]
    return TokenizedText(
        cut.token_ids[keep], cut.spans[keep], tokens.special_token_positions(most), cut.flags
    )


def pad_rows(rows: Sequence[Array], device: Any, filler: int = 0) -> Any:
    """The rows as a tensor, filled up on the right."""
    import torch

    table = np.full((len(rows), max(map(len, rows))), filler, dtype=np.int64)
    for place, row in zip(table, rows, strict=True):
        place[: len(row)] = row
    return torch.from_numpy(table).to(device)


def build_attention_mask(rows: Sequence[Array], device: Any) -> Any:
    """1 where the table of these rows has what they hold, 0 where it was filled up."""
    return pad_rows([np.ones(len(row), dtype=np.int64) for row in rows], device)


TextPair = tuple[str, str]  # a candidate and its reference
