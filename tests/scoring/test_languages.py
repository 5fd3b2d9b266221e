from __future__ import annotations

import warnings

import pytest

import evenmatch as em
from evenmatch.scoring.inputs import likely_other_language

GERMAN = [
    "Der Hund ist nicht mit den Kindern auf die Straße gelaufen.",
    "Das ist ein Haus, und die Tür steht offen für alle.",
    "Sie hat sich auf den Weg zu dem Markt gemacht.",
]
CHINESE = ["这只猫坐在垫子上看着窗外的小鸟飞过", "明天北方预计会下雨请带好雨伞再出门"]
ENGLISH = [
    "The dog did not run into the street with the children.",
    "This is a house, and the door is open for all of them.",
    "She was on her way to the market in the old town.",
]


@pytest.mark.model
@pytest.mark.parametrize(("texts", "language"), [(GERMAN, "German"), (CHINESE, "non-Latin script")])
def test_texts_in_another_language_than_the_models_get_a_warning(
    texts: list[str], language: str
) -> None:
    with pytest.warns(UserWarning, match=rf"look like .*{language}, but minilm was trained on"):
        em.score(texts, texts)


@pytest.mark.model
def test_a_metric_that_stands_for_a_blend_gets_it_too() -> None:
    with pytest.warns(UserWarning, match="look like German"):
        em.score(GERMAN, GERMAN, "wmt_blend")


@pytest.mark.model
def test_the_warning_says_what_to_choose_and_how_to_silence_it() -> None:
    with pytest.warns(UserWarning, match=r"model='xlm-roberta-base'.*warnings\.filterwarnings"):
        em.score(GERMAN, GERMAN)


@pytest.mark.model
def test_it_comes_once_however_many_metrics_there_are() -> None:
    with pytest.warns(UserWarning, match="English only") as caught:
        em.score(GERMAN, GERMAN, ["bertscore", "f_disc", "f_cont"])
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.model
def test_english_texts_get_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        em.score(ENGLISH, ENGLISH)


@pytest.mark.parametrize("texts", [GERMAN, CHINESE])
def test_an_encoder_without_a_language_gets_no_warning(texts: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        em.score(texts, texts, "align(vectors=hashed)")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (" ".join(ENGLISH), None),
        (" ".join(GERMAN), "German"),
        (
            "Le chat dort sur le toit de la maison, et les enfants jouent dans la cour pour la "
            "fête que les voisins préparent depuis une semaine.",
            "French",
        ),
        (
            "El perro duerme en la casa con los niños, y por la noche se levanta para comer lo que "
            "le dejan los vecinos del barrio.",
            "Spanish",
        ),
        (
            "Il cane non è della vicina, ma dorme con gli altri nel giardino, che per una volta è "
            "anche il posto dei bambini, e non sono soli.",
            "Italian",
        ),
        (
            "O cão não é do menino, mas os vizinhos dizem que dorme em casa com uma das crianças "
            "mais novas e que come mais ao domingo.",
            "Portuguese",
        ),
        (
            "De hond van het kind ligt niet voor de deur, en dat is ook goed, want er zijn te veel "
            "mensen die met een fiets aan komen.",
            "Dutch",
        ),
        ("Кошка сидит на коврике и смотрит в окно", "a non-Latin script"),
        ("القطة جالسة على السجادة وتنظر من النافذة", "a non-Latin script"),
        ("12345 67890 !!! ???", None),
        ("", None),
        ("der", None),
        (
            "A table of names: Müller, Schmidt, Weber, Wagner, Becker, Hoffmann, Koch and Richter, "
            "as they stood in the register of the town for years.",
            None,
        ),
    ],
)
def test_a_language_is_named_only_where_it_is_plain(text: str, language: str | None) -> None:
    assert likely_other_language(text) == language
