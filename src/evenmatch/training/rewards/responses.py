"""What a policy wrote, out of what trainers hand over: chat messages, or prompt and response."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from evenmatch.errors import InputError

# What tokenizers of language models write for tokens that are no text: <|im_end|>, </s>, <eos>.
_SPECIAL_TOKENS = re.compile(
    r"<\|[^<>|]{1,40}\|>|</?s>|<(?:bos|eos|pad|unk|end_of_turn|start_of_turn)>"
)


_EXPECTED = "strings or lists of messages with 'role' and 'content'"


def extract_response(query: str, prompt: str) -> str:
    """A query without the prompt that it begins with, and without special tokens.

    The prompt may stand behind special tokens of its own.

    >>> extract_response("<s>Who? The cat.</s>", "Who?")
    'The cat.'
    """
    before, found, rest = query.partition(prompt) if prompt else ("", "", "")
    begins = found and not _SPECIAL_TOKENS.sub("", before).strip()
    return _SPECIAL_TOKENS.sub("", rest if begins else query).strip()


def completion_text(completion: Any) -> str:
    """A completion as text: itself, or what the assistant said last.

    >>> completion_text([{"role": "assistant", "content": "The cat."}])
    'The cat.'
    """
    if isinstance(completion, str):
        return completion
    if not isinstance(completion, Sequence) or isinstance(completion, bytes):
        raise InputError(f"completions must be {_EXPECTED}, got {type(completion).__name__}")
    for message in reversed(completion):
        if not isinstance(message, Mapping) or "content" not in message:
            raise InputError(f"completions must be {_EXPECTED}, got {message!r} among messages")
        if message.get("role", "assistant") == "assistant":
            return _message_text(message["content"])
    return ""


def as_references(given: Any) -> tuple[str, ...]:
    """One reference or several, in any sequence, as a row of them.

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


def _message_text(content: Any) -> str:
    """A message's text; of parts, those that are text."""
    if isinstance(content, str) or content is None:
        return content or ""
    return "".join(part.get("text", "") for part in content if isinstance(part, Mapping))
