"""What bert_score takes for granted: a model for each language."""

from __future__ import annotations

from collections.abc import Mapping

from evenmatch.errors import InputError

MODELS: Mapping[str, str] = {
    "en": "roberta-large",
    "en-sci": "allenai/scibert_scivocab_uncased",
    "tr": "dbmdz/bert-base-turkish-cased",
    "zh": "bert-base-chinese",
}
OTHERWISE = "bert-base-multilingual-cased"


def choose_model(model_type: str | None, lang: str | None) -> str:
    """The model named, or the one bert_score takes for that language.

    >>> choose_model(None, "EN"), choose_model(None, "de")
    ('roberta-large', 'bert-base-multilingual-cased')
    """
    for name, value in (("model_type", model_type), ("lang", lang)):
        if value is not None and not isinstance(value, str):
            raise InputError(f"{name} must be a string, got {type(value).__name__}")
    if model_type is not None:
        return model_type
    if lang is None:
        raise InputError("neither model_type nor lang is given; give one, such as lang='en'")
    return MODELS.get(lang.lower(), OTHERWISE)
