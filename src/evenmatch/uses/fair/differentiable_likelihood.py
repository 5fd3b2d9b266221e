"""Log-probabilities under a language model, with a gradient through them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from evenmatch.scoring.likelihood import Likelihood
from evenmatch.scoring.likelihood_asking import Question
from evenmatch.types import Run
from evenmatch.uses.fair.lesson import Texts
from evenmatch.uses.fair.padded import padded, there
from evenmatch.vectors.adapter import Adapter, inserted
from evenmatch.vectors.adapter_headed import HeadedBlocks

_UNCOUNTED = -100  # what a model's own shifting of labels takes for nothing


@dataclass(frozen=True, eq=False)
class DifferentiableLikelihood:
    """A likelihood metric over a model of one's own, and the questions it was asked so far."""

    metric: Likelihood
    headed: HeadedBlocks
    label: str
    asked: dict[Texts, Question] = field(default_factory=dict)

    @property
    def dim(self) -> int:
        """How long a vector is."""
        return int(self.headed.module.config.hidden_size)

    @property
    def blocks(self) -> int:
        """How many blocks an adapter stands behind, encoder and decoder together."""
        return len(self.headed.stack)

    def scores(self, pairs: Sequence[Texts], adapter: Adapter | None) -> Any:
        """The scores of the pairs as one tensor, by the model with the adapter or without."""
        import torch

        wanted = [list(self.metric.directions(c, r).values()) for c, r in pairs]
        every = list(dict.fromkeys(texts for own in wanted for texts in own))
        new = [texts for texts in every if texts not in self.asked]
        self.asked.update(zip(new, self.metric.asking()(new), strict=True))
        with inserted(self.headed, adapter):
            answers = self._answers([self.asked[texts] for texts in every])
        at = torch.tensor([[every.index(texts) for texts in own] for own in wanted])
        return answers[at].mean(1)

    def _answers(self, questions: Sequence[Question]) -> Any:
        """The mean log-probability of the pieces of each question that count."""
        import torch

        model = self.headed.module
        logits, first = self._logits(questions)  # row t predicts piece t + first
        pieces = padded([q.target[first:] for q in questions], model.device)
        counted = padded([q.counted[first:] for q in questions], model.device).bool()
        logs = torch.log_softmax(logits[counted], -1).gather(1, pieces[counted][:, None])[:, 0]
        rows, _ = counted.nonzero(as_tuple=True)
        total = torch.zeros(len(questions), device=model.device).index_add(0, rows, logs)
        many = counted.sum(1)
        blind = -math.log(model.config.vocab_size)
        return torch.where(many > 0, total / many.clamp(min=1), blind)

    def _logits(self, questions: Sequence[Question]) -> tuple[Any, int]:
        model = self.headed.module
        targets = [question.target for question in questions]
        if not model.config.is_encoder_decoder:
            seen = there(targets, model.device)
            read = padded(targets, model.device)
            return model(input_ids=read, attention_mask=seen, use_cache=False).logits[:, :-1], 1
        sources = [question.source for question in questions]
        answer = model(
            input_ids=padded(sources, model.device, model.config.pad_token_id or 0),
            attention_mask=there(sources, model.device),
            labels=padded(targets, model.device, _UNCOUNTED),
            use_cache=False,
        )
        return answer.logits, 0


def through_likelihood(metric: Likelihood, run: Run) -> DifferentiableLikelihood:
    """The metric ready to be trained through."""
    headed = metric.headed(run.device)
    return DifferentiableLikelihood(metric, headed.fresh(), headed.checkpoint.label)
