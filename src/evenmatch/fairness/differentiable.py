"""Differentiable forms of metrics, to train an adapter through.

There is one scorer for each kind of metric: alignment, fitted bi-encoder, regression
(cross-encoder) and likelihood. Each has a private copy of the model, so that an adapter can be
inserted into its blocks. The alignment is a constant for the gradient, as in `scoring.reducers`;
the plan of F_CONT follows its masses.
Begin with `Differentiable` and `make_differentiable`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from evenmatch.alignment.assignment import Greedy, Lsa
from evenmatch.alignment.differentiable import follow_masses
from evenmatch.alignment.transport import Emd
from evenmatch.errors import InputError
from evenmatch.metrics.fitted import BiEncoderHead, FittedMetric, pair_features_torch
from evenmatch.metrics.likelihood import Likelihood, LikelihoodInput
from evenmatch.metrics.regression import Regression
from evenmatch.models.adapters import Adapter, apply_bottleneck, find_last_norm, use_adapter
from evenmatch.models.backbone import PretrainedBackbone, load_trainable_blocks
from evenmatch.models.heads import HeadedBlocks
from evenmatch.models.tokenizer import HiddenStates
from evenmatch.protocols import Metric
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.reducers import Prf, harmonic_mean_torch, precision_recall
from evenmatch.similarity.vectors import Cosine
from evenmatch.training.loop import similar_lengths
from evenmatch.types import Alignment, Array, Embedded, Problem, Run
from evenmatch.vectors.transformer import Transformer
from evenmatch.vectors.weighting import Norm, lacks_idf_table

TextPair = tuple[str, str]  # a candidate and its reference
_IGNORE_INDEX = -100  # the label that transformers ignores
_TEXTS = 64  # that are encoded together


@dataclass(frozen=True, eq=False)
class Differentiable:
    """A metric with a private copy of its model, into whose blocks an adapter can be inserted.

    `dim` is the hidden size of the model, an adapter is inserted into its blocks from `first` up to
    `blocks`, without it, and `label` identifies the model's content. `scores` returns the scores of
    pairs as one tensor, with an adapter or without. If `first` is the last block, `prepare` must be
    called with all texts before.
    """

    dim: int
    blocks: int
    label: str
    scores: Callable[[Sequence[TextPair], Adapter | None], Any]
    first: int = 0
    prepare: Callable[[Iterable[str]], None] = lambda texts: None


def make_differentiable(metric: Metric, run: Run, last_block: bool = False) -> Differentiable:
    """Return the differentiable form of a metric; raise `InputError` where there is none.

    With `last_block`, an adapter is inserted into the last block only. Texts then pass through the
    model once, and a step of training costs a tenth.
    """
    if isinstance(metric, AlignMetric):
        encoder = _check_alignment(metric)
        layer = encoder.layer_index()
        texts = DifferentiableEncoder(encoder.backbone, run, layer if last_block else 0)
        return texts.make_differentiable(layer, AlignmentScorer(metric, encoder, texts, layer))
    if last_block:
        raise InputError(
            "only adapters for alignment metrics can be for the last block alone; "
            "leave out --last-block"
        )
    if not isinstance(metric, FittedMetric | Regression | Likelihood):
        raise InputError(
            "only metrics with a transformer are differentiable: alignment metrics such as "
            "bertscore, f_disc and f_cont, fitted, regression and likelihood metrics"
        )
    if metric.adapter:
        raise InputError("a metric to train an adapter for already has one; leave out adapter=")
    if isinstance(metric, FittedMetric):
        texts, head = DifferentiableEncoder(metric.encoder().backbone, run), metric.head()
        return texts.make_differentiable(max(head.layers), BiEncoderScorer(texts, head))
    headed = metric.model_with_head(run.device)
    blocks = headed.copy_blocks()
    return Differentiable(
        int(blocks.module.config.hidden_size),
        len(blocks.stack),  # those of encoder and decoder together
        headed.checkpoint.label,
        RegressionScorer(metric, blocks)
        if isinstance(metric, Regression)
        else LikelihoodScorer(metric, blocks),
    )


def adapted_metric(metric: Metric, adapter: str) -> Metric:
    """Return the metric with an adapter, given by name or path."""
    if isinstance(metric, FittedMetric | Regression | Likelihood):
        return dataclasses.replace(metric, adapter=adapter)
    if isinstance(metric, AlignMetric) and isinstance(metric.vectors, Transformer):
        encoder = dataclasses.replace(metric.vectors, adapter=adapter)
        return dataclasses.replace(metric, vectors=encoder)
    raise InputError("only a metric with a transformer takes an adapter, such as bertscore")


@dataclass(frozen=True, eq=False)
class AlignmentScorer:
    """Differentiable scores of an alignment metric; the units of each text are computed once."""

    metric: AlignMetric
    encoder: Transformer
    text_encoder: DifferentiableEncoder
    layer: int
    # The units of a text with token positions in place of vectors, and the ids of these tokens.
    prepared: dict[str, tuple[Embedded, Array]] = field(default_factory=dict)

    def __call__(self, pairs: Sequence[TextPair], adapter: Adapter | None) -> Any:
        import torch

        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        states = self.text_encoder.token_states(texts, self.layer, adapter)
        sides = {text: self._embed(text, each) for text, each in zip(texts, states, strict=True)}
        arrays = {
            text: dataclasses.replace(side, vectors=side.vectors.detach().cpu().numpy())
            for text, side in sides.items()
        }
        problems = [
            Problem(self.metric.similarity(arrays[c], arrays[r]), sides[c].mass, sides[r].mass)
            for c, r in pairs
        ]
        both = [(sides[c], sides[r]) for c, r in pairs]
        solved = self.metric.alignment(problems)
        if isinstance(self.metric.similarity, Cosine) and isinstance(
            self.metric.alignment, Greedy | Lsa
        ):
            return _sparse_f_scores(solved, both)
        if isinstance(self.metric.alignment, Emd) and isinstance(self.encoder.mass, Norm):
            solved = [
                follow_masses(a, x.vectors.norm(dim=-1), y.vectors.norm(dim=-1))
                for a, (x, y) in zip(solved, both, strict=True)
            ]
        similarities = [self.metric.similarity(x, y) for x, y in both]
        every = zip(similarities, solved, both, strict=True)
        return torch.stack([_f_score(s, a, x, y) for s, a, (x, y) in every])

    def _embed(self, text: str, states: Any) -> Embedded:
        if text not in self.prepared:
            tokens = self.text_encoder.tokenize(text)
            positions = {self.layer: np.arange(len(tokens.token_ids))[:, None]}
            placed = dataclasses.replace(tokens, layers=positions)
            found = self.encoder.embed(self.metric.units(text), placed, self.layer)
            self.prepared[text] = found, tokens.token_ids[np.asarray(found.vectors)[:, 0]]
        units, token_ids = self.prepared[text]
        vectors = states[np.asarray(units.vectors)[:, 0]]
        mass = self.encoder.mass(token_ids, vectors.detach().cpu().numpy())
        return Embedded(units.units, vectors, _tensor(units.weights), mass)


def _check_alignment(metric: AlignMetric) -> Transformer:
    """Return the encoder of an alignment metric; raise if the metric is not differentiable."""
    encoder = metric.vectors
    if not isinstance(encoder, Transformer):
        raise InputError(
            "an alignment metric without a transformer is not differentiable; "
            "use bertscore, f_disc or f_cont"
        )
    if not metric.units("a").by_model or not isinstance(metric.scoring, Prf) or encoder.pad_to:
        raise InputError(
            "a metric to train an adapter for needs units=pieces, scoring=prf and no padding; "
            "train with bertscore, f_disc or f_cont and use the adapter in any metric of that model"
        )
    if lacks_idf_table(encoder) or encoder.adapter:
        raise InputError(
            "a metric to train an adapter for may have neither an adapter nor idf weights counted "
            "from the call's references; leave out adapter= and idf="
        )
    return encoder


def _sparse_f_scores(solved: Sequence[Alignment], both: Sequence[tuple[Embedded, Embedded]]) -> Any:
    """F1 of many pairs at once: cosines of the matched units only, the rest has no gradient."""
    import torch
    from torch.nn.functional import normalize

    texts = list({id(side): side for pair in both for side in pair}.values())
    starts = np.cumsum([0, *(len(text.vectors) for text in texts)])
    first = {id(text): start for text, start in zip(texts, starts, strict=False)}
    vectors = normalize(torch.cat([text.vectors for text in texts]), dim=-1)
    device = vectors.device
    found: list[tuple[Array, ...]] = []
    for k, (plan, (x, y)) in enumerate(zip(solved, both, strict=True)):
        units, others = x.weights.cpu().numpy(), y.weights.cpu().numpy()
        gains = (
            plan.rows * units[:, None] / (units.sum() or 1.0),
            plan.cols * others / (others.sum() or 1.0),
        )
        for side, share in enumerate(gains):
            i, j = share.nonzero()
            place = np.full(len(i), 2 * k + side)
            found.append((first[id(x)] + i, first[id(y)] + j, share[i, j], place))
    rows, columns, weights, places = (
        torch.as_tensor(np.concatenate(each), device=device) for each in zip(*found, strict=True)
    )
    cosines = (vectors[rows] * vectors[columns]).sum(-1) * weights.float()
    sums = torch.zeros(2 * len(both), device=device).index_add(0, places, cosines)
    return harmonic_mean_torch(sums[::2], sums[1::2])


def _f_score(similarity: Any, alignment: Alignment, x: Embedded, y: Embedded) -> Any:
    constant = Alignment(_tensor(alignment.rows), _tensor(alignment.cols))
    if not len(x.weights) or not len(y.weights):
        return similarity.sum() * 0.0
    precision, recall = precision_recall(similarity, constant, x.weights, y.weights)
    return harmonic_mean_torch(precision, recall)


def _tensor(array: Array) -> Any:
    """Return an array, or a tensor that keeps its gradient, in single precision."""
    import torch

    if isinstance(array, torch.Tensor):
        return array.float()
    return torch.as_tensor(np.asarray(array, dtype=np.float32))


@dataclass(frozen=True, eq=False)
class BiEncoderScorer:
    """Differentiable scores of a fitted metric; its head is not trained."""

    text_encoder: DifferentiableEncoder
    head: BiEncoderHead

    def __call__(self, pairs: Sequence[TextPair], adapter: Adapter | None) -> Any:
        import torch

        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        states = self.text_encoder.hidden_states(texts, self.head.layers, adapter)
        tokenized = map(self.text_encoder.tokenize, texts)
        inner = [
            ~np.isin(np.arange(len(tokens.token_ids)), list(tokens.special_tokens))
            for tokens in tokenized
        ]
        mask = pad_rows(inner, self.text_encoder.blocks.device).bool()
        x, y = (
            ({layer: hidden[at] for layer, hidden in states.items()}, mask[at])
            for at in ([texts.index(text) for text in side] for side in zip(*pairs, strict=True))
        )
        features = pair_features_torch(*x, *y, self.head.layers)
        weights = torch.as_tensor(self.head.weights, dtype=features.dtype, device=features.device)
        return features @ weights + self.head.bias


@dataclass(frozen=True, eq=False)
class RegressionScorer:
    """Differentiable scores of a regression metric."""

    metric: Regression
    headed: HeadedBlocks

    def __call__(self, pairs: Sequence[TextPair], adapter: Adapter | None) -> Any:
        texts = [self.metric.ordered_texts(c, r) for c, r in pairs]
        inputs = [each.inputs for each in self.metric.make_tokenizer()(texts)]
        model = self.headed.module
        fillers = {"input_ids": model.config.pad_token_id or 0}
        padded = {
            name: pad_rows([each[name] for each in inputs], model.device, fillers.get(name, 0))
            for name in inputs[0]
        }
        mask = build_attention_mask([each["input_ids"] for each in inputs], model.device)
        with use_adapter(self.headed.module, self.headed.stack, adapter):
            return model(**padded, attention_mask=mask).logits.float().reshape(-1)


@dataclass(frozen=True, eq=False)
class LikelihoodScorer:
    """Differentiable scores of a likelihood metric."""

    metric: Likelihood
    headed: HeadedBlocks

    def __call__(self, pairs: Sequence[TextPair], adapter: Adapter | None) -> Any:
        import torch

        directions = [list(self.metric.directions(c, r).values()) for c, r in pairs]
        distinct = list(dict.fromkeys(texts for both in directions for texts in both))
        inputs = self.metric.make_tokenizer()(distinct)
        with use_adapter(self.headed.module, self.headed.stack, adapter):
            means = self._mean_log_probabilities(inputs)
        at = torch.tensor([[distinct.index(texts) for texts in both] for both in directions])
        return means[at].mean(1)

    def _mean_log_probabilities(self, inputs: Sequence[LikelihoodInput]) -> Any:
        """Mean log-probability of the scored target tokens of each input.

        An input without scored tokens gets the log-probability of a uniform distribution.
        """
        import torch

        model = self.headed.module
        logits, first = self._logits(inputs)  # row t predicts token t + first
        targets = pad_rows([each.target[first:] for each in inputs], model.device)
        scored = pad_rows([each.scored_mask[first:] for each in inputs], model.device).bool()
        logs = torch.log_softmax(logits[scored], -1).gather(1, targets[scored][:, None])[:, 0]
        rows, _ = scored.nonzero(as_tuple=True)
        total = torch.zeros(len(inputs), device=model.device).index_add(0, rows, logs)
        counts = scored.sum(1)
        uniform = -math.log(model.config.vocab_size)
        return torch.where(counts > 0, total / counts.clamp(min=1), uniform)

    def _logits(self, inputs: Sequence[LikelihoodInput]) -> tuple[Any, int]:
        model = self.headed.module
        targets = [each.target for each in inputs]
        if not model.config.is_encoder_decoder:
            mask = build_attention_mask(targets, model.device)
            ids = pad_rows(targets, model.device)
            return model(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, :-1], 1
        sources = [each.source for each in inputs]
        output = model(
            input_ids=pad_rows(sources, model.device, model.config.pad_token_id or 0),
            attention_mask=build_attention_mask(sources, model.device),
            labels=pad_rows(targets, model.device, _IGNORE_INDEX),
            use_cache=False,
        )
        return output.logits, 0


class DifferentiableEncoder:
    """A private copy of an encoder that gives hidden states with gradients.

    An adapter can be inserted into its blocks; with `last`, into block number `last` alone, and
    each text then passes through the model once. Each text is tokenized once.
    """

    def __init__(self, backbone: PretrainedBackbone, run: Run, last: int = 0) -> None:
        self.checkpoint, self.tokenizer = backbone.checkpoint(), backbone.open().tokenizer
        self.blocks = load_trainable_blocks(self.checkpoint, backbone.trust_remote_code, run.device)
        self.tokenized: dict[str, HiddenStates] = {}
        self.last = last
        self.norm: Any = None
        self.before_norm: dict[str, Any] = {}  # what the last norm is applied to, by text
        if last:
            self.norm = find_last_norm(self.blocks.module, self.blocks.stack, last - 1)
            if "norm" not in type(self.norm).__name__.lower():
                raise InputError(
                    "an adapter for the last block alone needs a model whose blocks end in a layer "
                    "norm, such as BERT; leave out --last-block"
                )

    def make_differentiable(self, blocks: int, scores: Callable[..., Any]) -> Differentiable:
        """Return the metric with these scores, for adapters in the first `blocks` blocks."""
        dim = int(self.blocks.module.config.hidden_size)
        label = self.checkpoint.label
        if not self.last:
            return Differentiable(dim, blocks, label, scores)
        return Differentiable(dim, blocks, label, scores, self.last - 1, self.encode_once)

    def tokenize(self, text: str) -> HiddenStates:
        """Tokenize a text, truncated to the length limit of the model."""
        if text not in self.tokenized:
            tokens = self.tokenizer([text])[0]
            fits = len(tokens.token_ids) <= self.tokenizer.max_tokens
            self.tokenized[text] = tokens if fits else self.tokenizer.truncate(tokens)
        return self.tokenized[text]

    def token_states(
        self, texts: Sequence[str], layer: int, adapter: Adapter | None
    ) -> Sequence[Any]:
        """Hidden states of each text at a layer: (tokens, dim)."""
        import torch

        lengths = [len(self.tokenize(text).token_ids) for text in texts]
        if not self.norm:
            states = self.hidden_states(texts, [layer], adapter)[layer]
            return [states[row, :length] for row, length in enumerate(lengths)]
        below = torch.cat([self.before_norm[text] for text in texts])
        states = self.norm.forward(below)
        if adapter:
            states = self.norm.forward(below + apply_bottleneck(adapter, layer - 1, states))
        return cast(Sequence[Any], states.split(lengths))

    def encode_once(self, texts: Iterable[str]) -> None:
        """Compute what the last norm is applied to; the batches depend on the texts alone."""
        import torch

        ordered = sorted({*texts} - self.before_norm.keys())
        rows = [self.tokenize(text).token_ids for text in ordered]
        found: list[Any] = []
        hook = self.norm.register_forward_pre_hook(lambda _, args: found.append(args[0]))
        with torch.no_grad(), self.blocks.truncate_to([self.last]) as forward:
            for group in similar_lengths(list(map(len, rows))):
                for few in (group[at : at + _TEXTS] for at in range(0, len(group), _TEXTS)):
                    some = [rows[i] for i in few]
                    forward(
                        pad_rows(some, self.blocks.device),
                        build_attention_mask(some, self.blocks.device),
                    )
                    states = found.pop()
                    self.before_norm |= {
                        ordered[i]: states[n, : len(rows[i])].clone() for n, i in enumerate(few)
                    }
        hook.remove()

    def hidden_states(
        self, texts: Sequence[str], layers: Sequence[int], adapter: Adapter | None
    ) -> dict[int, Any]:
        """Hidden states of all texts by layer, (texts, tokens, dim), padded on the right.

        Texts of similar length are encoded together, so that few positions are padding.
        """
        import torch
        from torch.nn.functional import pad

        rows = [self.tokenize(text).token_ids for text in texts]
        groups = similar_lengths([len(row) for row in rows])
        order, longest = [i for group in groups for i in group], max(map(len, rows))
        device = self.blocks.device
        adapted = use_adapter(self.blocks.module, self.blocks.stack, adapter)
        found = []
        with self.blocks.truncate_to(layers) as forward, adapted:
            for group in groups:
                some = [rows[i] for i in group]
                found.append(forward(pad_rows(some, device), build_attention_mask(some, device)))
        back = torch.as_tensor(np.argsort(order), device=device)
        return {
            layer: torch.cat(
                [pad(each[layer], (0, 0, 0, longest - each[layer].shape[1])) for each in found]
            )[back]
            for layer in layers
        }


def pad_rows(rows: Sequence[Array], device: Any, filler: int = 0) -> Any:
    """Stack rows of different lengths into a tensor, padded on the right."""
    import torch

    tensors = [torch.as_tensor(row, dtype=torch.long) for row in rows]
    padded = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=filler)
    return padded.to(device)


def build_attention_mask(rows: Sequence[Array], device: Any) -> Any:
    """Attention mask of padded rows: 1 at tokens, 0 at padding."""
    return pad_rows([np.ones(len(row)) for row in rows], device)
