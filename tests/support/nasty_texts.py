"""Fifty pairs of texts that break naive code: empty, very long, control characters, scripts."""

from __future__ import annotations

_LONG = "It was the best of times, it was the worst of times. "

NASTY_TEXTS = (
    "",
    " ",
    "\t\n\r ",
    "\u00a0\u2003",
    "\u200b\u200d\ufeff",
    ".",
    "...!?",
    ";;;",
    "a;b; ;c;a",
    "the the the the",
    "The The THE the",
    "x",
    "x" * 3000,
    _LONG * 60,
    "word " * 900,
    "\U0001f600\U0001f469\u200d\U0001f469\u200d\U0001f467\U0001f1e9\U0001f1ea",
    "na\u00efve caf\u00e9",
    "nai\u0308ve cafe\u0301",
    "a" + "\u0301" * 40,
    "\u0627\u0644\u0642\u0637\u0629 \u062c\u0644\u0633\u062a",
    "\u05d4\u05d7\u05ea\u05d5\u05dc \u05d9\u05e9\u05d1 12 \u202eabc\u202c",
    "\u732b\u304c\u5ea7\u3063\u305f\u3002",
    "\u041a\u043e\u0448\u043a\u0430 \u0441\u0438\u0434\u0435\u043b\u0430.",
    "\x00\x01\x07null\x00byte",
    "\x1b[31mred\x1b[0m",
    "line one\nline two\r\nline three",
    "1,234.56 -7e-10 \u00bd \u2167",
    "3 4 5 3 4 5",
    "<b>bold &amp; brave</b>",
    "[CLS] [SEP] [UNK] [MASK] <s> </s> <pad>",
    "##ing ##s",
    "\ufffd\ufffd",
    "\uff21\uff22\uff23 \ufb01ne",
    "don't can't won't 'twas",
    "e-mail-based state-of-the-art",
    "http://example.org/a?b=c&d=%20e",
    "C:\\path\\to \\n \\t",
    "{'a': [1, 2, {}]} %s {0}",
    "\u2028\u2029paragraphs",
    "It\u2019s \u201cquoted\u201d \u2014 and dashed\u2026",
    "I",
    "dog bites man",
    "man bites dog",
    "The cat sat on the mat.",
    "the cat sat on the mat",
    "a b c d e f g h i j k l m n o p q r s t u v w x y z",
    "z y x w v u t s r q p o n m l k j i h g f e d c b a",
    "Buffalo buffalo Buffalo buffalo buffalo buffalo Buffalo buffalo.",
    "\u0e41\u0e21\u0e27\u0e19\u0e31\u0e48\u0e07",
    "the end",
)
# Every text with itself or with a later one, in turn.
NASTY_PAIRS = tuple(
    (text, NASTY_TEXTS[(n + (0, 1, 3, 7, 25)[n % 5]) % len(NASTY_TEXTS)])
    for n, text in enumerate(NASTY_TEXTS)
)
