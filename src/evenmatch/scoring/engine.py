"""The scoring engine: score pairs with any metrics, in one pass over the texts.

Metrics are recipes. `OpenMetrics` opens each of them for a call, which looks up models, layers and
tables once, and then takes the pairs in chunks, so that memory stays bounded. All metrics score
one chunk before the next one begins, and share what they have in common:

- A text is split once per splitter and embedded once per encoder (`TextEmbedder`). Encoders of one
  model share its forward pass.
- Other results, such as similarity matrices, are shared by key (`Chunk.share`). BERTScore and
  F_DISC on one model differ only in how they align.

Read `OpenMetrics` first, then `Chunk` and `TextEmbedder`; how pairs are divided into chunks comes
last.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from evenmatch.alignment.assignment import solver_threads
from evenmatch.errors import PromiseError
from evenmatch.models.loading import keep_freed_memory, torch_is_loaded, trim_memory
from evenmatch.protocols import BatchSplitter, Encoder, Metric, Splitter
from evenmatch.registry import CallContext, make_signature
from evenmatch.registry.opening import Openable, count_idf
from evenmatch.registry.specs import display_spec
from evenmatch.scoring.inputs import check_pairs
from evenmatch.types import Array, Embedded, OpenEncoder, Pair, Run, Score, Scores, Units

T = TypeVar("T")

# The scores of a chunk's pairs, and a row of counts per pair if the metric has a corpus score.
ChunkScores: TypeAlias = tuple[Sequence[Score], Array | None]


@dataclass(frozen=True, eq=False)
class ReadyMetric:
    """A metric that was opened for one call.

    `score_chunk` scores the pairs of a chunk. `score_totals` computes the corpus score from the
    summed counts. `facts` are added to the signature. A metric that runs `no_model` is faster on
    small chunks. A metric that cannot be opened, such as a plug-in, is `whole`: its corpus score
    may depend on all pairs, so it is called with all of them.
    """

    score_chunk: Callable[[Chunk], ChunkScores]
    score_totals: Callable[[Array], Array] | None = None
    pad_to: int = 0
    no_model: bool = False
    facts: tuple[str, ...] = ()
    whole: Metric | None = None


class EngineMetric(Protocol):
    """A metric that the engine opens; its call and its signature are derived from `open`."""

    def open(self, context: CallContext, /) -> ReadyMetric: ...

    def __call__(self, pairs: Sequence[Pair], run: Run = Run()) -> Scores:
        """Score the pairs, in order; with several references the best score counts."""
        return OpenMetrics([self], pairs, run).score(pairs)[0]

    @property
    def higher_is_better(self) -> bool:
        """True, unless the metric says otherwise."""
        return True

    @property
    def signature(self) -> str:
        """The metric's spec, with settings resolved, files by content hash, and versions."""
        return make_signature(self)


class OpenMetrics:
    """Metrics opened for one call; `score` may be called with one block of pairs after another.

    `pairs` are all pairs of the call. Only metrics that count idf read them here.
    """

    def __init__(self, metrics: Sequence[Any], pairs: Iterable[Pair], run: Run) -> None:
        self._context = CallContext(run, pairs)
        self._ready: list[tuple[ReadyMetric, str]] = []  # with their signatures
        for metric in [count_idf(each, self._context) for each in metrics]:
            ready = open_metric(metric, self._context)
            signature = "" if ready.whole else make_signature(metric, self._context, *ready.facts)
            self._ready.append((ready, signature))

    @property
    def scores_any_block(self) -> bool:
        """Whether no metric has to be called with all pairs at once."""
        return not any(metric.whole for metric, _ in self._ready)

    def score(self, pairs: Sequence[Pair], *, done: int = 0, total: int = 0) -> list[Scores]:
        """Return one `Scores` per metric, segments in input order.

        Progress is reported as part of a job of `total` pairs with `done` already complete.
        """
        check_pairs(pairs)
        keep_freed_memory()
        run, embedder = self._context.run, TextEmbedder()
        chunked = [(metric, signature) for metric, signature in self._ready if not metric.whole]
        found: list[list[ChunkScores]] = [[] for _ in chunked]
        order: list[int] = []
        pad_to = max((metric.pad_to for metric, _ in chunked), default=0)
        no_model = all(metric.no_model for metric, _ in chunked)
        chunks = chunk_pairs(pairs if chunked else [], pad_to, run.cache is not None, no_model)
        for rows, reused in chunks:
            own = [pairs[row] for row in rows]
            self._context.start_chunk()
            embedder.start_chunk({text for pair in own for text in texts_of_pair(pair)} | reused)
            chunk = Chunk(own, rows, embedder, run)
            for (metric, signature), into in zip(chunked, found, strict=True):
                into.append(metric.score_chunk(chunk))
                _check_scores(into[-1][0], own, signature.split(" · ")[0])
            del chunk  # its matrices must not stay alive beside those of the next chunk
            order += rows
            if run.progress:
                run.progress(done + len(order), total or len(pairs))
        parts, back = iter(found), np.argsort(order)
        return [
            _call_metric(each.whole, pairs)
            if each.whole
            else _join_chunks(each, sign_reference_count(signature, pairs), next(parts), back)
            for each, signature in self._ready
        ]


def open_metric(metric: Any, context: CallContext) -> ReadyMetric:
    """Open a metric; one without `open` is called with the pairs themselves."""
    if isinstance(metric, Openable):
        ready: ReadyMetric = context.open(metric)
        return ready
    return ReadyMetric(
        lambda chunk: (_call_metric(metric, chunk.pairs).segments, None),
        facts=tuple(metric.signature.split(" · ")[1:]),
        whole=metric,
    )


def _call_metric(metric: Metric, pairs: Sequence[Pair]) -> Scores:
    scores: Any = metric(pairs)
    if not (isinstance(scores, Scores) and isinstance(scores.signature, str)):
        raise PromiseError(
            f"the metric {display_spec(metric)} returned {type(scores).__name__}; "
            "expected em.Scores with a signature"
        )
    _check_scores(scores.segments, pairs, display_spec(metric))
    return scores


def _check_scores(scores: Sequence[Score], pairs: Sequence[Pair], name: str) -> None:
    """Raise PromiseError unless there is one Score per pair."""
    if len(scores) != len(pairs):
        raise PromiseError(
            f"the metric {name} returned {len(scores)} scores for {len(pairs)} pairs; "
            "expected one per pair"
        )
    wrong = [type(each).__name__ for each in scores if not isinstance(each, Score)]
    if wrong:
        raise PromiseError(f"the metric {name} returned {wrong[0]} as a score; expected em.Score")


def score_each_pair(score: Callable[[Pair], Score]) -> ReadyMetric:
    """Return a ready metric that scores one pair after the other."""
    return ReadyMetric(lambda chunk: ([score(pair) for pair in chunk.checked_pairs()], None))


def _join_chunks(
    metric: ReadyMetric, signature: str, chunks: Sequence[ChunkScores], back: Array
) -> Scores:
    """Join the scores and counts of all chunks; `back` puts them into the order of the input."""
    every = [score for scores, _ in chunks for score in scores]
    rows = [counts for _, counts in chunks if counts is not None]
    counts = np.concatenate(rows)[back] if rows else None
    corpus = None
    if metric.score_totals and counts is not None:
        corpus = float(metric.score_totals(counts.sum(0)))
    return Scores(tuple(every[i] for i in back.tolist()), signature, corpus, counts)


_REFERENCE_COUNT = re.compile(r"\bnrefs:\w+")


def sign_reference_count(signature: str, pairs: Sequence[Pair] = ()) -> str:
    """Set sacrebleu's field `nrefs` of a signature to the number of references of each pair.

    >>> sign_reference_count("bleu · nrefs:1|tok:13a", [Pair("a", ("b", "c"))])
    'bleu · nrefs:2|tok:13a'
    >>> sign_reference_count("bleu · nrefs:1|tok:13a")
    'bleu · nrefs:var|tok:13a'
    """
    if "nrefs:" not in signature:
        return signature
    counts = {len(pair.references) for pair in pairs}
    shown = counts.pop() if len(counts) == 1 else "var"
    return _REFERENCE_COUNT.sub(f"nrefs:{shown}", signature)


def merge_signatures(signatures: Iterable[str]) -> str:
    """Return the signature of scores that were computed in several calls of one metric."""
    known = list(dict.fromkeys(filter(None, signatures)))
    return sign_reference_count(known[0]) if len(known) > 1 else "".join(known)


class Chunk:
    """Some of the pairs of a call, with everything that metrics share about them.

    `rows` are the places of the pairs in the input.
    """

    def __init__(
        self, pairs: Sequence[Pair], rows: Sequence[int], embedder: TextEmbedder, run: Run
    ) -> None:
        self.pairs = pairs
        self.rows = rows
        self.run = run
        self._embedder = embedder
        self._shared: dict[Hashable, Any] = {}

    def share(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the result of `compute`, computed once for all metrics that give an equal key."""
        if key not in self._shared:
            self._shared[key] = compute()
        found: T = self._shared[key]
        return found

    def checked_pairs(self) -> Iterator[Pair]:
        """Yield the pairs one by one; the run may be cancelled before each."""
        for pair in self.pairs:
            self.run.check()
            yield pair

    def embedded_pairs(
        self, units: Splitter, sides: tuple[OpenEncoder, OpenEncoder]
    ) -> list[tuple[Embedded, Embedded]]:
        """Embed each candidate and each of its references, in order."""

        def embed_pairs() -> list[tuple[Embedded, Embedded]]:
            candidates = [pair.candidate for pair in self.pairs]
            references = [reference for pair in self.pairs for reference in pair.references]
            if sides[0] is sides[1]:
                # together, so that they share batches
                self._embedder.embed(units, sides[0], [*candidates, *references])
            x = self._embedder.embed(units, sides[0], candidates)
            y = self._embedder.embed(units, sides[1], references)
            return [(x[p.candidate], y[r]) for p in self.pairs for r in p.references]

        return self.share((units, sides), embed_pairs)

    def single_references(self) -> Chunk:
        """Return the chunk with every reference in a pair of its own."""
        if all(len(pair.references) == 1 for pair in self.pairs):
            return self
        return self.share("single references", self._split_references)

    def _split_references(self) -> Chunk:
        pairs = [Pair(p.candidate, (r,), p.source) for p in self.pairs for r in p.references]
        rows = [row for row, p in zip(self.rows, self.pairs, strict=True) for _ in p.references]
        return self.with_pairs(pairs, rows)

    def with_pairs(self, pairs: Sequence[Pair], rows: Sequence[int]) -> Chunk:
        """Return a chunk of other pairs that stand for these rows; it shares embedded texts."""
        return Chunk(pairs, rows, self._embedder, self.run)

    def best_scores(
        self, scores: Iterable[T], value: Callable[[T], float], *, highest: bool = True
    ) -> list[T]:
        """Return each pair's best score, given one score per pair and reference, in order."""
        remaining, best = iter(scores), max if highest else min
        return [best((next(remaining) for _ in p.references), key=value) for p in self.pairs]


class TextEmbedder:
    """Embeds each text of a chunk once per splitter and encoder, for all metrics.

    Texts that occur again in a later chunk keep their vectors.
    """

    def __init__(self) -> None:
        self._embedded: dict[tuple[Splitter, OpenEncoder], dict[str, Embedded]] = {}
        self._units: dict[Splitter, dict[str, Units]] = {}

    def start_chunk(self, texts: Collection[str]) -> None:
        """Drop the vectors of all other texts."""
        self._units = {}
        self._embedded = {
            parts: {t: _copy_vectors_if_view(e) for t, e in embedded.items() if t in texts}
            for parts, embedded in self._embedded.items()
        }

    def embed(
        self, splitter: Splitter, encoder: OpenEncoder, texts: Iterable[str]
    ) -> Mapping[str, Embedded]:
        """Embed the texts that are not embedded yet; return all embedded texts."""
        known = self._embedded.setdefault((splitter, encoder), {})
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, encoder.encode(self._split(splitter, new)), strict=True))
        return known

    def _split(self, splitter: Splitter, texts: Sequence[str]) -> list[Units]:
        known = self._units.setdefault(splitter, {})
        new = [text for text in texts if text not in known]
        if isinstance(splitter, BatchSplitter):
            known.update(zip(new, splitter.split_batch(new), strict=True))
        else:
            known.update((text, splitter(text)) for text in new)
        return [known[text] for text in texts]


def open_encoder(encoder: Encoder, context: CallContext) -> tuple[OpenEncoder, OpenEncoder]:
    """Open an encoder for candidates and for references; any callable encoder will do."""
    if isinstance(encoder, Openable):
        opened: tuple[OpenEncoder, OpenEncoder] = context.open(encoder)
        return opened
    key: Any = encoder  # parts are hashable
    sides = context.once(OpenEncoder, encoder, key)
    return sides, sides


def _copy_vectors_if_view(embedded: Embedded) -> Embedded:
    """Copy vectors that are a view: a view would keep the whole array of its chunk in memory."""
    vectors = embedded.vectors
    is_view = isinstance(vectors, np.ndarray) and vectors.base is not None
    return dataclasses.replace(embedded, vectors=vectors.copy()) if is_view else embedded


@contextmanager
def small_matrix_threads(run: Run) -> Iterator[None]:
    """Limit matrix products to one thread within the block, and let solvers use those of the run.

    A similarity matrix takes about 20 microseconds on one thread. Two threads are no faster, since
    they wait for each other; on a busy machine that wait was measured at 40 times the product.
    """
    torch = sys.modules.get("torch")
    threads = run.threads or (torch.get_num_threads() if torch else 1)
    libraries = _blas_libraries()
    before = [library.get_num_threads() for library in libraries]
    try:
        for library in libraries:
            library.set_num_threads(1)
        with solver_threads(threads):
            yield
    finally:
        for library, count in zip(libraries, before, strict=True):
            library.set_num_threads(count)


@cache
def _blas_libraries() -> list[Any]:
    from threadpoolctl import ThreadpoolController

    # its own context manager takes 0.1 ms, as long as two pairs
    found: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return found


# The vectors of about 50,000 tokens are held at a time: enough that most text lengths fill a batch.
MAX_TEXTS = 2048
MAX_CHARACTERS = 200_000

# Without a model there are no batches to fill, and the vectors of a small chunk stay in the CPU's
# cache: a warm run then takes 6 % less time than with 32,000 characters.
MAX_SMALL_CHARACTERS = 12_000

CHARACTERS_PER_TOKEN = 4

# Characters × characters, about 8 million similarities: few texts can form very many pairs.
MAX_AREA = 128_000_000


def chunk_pairs(
    pairs: Sequence[Pair], pad_to: int = 0, cached: bool = False, no_model: bool = False
) -> Iterator[tuple[list[int], set[str]]]:
    """Yield chunks as the indexes of their pairs, each with the earlier texts to keep for reuse.

    Pairs with the same first reference come together. So when many systems are scored on one test
    set, each reference is embedded once, however large the set. Texts that are padded to `pad_to`
    tokens count as at least that long. Chunks are small if there is `no_model`; with a cache, until
    the first text is missing in it and the model is loaded.
    """
    min_size = pad_to * CHARACTERS_PER_TOKEN
    first: dict[str, int] = {}
    for index, pair in enumerate(pairs):
        first.setdefault(pair.references[0], index)
    order = sorted(range(len(pairs)), key=[first[pair.references[0]] for pair in pairs].__getitem__)
    last = {text: place for place, i in enumerate(order) for text in texts_of_pair(pairs[i])}
    done = 0
    reused: list[str] = []

    def max_characters() -> int:
        small = no_model or (cached and not torch_is_loaded())
        return MAX_SMALL_CHARACTERS if small else MAX_CHARACTERS

    for number, chunk in enumerate(_split_order(order, pairs, min_size, max_characters)):
        if number and torch_is_loaded() and not no_model:
            # A model leaves the heap fragmented; the next chunk's arrays would be added to that.
            trim_memory()
        yield chunk, set(reused)
        done += len(chunk)
        seen = (text for i in chunk for text in texts_of_pair(pairs[i]))
        again = (text for text in dict.fromkeys(chain(reused, seen)) if last[text] >= done)
        reused = _take_one_chunk(again, min_size)


def texts_of_pair(pair: Pair) -> tuple[str, ...]:
    """The candidate and the references of a pair."""
    return (pair.candidate, *pair.references)


def _split_order(
    order: Sequence[int], pairs: Sequence[Pair], min_size: int, max_characters: Callable[[], int]
) -> Iterator[list[int]]:
    def measure(text: str) -> int:
        return max(len(text), min_size)

    chunk: list[int] = []
    held: set[str] = set()
    size = area = 0
    max_size = max_characters()
    for index in order:
        pair = pairs[index]
        own_area = measure(pair.candidate) * sum(map(measure, pair.references))
        new = set(texts_of_pair(pair)).difference(held)
        size += sum(map(measure, new))
        area += own_area
        if chunk and (len(held) + len(new) > MAX_TEXTS or size > max_size or area > MAX_AREA):
            yield chunk
            max_size = max_characters()
            chunk, held, new = [], set(), set(texts_of_pair(pair))
            size, area = sum(map(measure, new)), own_area
        chunk.append(index)
        held |= new
    if chunk:
        yield chunk


def _take_one_chunk(texts: Iterable[str], min_size: int) -> list[str]:
    """The first texts, as many as fit in one chunk."""
    fitting: list[str] = []
    size = 0
    for text in islice(texts, MAX_TEXTS):
        size += max(len(text), min_size)
        if size > MAX_CHARACTERS:
            break
        fitting.append(text)
    return fitting
