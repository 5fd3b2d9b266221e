"""Compare how three alignments score repeated words, in numbers and in figures.

Run it: python examples/repetition.py
"""

import evenmatch as em
from evenmatch.reports.heatmap import draw_alignment

REFERENCE = "the cat sat on the mat"
METRICS = ["bertscore", "f_disc", "f_cont"]

print(f"{'candidate':<34}" + "".join(f"{name:>11}" for name in METRICS))
for times in (1, 2, 4, 8):
    candidate = "the cat sat on the mat" + " the mat" * (times - 1)
    found = em.score([candidate], [REFERENCE], METRICS)
    shown = candidate if times < 3 else f"the cat sat on (the mat × {times})"
    print(f"{shown:<34}" + "".join(f"{found[name].mean:11.3f}" for name in METRICS))

for name in METRICS:
    aligned = em.align("the cat sat on the mat the mat", REFERENCE, name)
    print("wrote", draw_alignment(aligned, f"repetition-{name}.svg"))
