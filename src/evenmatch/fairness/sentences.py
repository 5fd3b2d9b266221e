"""How a word is used in its sentence: as a term for a person of a group, or in another sense.

"a rich man" mentions a group, "a rich cake" does not; "her" is an object in "saw her run" and a
possessive in "saw her car"; "Georgia" may be a woman or a state. Begin with `TaggedSentence.use`:
there is one rule for each kind of term. Part-of-speech tags and word lists decide (`tagging.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from evenmatch.data.fairness_sets import GroupTerm, ambiguous_names, builtin_terms
from evenmatch.fairness.tagging import OPENERS, Token, sense_lists, word_lists

_QUOTES = frozenset("\"“”‘’'`«»")
_FAITHS = frozenset(
    ("Muslim", "Jewish", "Hindu", "Sikh", "Buddhist", "Islamic", "Moslem", "Mormon")
)
_AMERICAN = frozenset(("american", "americans"))


class TaggedSentence:
    """The tokens of a text, with the rules that decide how a token is used."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text, self.tokens = text, tokens
        words = [token.text for token in tokens if token.is_word and len(token.text) > 3]
        self.capitals = text.upper() == text
        # as in a headline; a text of one or two words shows nothing
        self.titled = len(words) > 2 and sum(w[0].isupper() for w in words) >= 0.8 * len(words)
        self.lists = word_lists()

    def phrase(self, at: int, length: int) -> str:
        """Return some tokens in lower case if only single spaces separate them, else ''."""
        tokens = self.tokens[at : at + length]
        gaps = (self.text[a.end : b.start] for a, b in pairwise(tokens))
        whole = len(tokens) == length and all(gap == " " for gap in gaps)
        return " ".join(token.low for token in tokens) if whole else ""

    def starts_sentence(self, at: int) -> bool:
        """Whether a token begins a sentence or a quotation."""
        return (
            at == 0
            or self.tokens[at - 1].text in OPENERS
            or ("\n" in self.text[self.tokens[at - 1].end : self.tokens[at].start])
        )

    def use(self, at: int, length: int, term: GroupTerm) -> str | None:
        """Return how a term is used here; None if it is not one."""
        if term.kind == "adjective":
            return self.adjective_use(at, length, term)
        if term.kind == "word":
            return self.pronoun_use(at)
        if term.kind == "name":
            return self.name_place(at) if self.is_name(at, term) else None
        check = self.is_title if term.kind == "title" else self.is_noun
        return "" if check(at, length, term) else None

    def pronoun_use(self, at: int) -> str | None:
        """Whether a pronoun owns what follows; None inside "s/he"."""
        token = self.tokens[at]
        if at > 1 and self.tokens[at - 1].text == "/" and self.tokens[at - 2].low in ("s", "w"):
            return None
        if token.low not in ("her", "his"):
            return ""
        owns = self.her_owns(at) if token.low == "her" else self.his_owns(at)
        return "possessive" if owns else "object"

    def his_owns(self, at: int) -> bool:
        """Whether "his" stands before what he has; "hers" is the counterpart of the other use."""
        after = self.token(at + 1)
        if self.low(at + 1) in ("or", "and", "/") and self.low(at + 2) == "her":
            return self.her_owns(at + 2)
        if after is None or not self.begins_phrase(at + 1):
            return False
        # "a friend of his called"
        return self.low(at - 1) != "of" or self.noun_after(at + 1) is not None

    def her_owns(self, at: int) -> bool:
        """Whether "her" stands before what she has, or is an object."""
        after, before = self.token(at + 1), self.verb_before(at)
        if self.low(at + 1) in ("or", "and", "/") and self.low(at + 2) == "his":
            return self.his_owns(at + 2)
        if self.low(at + 1) == "own" or (before.startswith("g") and self.low(at + 1) == "all"):
            return True  # "she gave her all"
        if after is None or not self.begins_phrase(at + 1):
            return False
        if after.low.endswith("ing") and before in self.lists["perception"]:
            beyond = self.token(at + 2)
            return beyond is not None and beyond.is_noun
        two_objects = before in self.lists["two_objects"]
        if not after.is_word:  # a quotation, a number or an amount of money
            return not two_objects
        if after.tag == "CD" and two_objects:
            return False
        if self.is_time_phrase(at + 1) or (after.low == "home" and before in self.lists["motion"]):
            return False
        noun = self.noun_after(at + 1)
        if noun is None:
            # no noun follows: "made her happy", "saw her leave", "everyone but her laughed"
            return after.tag == "VBG" and before not in self.lists["perception"]
        if before in self.lists["bare_infinitive"] and (
            after.tag in ("VB", "VBP") or after.low in self.lists["actions"]
        ):
            return False
        if noun == at + 1:
            person = after.low in self.lists["persons"]
            if person and not (before in self.lists["naming"] and after.low not in _gender_words()):
                return True
            if person or (two_objects and after.tag in ("NNS", "NNPS")):
                return False
        return self.tokens[at].tag != "PRP" or not (
            two_objects or before in self.lists["perception"]
        )

    def noun_after(self, at: int) -> int | None:
        """Return the position of the noun of the phrase that begins here."""
        for j in range(at, min(at + 7, len(self.tokens))):
            token = self.tokens[j]
            if token.is_noun and token.tag not in ("VB", "VBD", "VBZ"):
                return j
            if token.text in _QUOTES or token.text in (",", "-", "/", "&") or token.low == "and":
                continue
            modifier = token.tag[:2] in ("JJ", "CD", "RB", "VB", "PO", "PR", "")
            finite = token.tag in ("VBD", "VBZ", "VBP", "VB", "MD")
            if not modifier or (finite and token.low not in ("left", "lost")):
                return None
        return None

    def begins_phrase(self, at: int) -> bool:
        """Whether a token can follow a possessive: no function word, no punctuation but quotes."""
        token = self.tokens[at]
        spaced = self.tokens[at - 1].end < token.start
        if token.is_word:
            # a closing quotation mark or a bracket may stand between
            return spaced and token.low not in self.lists["after_object"]
        return spaced and (
            token.text in _QUOTES or token.text in "$£€#(" or token.text[0].isdigit()
        )

    def is_time_phrase(self, at: int) -> bool:
        """Whether "last week" or "this morning" begins here and ends the clause."""
        if self.low(at) not in ("last", "next", "this", "every", "early", "late", "first", "once"):
            return False
        end = self.token(at + 2)
        return self.low(at + 1) in self.lists["times"] and (
            end is None or not end.is_word or end.tag in ("IN", "CC")
        )

    def verb_before(self, at: int) -> str:
        """Return the word before, without adverbs."""
        at -= 1
        while at > 0 and self.tokens[at].tag == "RB" and self.tokens[at].is_word:
            at -= 1
        return self.low(at)

    def is_noun(self, at: int, length: int, term: GroupTerm) -> bool:
        """Whether a noun is used as one, about a person, and is no proper name."""
        token, before, after = self.tokens[at], self.token(at - 1), self.token(at + length)
        noun_phrase = before is not None and before.tag in ("DT", "PRP$", "JJ", "CD", "POS")
        if token.tag[:2] in ("VB", "MD") and length == 1 and not noun_phrase:
            return False
        if after is not None and after.is_noun and term.attribute in ("age", "socioeconomic"):
            return False  # "the millionaire sophisticate"
        if token.low in ("male", "female", "males") and after is not None and after.is_noun:
            return False
        if token.low in ("mother", "father", "king", "queen") and self.is_origin(at):
            return False
        if token.tag == "UH" or (token.low in ("man", "boy") and self.is_exclamation(at)):
            return False
        if length == 1 and token.low in ("blonde", "blond", "brunette"):
            joined = after is not None and (after.is_noun or after.low == "and")
            return noun_phrase and not joined
        if term.one[:1].isupper():  # peoples and faiths
            return self.is_proper_noun(at, length, term)
        if not token.text[0].isupper() or self.capitals or self.titled:
            return not self.is_called(at, length)
        if token.text.isupper() and len(token.text) > 1:
            return True
        if not self.starts_sentence(at):
            return term.kind == "kin" and not self.is_part_of_name(at)
        if term.kind == "kin" or token.tag in ("NNS", "NNPS") or token.low.endswith("men"):
            return True
        # "Queen played", "Lady Gaga": a singular noun without an article is a name
        return after is None or not (after.tag[:2] == "VB" or after.text[0].isupper())

    def is_part_of_name(self, at: int) -> bool:
        """Whether a capitalised relative is part of a name: "Warner Brother", "Father Brown"."""
        before = self.token(at - 1)
        follows = before is not None and before.tag.startswith("NNP") and before.text[0].isupper()
        if follows and self.low(at - 1) not in self.lists["title_words"]:
            return True
        ordained = self.low(at) in ("father", "mother", "sister", "brother", "ma", "pa")
        return ordained and self.is_capital(at + 1)

    def is_called(self, at: int, length: int) -> bool:
        """Whether the noun is part of a measure or a fixed name, as in "man-hours"."""
        return self.low(at + length) == "-" or (
            self.low(at - 1) == "-" and self.tokens[at - 1].end == self.tokens[at].start
        )

    def is_origin(self, at: int) -> bool:
        """Whether a parent or a ruler is one of things: "the mother of parliaments"."""
        if self.low(at + 1) != "of":
            return False
        start = at + 2 + (self.low(at + 2) in ("the", "a", "an", "all", "modern"))
        head, _ = self.head_after(start)
        if head is None or self.is_capital(head) or self.tokens[start].tag == "CD":
            return False
        return self.low(head) not in self.lists["persons"]

    def is_exclamation(self, at: int) -> bool:
        """Whether "man" is said in surprise: "Man, that hurt"."""
        if self.low(at - 1) in ("oh", "wow", "damn", "ah", "hey", "yo"):
            return True
        return self.starts_sentence(at) and self.low(at + 1) in (",", "!")

    def is_proper_noun(self, at: int, length: int, term: GroupTerm) -> bool:
        """Whether the name of a people or a faith is a noun: "a Nigerian", "many Jews"."""
        after, before = self.token(at + length), self.token(at - 1)
        named = before is not None and before.tag == "NNP"
        if named or self.is_capital(at - 1) or self.is_capital(at + length):
            return False
        things = ("Islam", "Judaism", "Hinduism", "Quran", "Koran", "Qur'an")
        if term.one in things:
            return True
        plural = term.one.endswith("s") and not term.one.endswith("ese")
        if after is not None and (after.is_noun or after.tag[:2] == "JJ") and not plural:
            return False
        if " " in term.one or plural:
            # "egg whites", "the whites of his eyes"
            food = before is not None and before.tag in ("NN", "NNS")
            return self.low(at) != "whites" or not (food or self.low(at + 1) == "of")
        return before is not None and before.tag in ("DT", "JJ", "CD", "PRP$", "CC")

    def is_title(self, at: int, length: int, term: GroupTerm) -> bool:
        """Whether a title stands before a name; a form of address needs no known name."""
        token = self.tokens[at]
        after = self.token(at + (2 if self.low(at + 1) == "." else 1))
        if not token.text[0].isupper() or after is None or not after.text[0].isupper():
            return term.one in ("Mr", "Mx") and token.low in ("mr", "mrs", "ms", "mx")
        if term.one in ("Mr", "Mister", "Mx"):
            return self.low(at + 2) not in self.lists["places"] or token.low != "miss"
        return after.text in _given_names() and self.low(at + 2) not in self.lists["places"]

    def is_name(self, at: int, term: GroupTerm) -> bool:
        """Whether a given name is that of a person, and not a surname, a place or a word."""
        token, before, after = self.tokens[at], self.token(at - 1), self.token(at + 1)
        if not token.text[0].isupper() or (token.text.isupper() and not self.capitals):
            return False
        for place in (at + 1, at + 2):  # "Victoria Street", "the Jack Adams Award"
            if self.low(place) in self.lists["places"] and self.is_capital(place):
                return False
        if self.low(at - 1) in self.lists["before_places"] or (
            self.low(at - 1) == "." and self.low(at - 2) in self.lists["before_places"]
        ):
            return False
        follows_name = (
            before is not None
            and before.is_word
            and before.text[0].isupper()
            and before.tag in ("NNP", "NNPS", "NN", "JJ", "FW", "")
            and before.low not in self.lists["title_words"]
            and not self.titled
            and not self.capitals
        )
        if follows_name and before is not None:
            middle = before.text in _given_names() and after is not None and after.text[0].isupper()
            if not middle:
                return False
        if token.text.capitalize() not in ambiguous_names():
            return True
        return self.is_person_in_context(at, term)

    def name_place(self, at: int) -> str:
        """Whether a given name stands before a surname, or after a relative."""
        after = self.low(at + 1)
        if self.is_capital(at + 1) or after in ("von", "van", "de", "der", "di", "del", "bin"):
            return "before a name"
        return "after a relative" if self.low(at - 1) in _kin_words() else ""

    def is_person_in_context(self, at: int, term: GroupTerm) -> bool:
        """Whether a name that is also a word or a place is a person, by the words around it."""
        before, after = self.token(at - 1), self.token(at + 1)
        if before is not None:
            if before.low in self.lists["before_place_names"]:
                return False
            if before.low in self.lists["title_words"] or before.low in self.lists["persons"]:
                return True
        if after is not None and after.low in self.lists["person_verbs"]:
            return True
        pronouns = (
            ("he", "his", "him") if self.tokens[at].text == term.one else ("she", "her", "hers")
        )
        verbal = after is not None and (
            after.tag in ("VBD", "VBZ", "MD") or after.low in ("'s", "’s")
        )
        return verbal and any(token.low in pronouns for token in self.tokens)

    def adjective_use(self, at: int, length: int, term: GroupTerm) -> str | None:
        """Return "" before a noun for persons, "predicate" of a person, or None."""
        token, end = self.tokens[at], at + length
        if self.low(at - 1) in self.lists["ages"]:
            return None
        if token.tag == "RB" and self.token(end) is not None:
            return None
        color = token.low in ("black", "white")
        proper = term.one[:1].isupper() and not color
        if self.is_capital(at) and not proper and not color:
            return None
        head, crossed = self.head_after(end)
        if head is not None:
            return self.joined(at, end) if self.describes(at, head, crossed, term, proper) else None
        if self.token(end) is not None and self.tokens[end].text[0].isupper() and proper:
            return None  # "Christian Bale"
        if self.is_predicate_of_person(at):
            blocked = sense_lists()["not_before"].get(token.low, "").split()
            return None if self.low(end) in blocked else "predicate"
        if token.low in self.lists["nominal"] and self.low(at - 1) == "the":
            return "predicate" if self.low(end) != "of" else None
        return None

    def joined(self, at: int, end: int) -> str:
        """Whether a conjunction joins an adjective to one after it, or before it, or neither."""
        joints = (",", "and", "or", "&")
        if self.low(end) in joints:
            return "joined after"
        before = self.token(at - 2)
        adjective = before is not None and before.tag[:2] == "JJ"
        return "joined before" if self.low(at - 1) in joints and adjective else ""

    def describes(
        self, at: int, head: int, crossed: Sequence[str], term: GroupTerm, proper: bool
    ) -> bool:
        """Whether an adjective in front of this noun describes people."""
        noun = self.low(head)
        known = self.lists["persons"] | self.lists["communities"]
        if noun in self.lists["minors"] and self.low(at) in self.lists["ages_of_adults"]:
            return False
        if proper and (self.is_capital(at - 1) or self.is_capital(at + 1)):
            return False  # "Sunni Muslim clerics", "an Islamic Jihad official"
        if proper:
            known |= self.lists["faithful"] if term.one in _FAITHS else frozenset()
        elif not all(word in self.lists["modifiers"] or word in known for word in crossed):
            return False
        if self.low(at) == "poor" and self.is_pitied(at, head):
            return False
        return noun in known and not (
            self.is_capital(head) and self.tokens[head].tag.startswith("NNP")
        )

    def is_pitied(self, at: int, head: int) -> bool:
        """Whether "poor" is said in pity: "Poor girl!"."""
        determined = any(
            token.tag in ("DT", "PRP$", "CD", "IN") for token in self.tokens[max(0, at - 3) : at]
        )
        return not determined and self.tokens[head].tag not in ("NNS", "NNPS")

    def is_capital(self, at: int) -> bool:
        """Whether a word is capitalised as a name, and not as the first of a sentence."""
        token = self.token(at)
        if token is None or self.titled or self.capitals or self.starts_sentence(at):
            return False
        return token.is_word and token.text[0].isupper() and token.low not in _AMERICAN

    def head_after(self, at: int) -> tuple[int | None, list[str]]:
        """Return the last noun of the phrase that continues here, and the nouns before it."""
        nouns: list[int] = []
        for j in range(at, min(at + 7, len(self.tokens))):
            token = self.tokens[j]
            if token.low in ("and", "or", ",", "/", "&") and not nouns:
                beyond = self.token(j + 1)
                if beyond is not None and (beyond.tag[:2] == "JJ" or beyond.low == "white"):
                    continue
                break
            if token.is_noun and token.tag not in ("VBD", "VBZ", "MD"):
                nouns.append(j)
            elif nouns or not (token.tag[:2] in ("JJ", "CD") or token.tag in ("VBN", "VBG")):
                break
        has_verb = any(token.tag in ("VBD", "VBZ", "VBP", "MD") for token in self.tokens)
        if len(nouns) > 1 and not has_verb and self.low(nouns[-2]) in self.lists["persons"]:
            nouns.pop()  # what follows a person must be the verb: "the old teacher paints"
        return (nouns[-1], [self.low(j) for j in nouns[:-1]]) if nouns else (None, [])

    def is_predicate_of_person(self, at: int) -> bool:
        """Whether "is", "looks", … stands before, with a person as the subject."""
        j = at - 1
        while j >= 0 and (
            self.tokens[j].tag[:2] in ("RB", "JJ") or self.low(j) in self.lists["degrees"]
        ):
            j -= 1
        if (
            self.low(j) in self.lists["person_pronouns"]
            and self.low(j - 1) in self.lists["copulas"]
        ):
            return True
        if j < 0 or self.low(j) not in self.lists["copulas"]:
            return False
        j -= 1
        while j >= 0 and (
            self.tokens[j].tag in ("MD", "RB", "TO", "VBD", "VBP", "VBZ", "VBN", "VB")
            and self.low(j) not in self.lists["persons"]
        ):
            j -= 1
        if j < 0:
            return False
        subject = self.tokens[j]
        if subject.low in self.lists["person_pronouns"] or subject.low in self.lists["persons"]:
            return True
        if subject.low in self.lists["nominal"]:
            return self.low(j - 1) == "the"
        return subject.text in _given_names() and subject.text not in ambiguous_names()

    def token(self, at: int) -> Token | None:
        """Return a token, or None outside the text."""
        return self.tokens[at] if 0 <= at < len(self.tokens) else None

    def low(self, at: int) -> str:
        """Return a token in lower case, or '' outside the text."""
        return self.tokens[at].low if 0 <= at < len(self.tokens) else ""


@cache
def _gender_words() -> frozenset[str]:
    """Return the words of the built-in gender terms: "called her mother"."""
    terms = builtin_terms("gender")
    return frozenset(word for term in terms for word in (term.one.lower(), term.other.lower()))


@cache
def _kin_words() -> frozenset[str]:
    kin = (term for term in builtin_terms("gender") if term.kind == "kin")
    return frozenset(word for term in kin for word in (term.one, term.other))


@cache
def _given_names() -> frozenset[str]:
    names = (term for term in builtin_terms("gender") if term.kind == "name")
    return frozenset(name for term in names for name in (term.one, term.other))
