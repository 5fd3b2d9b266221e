"""Schemas of requests and responses."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

# Placeholder keys in the schema, replaced by the names of the served metrics.
SERVED_KEY, ALIGNING_KEY = "x-served", "x-aligning"

# Requests may have no other fields, and values are not converted (a number is not a text).
_STRICT = ConfigDict(extra="forbid", strict=True)


def check_surrogates(text: str) -> str:
    """Raise `ValueError` for a text with a lone surrogate, which no tokenizer accepts."""
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise ValueError("the text contains a lone surrogate (half a character)")
    return text


Text: TypeAlias = Annotated[str, AfterValidator(check_surrogates)]

_ReferenceList: TypeAlias = Annotated[list[Text], Field(min_length=1)]

References: TypeAlias = Annotated[
    list[Text] | list[_ReferenceList],
    Field(description="One string per candidate, or one list of strings per candidate."),
]

Candidates: TypeAlias = Annotated[list[Text], Field(description="The texts to score.")]

_SERVED: Any = Field(min_length=1, json_schema_extra={SERVED_KEY: True})
_ALIGNING: Any = Field(min_length=1, json_schema_extra={ALIGNING_KEY: True})

ServedName: TypeAlias = Annotated[str, _SERVED]

MetricName: TypeAlias = Annotated[
    str, _SERVED, Field(description="One of the served metrics; by default the first.")
]

AlignMetricName: TypeAlias = Annotated[
    str, _ALIGNING, Field(description="One of the served alignment metrics; by default the first.")
]

MetricNames: TypeAlias = Annotated[
    ServedName | Annotated[list[ServedName], Field(min_length=1, max_length=32)],
    Field(description="One of the served metrics, or a list of them."),
]


class ScoreRequest(BaseModel):
    """Texts to score."""

    model_config = _STRICT
    candidates: Candidates
    references: References
    metric: MetricNames = ""


class RewardRequest(BaseModel):
    """Texts to compute rewards for."""

    model_config = _STRICT
    candidates: Candidates
    references: References
    metric: MetricName = ""


class GetRewardRequest(BaseModel):
    """Request in OpenRLHF's format: full sequences, their prompts, and the references."""

    model_config = ConfigDict(strict=True)
    query: Annotated[list[Text], Field(description="Prompts with their responses.")]
    prompts: Annotated[
        list[Text], Field(description="The prompt of each query, which is not scored.")
    ] = []
    labels: Annotated[References, Field(description="The references of each query.")]


class AlignRequest(BaseModel):
    """Two texts to align."""

    model_config = _STRICT
    candidate: Text
    reference: Text
    metric: AlignMetricName = ""


class SegmentScore(BaseModel):
    """The score of one candidate; null where a metric has no such number."""

    value: float | None
    precision: float | None
    recall: float | None
    flags: list[str]


class MetricScores(BaseModel):
    """The scores of one metric; `corpus` is null where it would be the mean."""

    signature: str
    mean: float | None
    corpus: float | None
    segments: list[SegmentScore]


class ScoreResponse(BaseModel):
    """Scores by metric, segments in the order of the candidates."""

    metrics: dict[str, MetricScores]


class RewardResponse(BaseModel):
    """Rewards between 0 and 1; `odd` are the rows whose texts could not be scored."""

    rewards: list[float]
    odd: list[int]
    signature: str


class ExtraLogs(BaseModel):
    """Values that a trainer can log; `odd` is 1 where a text could not be scored."""

    odd: list[float]


class GetRewardResponse(BaseModel):
    """Response in OpenRLHF's format."""

    rewards: list[float]
    scores: list[float]
    extra_logs: ExtraLogs


class AlignResponse(BaseModel):
    """One alignment: units, similarities, pairs (i, j, weight), credit and weight of each unit."""

    name: str
    candidate: str
    reference: str
    candidate_units: list[str]
    reference_units: list[str]
    similarity: list[list[float]]
    pairs: list[list[float]]
    gained: list[float]
    covered: list[float]
    candidate_weights: list[float]
    reference_weights: list[float]
    score: SegmentScore
    signature: str
    trees: str


class MetricInfo(BaseModel):
    """A served metric."""

    name: str
    about: str
    aligns: bool
    higher_is_better: bool
    bounds: list[float | None]


class MetricList(BaseModel):
    """All served metrics, the default first."""

    metrics: list[MetricInfo]


class Health(BaseModel):
    """Status of the server."""

    status: str
    version: str


class ErrorResponse(BaseModel):
    """The reason why a request failed."""

    detail: str


ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": description}
    for status, description in {
        400: "The body cannot be read.",
        401: "The token is missing or wrong.",
        408: "The body did not arrive in time.",
        409: "The lists differ in length.",
        413: "The body, a text, the number of texts, the work or the response is too large.",
        421: "The Host header names another host.",
        422: "The body does not match the schema, or a text is invalid.",
        429: "The queue is full; try again.",
        431: "The headers are too large.",
        500: "Internal server error.",
        504: "The request timed out.",
    }.items()
}
