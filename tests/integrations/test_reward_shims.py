from __future__ import annotations

import asyncio
import inspect
import pickle
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

import evenmatch as em
from evenmatch.integrations.rl import for_openrlhf, for_trl, for_verl
from evenmatch.training.rewards import Reward, as_references, completion_text, extract_response

LSA = em.reward("align(vectors=hashed, alignment=lsa)")
SAME, LESS = (LSA([em.Pair("a dog", (r,))])[0] for r in ("a dog", "a cat"))


def message(text: Any, role: str = "assistant") -> dict[str, Any]:
    return {"role": role, "content": text}


def test_trl_gets_one_number_per_completion() -> None:
    reward = for_trl(LSA, references="target")
    given = reward(completions=["a dog", "a dog"], target=["a dog", "a cat"], prompts=["x", "y"])
    assert given == [SAME, LESS]
    assert reward.__name__ == "evenmatch"
    assert pickle.loads(pickle.dumps(reward)) == reward


def test_trl_takes_chat_messages_and_several_references() -> None:
    said = [message("find it", "tool"), message([{"type": "text", "text": "a dog"}])]
    assert for_trl(LSA)(completions=[said], references=[["a cat", "a dog"]]) == [SAME]


def test_the_share_of_odd_texts_is_logged_to_trl() -> None:
    logged: dict[str, float] = {}
    for_trl(LSA, name="overlap")(
        completions=["", "a dog"], references=["a dog", "a dog"], log_metric=logged.__setitem__
    )
    assert logged == {"overlap/odd": 0.5}


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(em.InputError, match="no column 'gold' with references; its columns: 'ref'"):
        for_trl(LSA, references="gold")(completions=["a"], ref=["a"])


def test_phrases_given_as_references_are_warned_of() -> None:
    gold = ["neural net", "parsing"]
    with pytest.warns(UserWarning, match="join_phrases"):
        for_trl("fg")(completions=["neural net"], references=[gold])
    with pytest.warns(UserWarning, match="join_phrases"):
        for_openrlhf("fg")(["neural net"], [""], [gold])
    with pytest.warns(UserWarning, match="join_phrases"):
        asyncio.run(for_verl("fg").compute_async("", "neural net", gold))
    assert for_trl("fg")(completions=["neural net"], references=[em.join_phrases(gold)]) == [0.75]


def test_openrlhf_gets_tensors_for_responses_without_their_prompts() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    queries = ["<s>Say it: a dog</s>", "Say it: "]
    found = for_openrlhf(LSA)(queries, ["Say it: ", "Say it: "], ["a dog", ["a cat", "a dog"]])
    assert torch.equal(found["rewards"], torch.tensor([SAME, 0.0]))
    assert found["scores"] is found["rewards"]
    assert found["extra_logs"]["odd"].tolist() == [0.0, 1.0]


def test_verl_asks_for_one_text_or_for_many() -> None:
    reward = for_verl(LSA)
    one = reward(data_source="x", solution_str="a dog", ground_truth="a cat", extra_info={})
    assert one == LESS
    assert reward.compute_batch(
        data_sources=["x", "x"],
        solution_strs=["a dog", "a dog"],
        ground_truths=["a cat", ["a cat", "a dog"]],
        extra_infos=[{}, {}],
    ) == [LESS, SAME]


@dataclass(frozen=True)
class CountingReward(Reward):
    """Notes how many texts each pass has."""

    passes: list[int] = field(default_factory=list, compare=False)

    def __call__(self, pairs: Any) -> list[float]:
        self.passes.append(len(pairs))
        return super().__call__(pairs)


def ask(compute_score: Any, solution: Any, truth: Any = "a cat") -> Any:
    return compute_score(data_source="x", solution_str=solution, ground_truth=truth, extra_info={})


def test_64_concurrent_calls_of_verl_are_one_pass() -> None:
    counting = CountingReward(LSA.term)
    compute_score = for_verl(counting).compute_async
    texts = [f"a dog {n}" if n % 3 else "a cat" for n in range(64)]

    async def all_at_once() -> list[float]:
        return list(await asyncio.gather(*(ask(compute_score, text) for text in texts)))

    assert asyncio.run(all_at_once()) == LSA([em.Pair(text, ("a cat",)) for text in texts])
    assert counting.passes == [64]


def test_calls_of_verl_during_a_pass_are_the_next_pass() -> None:
    counting = CountingReward(LSA.term)
    compute_score = for_verl(counting).compute_async

    async def in_two_waves() -> None:
        first = [asyncio.create_task(ask(compute_score, "a dog")) for _ in range(3)]
        while not counting.passes:
            await asyncio.sleep(0.001)
        await asyncio.gather(*first, *(ask(compute_score, "a dog") for _ in range(5)))

    asyncio.run(in_two_waves())
    asyncio.run(in_two_waves())  # in another event loop
    assert sum(counting.passes) == 16
    assert counting.passes[0] == 3


def test_verl_takes_the_method_for_a_coroutine_function() -> None:
    # verl 0.9 wraps the function it loads in partial, and asks inspect whether to await it.
    function = for_verl(LSA).compute_async
    assert inspect.iscoroutinefunction(function)
    assert inspect.iscoroutinefunction(partial(function, extra_info={}))
    assert pickle.loads(pickle.dumps(for_verl(LSA))) == for_verl(LSA)


def test_an_invalid_call_of_verl_fails_alone() -> None:
    compute_score = for_verl(LSA).compute_async

    async def one_invalid() -> list[Any]:
        calls = [ask(compute_score, "a dog"), ask(compute_score, None), ask(compute_score, "a", 3)]
        return list(await asyncio.gather(*calls, return_exceptions=True))

    good, *bad = asyncio.run(one_invalid())
    assert good == LESS
    assert [type(error) for error in bad] == [em.InputError, em.InputError]


def test_a_reward_that_fails_raises_in_every_call_of_verl() -> None:
    compute_score = for_verl("bertscore(model='./none')").compute_async

    async def two() -> list[Any]:
        calls = (ask(compute_score, "a") for _ in range(2))
        return list(await asyncio.gather(*calls, return_exceptions=True))

    assert [type(error) for error in asyncio.run(two())] == [em.DataError] * 2


def test_a_cancelled_call_of_verl_stops_no_other() -> None:
    compute_score = for_verl(LSA).compute_async

    async def cancel_first() -> Any:
        first = asyncio.create_task(ask(compute_score, "a dog"))
        second = asyncio.create_task(ask(compute_score, "a dog"))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert asyncio.run(cancel_first()) == LESS


def test_columns_of_unequal_length_are_named() -> None:
    with pytest.raises(em.InputError, match="but completions has 2, target has 1"):
        for_trl(LSA, references="target")(completions=["a", "b"], target=["a"])
    with pytest.raises(em.InputError, match="queries has 1, prompts has 1, labels has 2"):
        for_openrlhf(LSA)(["a"], ["a"], ["a", "b"])
    with pytest.raises(em.InputError, match="solution_strs has 1, ground_truths has 2"):
        for_verl(LSA).compute_batch(["x"], ["a"], ["a", "b"])


@pytest.mark.model
def test_a_metric_name_or_spec_serves_as_a_reward() -> None:
    spec = "align(vectors=hashed, alignment=lsa)"
    for metric in (spec, em.build(spec)):
        assert em.for_trl(metric) == em.for_trl(em.reward(spec))
        assert em.for_openrlhf(metric) == em.for_openrlhf(em.reward(spec))
        assert em.for_verl(metric) == em.for_verl(em.reward(spec))


def test_the_files_can_be_named_to_trainers_as_they_are() -> None:
    from evenmatch.integrations import rl

    asked = {"data_source": "x", "solution_str": "a dog", "ground_truth": "a dog"}
    assert asyncio.run(rl.compute_score(**asked)) == pytest.approx(1.0)
    assert rl.reward_func(["a dog"], [""], ["a dog"])["rewards"][0] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("query", "prompt", "response"),
    [
        ("Who? A cat.", "Who?", "A cat."),
        ("<|im_start|>Who?<|im_end|>A cat.<|im_end|>", "Who?<|im_end|>", "A cat."),
        ("A cat. Who? A dog.", "Who?", "A cat. Who? A dog."),
        ("a < b and b > a", "", "a < b and b > a"),
        ("Who?A cat.<｜end▁of▁sentence｜>", "Who?", "A cat."),
        ("[PAD][PAD]Who? A cat.[PAD]", "Who?", "A cat."),
        ("see [1] and [this]", "", "see [1] and [this]"),
    ],
)
def test_a_response_is_what_comes_after_the_prompt(query: str, prompt: str, response: str) -> None:
    assert extract_response(query, prompt) == response


def test_a_message_that_only_calls_a_tool_is_no_text() -> None:
    call = {"role": "assistant", "tool_calls": [{"function": {"name": "find"}}]}
    assert for_trl(LSA)(completions=[[call]], references=["a dog"]) == [0.0]


def test_a_conversation_without_an_answer_is_no_text() -> None:
    assert completion_text([message("hello", "user")]) == completion_text([message(None)]) == ""


@pytest.mark.parametrize(
    ("completion", "said"),
    [(3, "strings or lists of messages .* got int"), (["a"], "got 'a' among messages")],
)
def test_what_is_no_completion_is_refused(completion: Any, said: str) -> None:
    with pytest.raises(em.InputError, match=said):
        completion_text(completion)


@pytest.mark.parametrize("given", [None, 3, b"a", {"a": 1}])
def test_what_is_no_reference_is_refused(given: Any) -> None:
    with pytest.raises(em.InputError, match="a reference must be a string or a list of them"):
        as_references(given)
