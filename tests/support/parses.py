"""Manual parses of the two sentences of Figure 1 of Chousa and Hirao (2025), as files."""

from __future__ import annotations

from pathlib import Path

HAVING = "I saw a girl having a telescope ."
BY = "I saw a girl by a telescope ."
# Heads count from 1, and 0 is the root.
_HEADS = {HAVING: (2, 0, 4, 2, 4, 7, 5, 2), BY: (2, 0, 4, 2, 2, 7, 5, 2)}
_TAGS = "PRP VBD DT NN VBG DT NN ."


def write_conllu(folder: Path, sentences: dict[str, tuple[int, ...]] | None = None) -> str:
    """Write a CoNLL-U file of these sentences with their heads, and return its path."""
    lines = []
    for text, heads in (sentences or _HEADS).items():
        tags = _TAGS.split() if sentences is None else ["NN"] * len(heads)
        lines.append(f"# text = {text}")
        for n, (word, tag, head) in enumerate(zip(text.split(), tags, heads, strict=True), 1):
            lines.append(f"{n}\t{word}\t_\t_\t{tag}\t_\t{head}\tdep\t_\t_")
        lines.append("")
    path = folder / "hand.conllu"
    path.write_text("\n".join(lines), "utf-8")
    return str(path)


def write_brackets(folder: Path, *trees: str) -> str:
    """Write a file of bracketed trees, and return its path."""
    path = folder / "hand.ptb"
    path.write_text("\n".join(trees), "utf-8")
    return str(path)
