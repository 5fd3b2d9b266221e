"""A metric that is blind to groups the reference does not mention."""

from __future__ import annotations

import pytest

import evenmatch as em
from evenmatch.data.fairness_sets import template_pairs
from evenmatch.errors import EvenmatchError, InputError
from evenmatch.fairness.counterfactuals import group_versions
from evenmatch.types import Pair

BASE = "align(vectors=hashed)"
METRIC = f"counterfactual_mean(base={BASE})"
NEUTRAL = "The nurse lost the keys."


def values(candidates: list[str], references: list[list[str]], metric: str) -> list[float]:
    return [float(v) for v in em.score(candidates, references, metric).values]


@pytest.mark.parametrize("base", [BASE, "chrf", "ter", "blend(parts=[chrf, bleu], weights=[1, 2])"])
def test_the_score_is_the_mean_over_both_groups(base: str) -> None:
    versions = ["The nurse lost his keys.", "The nurse lost her keys."]
    both = em.score(versions, [[NEUTRAL]] * 2, base)
    found = em.score(versions, [[NEUTRAL]] * 2, f"counterfactual_mean(base={base})")
    assert base == "ter" or both.values[0] != both.values[1]  # one word is wrong in both
    assert list(found.values) == pytest.approx([both.mean] * 2, abs=1e-12)


def test_precision_and_recall_are_means_and_flags_are_kept() -> None:
    versions = ["He ran.", "She ran."]
    both = em.score(versions, [["Somebody ran."]] * 2, BASE).segments
    [found] = em.score(versions[:1], [["Somebody ran."]], METRIC).segments
    assert found.precision == pytest.approx(sum(s.precision or 0 for s in both) / 2)
    assert found.recall == pytest.approx(sum(s.recall or 0 for s in both) / 2)
    [empty] = em.score(["He ran."], [[""]], METRIC).segments
    assert empty.flags == em.score(["He ran."], [[""]], BASE).segments[0].flags != frozenset()


@pytest.mark.parametrize(
    ("candidate", "reference"),
    [
        ("She lost her keys.", "The nurse lost his keys."),
        ("He lost the keys.", "My mother lost the keys."),
        ("He lost the keys.", "Jennifer lost the keys."),
        ("The nurse lost the keys.", "Somebody lost the keys."),
    ],
)
def test_what_the_reference_says_of_a_group_counts_in_full(candidate: str, reference: str) -> None:
    given = [candidate], [[reference]]
    assert values(*given, METRIC) == values(*given, BASE)


def test_each_reference_is_asked_by_itself_and_the_best_counts() -> None:
    references = ["The nurse lost his keys.", NEUTRAL]
    for metric, best in ((METRIC, max), ("counterfactual_mean(base=ter)", min)):
        singly = [values(["He lost her keys."], [[each]], metric)[0] for each in references]
        assert values(["He lost her keys."], [references], metric) == [best(singly)]


def test_all_versions_of_several_attributes_count() -> None:
    metric = f"counterfactual_mean(base={BASE}, attributes=['gender', 'age'])"
    versions = [f"The {age} {noun} sang." for age in ("old", "young") for noun in ("man", "woman")]
    reference = ["Somebody sang."]
    mean = sum(values(versions, [reference] * 4, BASE)) / 4
    assert values(versions, [reference] * 4, metric) == pytest.approx([mean] * 4, abs=1e-12)


def test_a_score_depends_on_its_pair_alone() -> None:
    candidates = ["He left.", "Rain fell.", "Her aunt sang.", "The nurse left."] * 3
    references = [["Somebody left."], ["It rained."], ["His aunt sang."], ["He left."]] * 3
    together = values(candidates, references, METRIC)
    alone = [values([c], [r], METRIC)[0] for c, r in zip(candidates, references, strict=True)]
    assert together == alone


@pytest.mark.parametrize("attribute", ["gender", "race", "religion"])
def test_no_bias_is_left_where_the_words_are_known(attribute: str) -> None:
    """Pairs of templates whose two candidates have equal versions score alike."""
    metric = em.build(f"counterfactual_mean(base={BASE}, attributes=['{attribute}'])")
    pairs = template_pairs(attribute)
    first, second = (
        em.score([p.candidate for p in side], [p.references for p in side], metric).values
        for side in ([p.first for p in pairs], [p.second for p in pairs])
    )
    versions = [[group_versions(c.candidate, attribute) for c in p.both] for p in pairs]
    alike = [one == other != () for one, other in versions]
    assert sum(alike) > len(pairs) / 2
    assert first[alike] == pytest.approx(second[alike], abs=1e-12)


@pytest.mark.parametrize(
    ("text", "attribute", "versions"),
    [
        ("His mother saw her.", "gender", ("His father saw him.", "Her mother saw her.")),
        ("The book is his.", "gender", ("The book is his.", "The book is hers.")),
        ("Xe lost xyr keys.", "gender", ("He lost his keys.", "She lost her keys.")),
        ("Yes, ma'am.", "gender", ("Yes, sir.", "Yes, madam.")),
        ("Jennifer sang.", "gender", ("John sang.", "Joan sang.")),
        ("white people sang", "race", ("black people sang", "white people sang")),
        ("Two Nigerians sang.", "race", ("Two Black people sang.", "Two white people sang.")),
        ("A rabbi sang.", "religion", ("A Muslim cleric sang.", "A Christian cleric sang.")),
        ("A rich man sang.", "status", ("A poor man sang.", "A rich man sang.")),
        ("She is pregnant.", "gender", ()),
        ("It rained.", "gender", ()),
    ],
)
def test_versions_are_about_one_group_each(
    text: str, attribute: str, versions: tuple[str, ...]
) -> None:
    found = group_versions(text, attribute)
    assert tuple(map(str.lower, found)) == tuple(map(str.lower, versions))


def test_a_parser_decides_what_her_means() -> None:
    pytest.importorskip("spacy", reason="spaCy is not installed")
    try:
        em.Spacy()(["It rained."])
    except EvenmatchError as error:
        pytest.skip(str(error))
    him, her = (
        f"The accountant met the janitor and wished {word} well." for word in ("him", "her")
    )
    given = [him, her], [["The accountant met the janitor and wished the janitor well."]] * 2
    first, second = values(*given, METRIC)
    assert first != second  # by rules, "her well" is taken for what she has
    first, second = values(*given, f"counterfactual_mean(base={BASE}, parser=spacy)")
    assert first == pytest.approx(second, abs=1e-12)


def test_the_range_and_the_direction_are_those_of_the_metric() -> None:
    for base in ("ter", "chrf"):
        plain, mean = em.build(base), em.build(f"counterfactual_mean(base={base})")
        assert (mean.bounds, mean.higher_is_better) == (plain.bounds, plain.higher_is_better)
    assert em.build(METRIC)([Pair("he", ("a",))]).signature.startswith("counterfactual_mean(base=")


@pytest.mark.parametrize("given", ["[]", "['height']"])
def test_attributes_are_known(given: str) -> None:
    with pytest.raises(InputError, match="attributes are one or more of age, gender"):
        em.build(f"counterfactual_mean(base=chrf, attributes={given})")
