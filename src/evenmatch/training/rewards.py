"""Rewards for reinforcement learning: metrics scaled to 0..1 and combined by operators.

`reward` wraps a metric, `length_term` and `repetition_term` reward the form of a text, and
`+`, `-`, `*`, `/` and `clip` combine rewards. Texts that cannot be scored get 0 and are listed;
they never raise an error, so that nothing a policy writes can stop its training.

A reward is an expression tree. Its leaves score texts: `MetricTerm`, `LengthTerm` and
`RepetitionTerm`; all other terms compute with the values of the leaves. The last functions extract
texts from what trainers pass: chat messages, or prompt and response.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from evenmatch.errors import EvenmatchError, InputError
from evenmatch.protocols import Metric
from evenmatch.registry.parts import check_arguments
from evenmatch.scoring.inputs import check_pairs, make_run, warn_of_misreadings
from evenmatch.scoring.metric import TRIAL_PAIRS, as_metric, score_metrics
from evenmatch.types import Pair, Run, Score
from evenmatch.units.text import Words
from evenmatch.version import __version__

# Such texts get no reward. In particular a policy gains nothing by matching an empty reference.
_ODD_FLAGS = frozenset({"empty_candidate", "empty_reference", "unknown_only"})

# Special tokens in decoded text, such as <|im_end|>, </s>, <eos> and [PAD]; DeepSeek's have
# fullwidth bars.
_SPECIAL_TOKENS = re.compile(
    r"<[|｜][^<>|｜]{1,40}[|｜]>|</?s>|<(?:bos|eos|pad|unk|end_of_turn|start_of_turn)>"
    r"|\[(?:PAD|CLS|SEP|BOS|EOS)\]"
)

_EXPECTED = "strings or lists of messages with 'role' and 'content'"


def reward(metric: str | Metric = "f_disc", **run: Any) -> Reward:
    """Turn a metric into a reward between 0 and 1, higher for better, that never raises on a text.

    The default is one-to-one, as for `align`: a text gains nothing by repeating a good word.

    Scores between 0 and 1 stay as they are; scores in another finite range are scaled linearly,
    and negative ones become 0. Log-probabilities (metrics whose `log_probability` is True) become
    probabilities. Scores with a lower bound only, x above it, become x / (1 + x); all others, such
    as ratings, go through the logistic function. Where lower is better, the reward is 1 minus that.
    `run` settings (device, threads, batch_tokens, cache) are those of `score`.

    >>> overlap = reward("align(vectors=hashed, alignment=lsa)")
    >>> (overlap - 0.5).clip(0, 1)([Pair("a b", ("a b",)), Pair("", ("a b",))])
    [0.5, 0.0]
    """
    return Reward(MetricTerm(as_metric(metric), make_run(**run)))


@check_arguments
def length_term(low: float = 0.8, high: float = 1.25) -> Reward:
    """Return a reward for length: 1 from `low` to `high` times the reference's words, less outside.

    Half the words at `low`, or twice the words at `high`, give 0.5. Of several references, the
    one with the highest reward counts.

    >>> length_term()([Pair("a b", ("a b",)), Pair("a b a b a b a b a b", ("a b c d",))])
    [1.0, 0.5]
    """
    return Reward(LengthTerm(float(low), float(high)))


def repetition_term(size: int = 2) -> Reward:
    """Return a reward for not repeating: the share of n-grams of `size` words that are new.

    >>> repetition_term()([Pair("the cat the cat the", ("a cat",))])
    [0.5]
    """
    return Reward(RepetitionTerm(size))


@dataclass(frozen=True)
class Reward:
    """A function from pairs to rewards; `+`, `-`, `*`, `/` and `clip` make new rewards."""

    term: RewardTerm

    __array_ufunc__ = None  # numpy numbers leave the operators to the reward

    def __call__(self, pairs: Sequence[Pair]) -> list[float]:
        """Return one finite number per pair, in order."""
        return list(self.evaluate(pairs).values)

    def evaluate(self, pairs: Sequence[Pair]) -> RewardValues:
        """Return the rewards, and the rows that could not be scored: no words, or none known.

        In such a row every metric counts as 0, so nothing a policy writes stops the training.
        """
        check_pairs(pairs)
        warn_of_misreadings(self._metrics, pairs)
        leaf_values = _score_leaf_terms(leaf_terms(self.term), pairs)
        rows = range(len(pairs))
        odd = [row for row in rows if any(each[row] is None for each in leaf_values.values())]
        return RewardValues(
            tuple(term_value(self.term, leaf_values, row) for row in rows), tuple(odd)
        )

    def __str__(self) -> str:
        return term_expression(self.term)

    @property
    def _metrics(self) -> list[Metric]:
        return [leaf.metric for leaf in leaf_terms(self.term) if isinstance(leaf, MetricTerm)]

    @property
    def signature(self) -> str:
        """The reward's expression, then the versions and hashes that its metrics depend on."""
        facts = [fact for metric in self._metrics for fact in metric.signature.split(" · ")[1:]]
        every = dict.fromkeys([f"evenmatch {__version__}", *facts])
        return " · ".join([term_expression(self.term), *every])

    def clip(self, low: float = 0.0, high: float = 1.0) -> Reward:
        """Return the reward limited to the range from `low` to `high`."""
        bounds = (float(low), float(high))
        if not low <= high:
            raise InputError(f"cannot clip to {bounds[0]}..{bounds[1]}; give the lower bound first")
        return Reward(CombinedTerm("clip", (self.term, *bounds)))

    def __add__(self, other: Reward | float) -> Reward:
        return _combine("+", self, other)

    def __radd__(self, other: float) -> Reward:
        return _combine("+", other, self)

    def __sub__(self, other: Reward | float) -> Reward:
        return _combine("-", self, other)

    def __rsub__(self, other: float) -> Reward:
        return _combine("-", other, self)

    def __mul__(self, other: Reward | float) -> Reward:
        return _combine("*", self, other)

    def __rmul__(self, other: float) -> Reward:
        return _combine("*", other, self)

    def __neg__(self) -> Reward:
        return _combine("*", -1.0, self)

    def __truediv__(self, other: float) -> Reward:
        if not isinstance(other, (int, float)) or not other:
            raise InputError(f"a reward can be divided by a number other than 0, got {other!r}")
        return _combine("*", self, 1 / other)


@dataclass(frozen=True, slots=True)
class RewardValues:
    """Rewards in input order, and in `odd` the rows whose texts could not be scored."""

    values: tuple[float, ...]
    odd: tuple[int, ...] = ()


def _score_leaf_terms(
    leaves: Sequence[LeafTerm], pairs: Sequence[Pair]
) -> dict[LeafTerm, list[float | None]]:
    """Return the rewards of each leaf, None in rows that it cannot score.

    Metrics with equal run settings share one scoring pass.
    """
    valid = [_replace_surrogates(pair) for pair in pairs]
    metrics = [leaf for leaf in leaves if isinstance(leaf, MetricTerm)]
    found: dict[LeafTerm, list[float | None]] = {
        leaf: list(map(leaf.rate, valid)) for leaf in leaves if not isinstance(leaf, MetricTerm)
    }
    for run in dict.fromkeys(leaf.run for leaf in metrics):
        group = [leaf for leaf in metrics if leaf.run == run]
        rows = _score_or_none([leaf.metric for leaf in group], valid, run)
        for leaf, scores in zip(group, rows, strict=True):
            bounds, higher = leaf.metric.bounds, leaf.metric.higher_is_better
            declared = is_log_probability(leaf.metric)
            found[leaf] = [
                None
                if s is None or s.flags & _ODD_FLAGS or not math.isfinite(s.value)
                else as_reward(s.value, bounds, higher, log_probability=declared)
                for s in scores
            ]
    return found


def is_log_probability(metric: Metric) -> bool:
    """Whether the metric declares its scores log-probabilities, by an attribute of that name."""
    return getattr(metric, "log_probability", False) is True


def as_reward(
    value: float,
    bounds: tuple[float, float],
    higher_is_better: bool,
    *,
    log_probability: bool = False,
) -> float:
    """Scale a score to the range from 0 to 1, higher for better.

    >>> as_reward(0.0, (-math.inf, 11.2), True), as_reward(1.0, (0.0, math.inf), False)
    (0.5, 0.5)
    >>> as_reward(0.0, (-math.inf, 0.0), True, log_probability=True)
    1.0
    """
    low, high = bounds
    if log_probability:
        share = math.exp(min(value, 0.0))
    elif math.isfinite(low) and math.isfinite(high):
        start = max(low, 0.0) if high > 0 else low  # negative cosines count as 0
        share = (value - start) / (high - start)
    elif math.isfinite(low):
        above = max(value - low, 0.0)
        share = above / (1.0 + above)
    else:
        share = 0.5 * (1.0 + math.tanh(value / 2.0))  # the logistic function cannot overflow
    share = min(max(share, 0.0), 1.0)
    return share if higher_is_better else 1.0 - share


def _combine(operator: str, left: Reward | float, right: Reward | float) -> Reward:
    return Reward(CombinedTerm(operator, (_as_term(left), _as_term(right))))


def _as_term(side: Any) -> RewardTerm:
    if isinstance(side, Reward):
        return side.term
    if isinstance(side, (int, float)) and not isinstance(side, bool) and math.isfinite(side):
        return float(side)
    raise InputError(f"a reward can be combined with rewards and finite numbers, got {side!r}")


def _replace_surrogates(pair: Pair) -> Pair:
    """Replace lone surrogates, which no tokenizer accepts, by question marks."""
    texts = [t.encode("utf-8", "replace").decode() for t in (pair.candidate, *pair.references)]
    return Pair(texts[0], tuple(texts[1:]), pair.source)


def _score_or_none(
    metrics: Sequence[Metric], pairs: Sequence[Pair], run: Run
) -> list[Sequence[Score | None]]:
    """Score the pairs with each metric; None in the rows that a metric refuses."""
    try:
        return [scores.segments for scores in score_metrics(metrics, pairs, run)]
    except EvenmatchError:
        # A missing model fails on every text; that error must reach the user.
        score_metrics(metrics, TRIAL_PAIRS, run)
    return [[_score_single(metric, pair, run) for pair in pairs] for metric in metrics]


def _score_single(metric: Metric, pair: Pair, run: Run) -> Score | None:
    try:
        return score_metrics([metric], [pair], run)[0].segments[0]
    except EvenmatchError:
        return None


OPERATORS: Mapping[str, Callable[..., float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "clip": lambda value, low, high: min(max(value, low), high),
}


@dataclass(frozen=True)
class MetricTerm:
    """A metric and its run settings."""

    metric: Metric
    run: Run = Run()


@dataclass(frozen=True)
class LengthTerm:
    """How close a text's length in words is to that of the reference closest in length."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 < self.low <= 1 <= self.high:
            raise InputError(
                f"length_term needs 0 < low <= 1 <= high, got low={self.low} and high={self.high}"
            )

    def rate(self, pair: Pair) -> float | None:
        """Return a value between 0 and 1, or None if either side has no words."""
        words = len(lowercase_words(pair.candidate))
        wanted = [n for n in (len(lowercase_words(r)) for r in pair.references) if n]
        if not (words and wanted):
            return None
        return max(min(1.0, words / (self.low * n), self.high * n / words) for n in wanted)


@dataclass(frozen=True)
class RepetitionTerm:
    """How little a text repeats itself: the share of its word n-grams that are new."""

    size: int

    def __post_init__(self) -> None:
        if type(self.size) is not int or self.size < 1:
            raise InputError(f"repetition_term needs a size of at least 1 word, got {self.size!r}")

    def rate(self, pair: Pair) -> float | None:
        """Return a value between 0 and 1, or None for a text without words."""
        words = lowercase_words(pair.candidate)
        return 1 - repeated_share(words, self.size) if words else None


@dataclass(frozen=True)
class CombinedTerm:
    """Terms combined by an operator; 'clip' takes a term, its lower and its upper bound."""

    operator: str
    terms: tuple[RewardTerm, ...]


# The terms that score texts, and all terms; a number is a constant.
LeafTerm: TypeAlias = MetricTerm | LengthTerm | RepetitionTerm
RewardTerm: TypeAlias = LeafTerm | CombinedTerm | float


def term_value(
    term: RewardTerm, leaf_values: Mapping[LeafTerm, Sequence[float | None]], row: int
) -> float:
    """Return the value of an expression in a row; a leaf without a value there counts as 0."""
    if isinstance(term, CombinedTerm):
        values = (term_value(each, leaf_values, row) for each in term.terms)
        return float(OPERATORS[term.operator](*values))
    return term if isinstance(term, float) else leaf_values[term][row] or 0.0


def leaf_terms(term: RewardTerm) -> list[LeafTerm]:
    """Return the distinct leaves of an expression."""
    if isinstance(term, CombinedTerm):
        return list(dict.fromkeys(leaf for each in term.terms for leaf in leaf_terms(each)))
    return [] if isinstance(term, float) else [term]


def term_expression(term: RewardTerm) -> str:
    """Return an expression as it is written in signatures."""
    match term:
        case MetricTerm(metric=metric):
            return f"reward({metric.signature.split(' · ')[0]})"
        case LengthTerm(low=low, high=high):
            return f"length_term(low={low!r}, high={high!r})"
        case RepetitionTerm(size=size):
            return f"repetition_term(size={size})"
        case CombinedTerm(operator="clip", terms=terms):
            return f"clip({', '.join(map(term_expression, terms))})"
        case CombinedTerm(operator=name, terms=terms):
            return f"({f' {name} '.join(map(term_expression, terms))})"
    return repr(term)


def repeated_share(words: Sequence[str], size: int = 2) -> float:
    """Return the share of n-grams of `size` words that occurred earlier in the text, else 0.

    >>> repeated_share("the cat and the cat".split())
    0.25
    """
    ngrams = [tuple(words[i : i + size]) for i in range(len(words) - size + 1)]
    return 1 - len(set(ngrams)) / len(ngrams) if ngrams else 0.0


def lowercase_words(text: str) -> tuple[str, ...]:
    """Split a text into lower-case words; punctuation marks are words too."""
    return tuple(word.lower() for word in Words()(text).words)


@check_arguments
def extract_response(query: str, prompt: str) -> str:
    """Return a query without its leading prompt and without special tokens.

    Special tokens may precede the prompt.

    >>> extract_response("<s>Who? The cat.</s>", "Who?")
    'The cat.'
    """
    before, found, rest = query.partition(prompt) if prompt else ("", "", "")
    begins = found and not _SPECIAL_TOKENS.sub("", before).strip()
    return _SPECIAL_TOKENS.sub("", rest if begins else query).strip()


def completion_text(completion: Any) -> str:
    """Return a completion as text: the string itself, or the assistant's last message.

    Of a message in parts, the text parts are returned.

    >>> completion_text([{"role": "assistant", "content": "The cat."}])
    'The cat.'
    """
    if isinstance(completion, str):
        return completion
    if not isinstance(completion, Sequence) or isinstance(completion, bytes):
        raise InputError(f"completions must be {_EXPECTED}, got {type(completion).__name__}")
    for message in reversed(completion):
        # A message that only calls a tool has no content.
        if not isinstance(message, Mapping) or not {"content", "tool_calls"} & message.keys():
            raise InputError(f"completions must be {_EXPECTED}, got {message!r} among messages")
        if message.get("role", "assistant") == "assistant":
            content = message.get("content")
            if isinstance(content, str) or content is None:
                return content or ""
            texts = (part.get("text", "") for part in content if isinstance(part, Mapping))
            return "".join(texts)
    return ""


def as_references(given: Any) -> tuple[str, ...]:
    """Return one reference, or a sequence of several, as a tuple.

    >>> as_references("a cat"), as_references(["a cat", "the cat"])
    (('a cat',), ('a cat', 'the cat'))
    """
    if isinstance(given, str):
        return (given,)
    if given is None or isinstance(given, (bytes, Mapping)):
        raise InputError(f"a reference must be a string or a list of them, got {given!r}")
    try:
        return tuple(given)
    except TypeError:
        raise InputError(f"a reference must be a string or a list of them, got {given!r}") from None
