"""Extract a policy's response from what trainers pass: chat messages, or prompt and response."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from evenmatch.errors import InputError
from evenmatch.registry.parts import check_arguments

# Special tokens in decoded text, such as <|im_end|>, </s> and <eos>.
_SPECIAL_TOKENS = re.compile(
    r"<\|[^<>|]{1,40}\|>|</?s>|<(?:bos|eos|pad|unk|end_of_turn|start_of_turn)>"
)

_EXPECTED = "strings or lists of messages with 'role' and 'content'"


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
        if not isinstance(message, Mapping) or "content" not in message:
            raise InputError(f"completions must be {_EXPECTED}, got {message!r} among messages")
        if message.get("role", "assistant") == "assistant":
            content = message["content"]
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
