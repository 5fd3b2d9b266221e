"""Ten thousand bodies that nobody sensible would send."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.server.conftest import CHRF, GREEDY, LSA, Serve

PATHS = ["/score", "/reward", "/get_reward", "/align"]
KEYS = "candidates references metric query prompts labels candidate reference x".split()
TEXTS = [
    "",
    "a",
    "the cat",
    "\x00",
    "\ud800",
    "😀猫",
    "[SEP]",
    LSA,
    GREEDY,
    CHRF,
    "/etc",
    "a b " * 40,
]


def value(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.randrange(9 if depth < 3 else 6)
    if kind < 3:
        return chance.choice(TEXTS)
    if kind < 6:
        return chance.choice([None, True, 0, -1.5, 10**30, float("nan"), float("inf"), ""])
    if kind < 8:
        return [value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {chance.choice(TEXTS): value(chance, depth + 1) for _ in range(chance.randrange(3))}


def body(chance: random.Random) -> bytes:
    """An object of known and unknown keys, often nearly right, sometimes with broken bytes."""
    count = chance.randrange(4)
    nearly: dict[str, Any] = {
        key: [chance.choice(TEXTS) for _ in range(count)] for key in KEYS[:2] + KEYS[3:6]
    }
    nearly |= {"candidate": chance.choice(TEXTS), "reference": chance.choice(TEXTS)}
    kept = {key: nearly[key] for key in nearly if chance.random() < 0.6}
    for key in chance.sample(KEYS, chance.randrange(3)):
        kept[key] = value(chance)
    raw = json.dumps(kept if chance.random() < 0.9 else value(chance)).encode()
    if chance.random() < 0.15:
        at = chance.randrange(len(raw) + 1)
        raw = raw[:at] + chance.randbytes(chance.randrange(4)) + raw[at + 1 :]
    return raw


@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_body_is_an_error_of_the_server(serve: Serve, count: int) -> None:
    chance, client = random.Random(count), serve()
    statuses: dict[int, int] = {}
    for _ in range(count):
        sent = body(chance)
        answer = client.post(
            chance.choice(PATHS), content=sent, headers={"content-type": "application/json"}
        )
        assert answer.status_code in (200, 400, 409, 422), sent
        assert isinstance(answer.json(), dict), sent
        statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
    assert statuses[200] > count / 100
    assert statuses[422] > count / 10
