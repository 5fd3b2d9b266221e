"""What requests and answers look like."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

# Marks that become the list of names offered, once a server knows them.
SERVED_KEY, ALIGNING_KEY = "x-served", "x-aligning"


# What a request is made of: nothing beside the fields named, and no number where a text belongs.
_STRICT = ConfigDict(extra="forbid", strict=True)


def check_surrogates(text: str) -> str:
    """The text, unless it holds half a character, which no tokenizer takes."""
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise ValueError("the text holds half a character (a lone surrogate)")
    return text


Text: TypeAlias = Annotated[str, AfterValidator(check_surrogates)]


_ReferenceList: TypeAlias = Annotated[list[Text], Field(min_length=1)]


References: TypeAlias = Annotated[
    list[Text] | list[_ReferenceList],
    Field(description="One string per candidate, or one list of strings per candidate."),
]


Candidates: TypeAlias = Annotated[list[Text], Field(description="The texts that are judged.")]


ServedName: TypeAlias = Annotated[str, Field(min_length=1, json_schema_extra={SERVED_KEY: True})]


MetricName: TypeAlias = Annotated[
    str,
    Field(
        description="One of the metrics offered; the first of them unless said.",
        min_length=1,
        json_schema_extra={SERVED_KEY: True},
    ),
]


AlignMetricName: TypeAlias = Annotated[
    str,
    Field(
        description="One of the alignment metrics offered; the first of them unless said.",
        min_length=1,
        json_schema_extra={ALIGNING_KEY: True},
    ),
]


MetricNames: TypeAlias = Annotated[
    ServedName | Annotated[list[ServedName], Field(min_length=1, max_length=32)],
    Field(description="One of the metrics offered, or a list of them."),
]


class ScoreRequest(BaseModel):
    """Texts to score."""

    model_config = _STRICT
    candidates: Candidates
    references: References
    metric: MetricNames = ""


class RewardRequest(BaseModel):
    """Texts to reward."""

    model_config = _STRICT
    candidates: Candidates
    references: References
    metric: MetricName = ""


class GetRewardRequest(BaseModel):
    """OpenRLHF's request: whole sequences, the prompts they begin with, and the references."""

    model_config = ConfigDict(strict=True)
    query: Annotated[list[Text], Field(description="Prompts with their responses.")]
    prompts: Annotated[
        list[Text], Field(description="What each query begins with and is not judged.")
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
    """The scores of one metric; `corpus` where it is not the mean."""

    signature: str
    mean: float | None
    corpus: float | None
    segments: list[SegmentScore]


class ScoreResponse(BaseModel):
    """Scores by metric, segments in the order of the candidates."""

    metrics: dict[str, MetricScores]


class RewardResponse(BaseModel):
    """Rewards between 0 and 1, and the rows whose text was too odd to judge."""

    rewards: list[float]
    odd: list[int]
    signature: str


class ExtraLogs(BaseModel):
    """What a trainer may write beside its curves."""

    odd: list[float]


class GetRewardResponse(BaseModel):
    """OpenRLHF's answer."""

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
    """A metric that is offered."""

    name: str
    about: str
    aligns: bool
    higher_is_better: bool
    bounds: list[float | None]


class MetricList(BaseModel):
    """Every metric that is offered, the usual choice first."""

    metrics: list[MetricInfo]


class Health(BaseModel):
    """That the server lives."""

    status: str
    version: str


class ErrorResponse(BaseModel):
    """Why a request was not carried out."""

    detail: str


ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorResponse, "description": "The body cannot be read."},
    401: {"model": ErrorResponse, "description": "The token is missing or wrong."},
    408: {"model": ErrorResponse, "description": "The body did not arrive in time."},
    409: {"model": ErrorResponse, "description": "The lists differ in length."},
    413: {
        "model": ErrorResponse,
        "description": "The body, a text or the number of texts is too large.",
    },
    422: {
        "model": ErrorResponse,
        "description": "The body is not as described, or a text is refused.",
    },
    429: {"model": ErrorResponse, "description": "Too many wait; try again."},
    500: {"model": ErrorResponse, "description": "An error of the server."},
    504: {"model": ErrorResponse, "description": "No answer in time."},
}
