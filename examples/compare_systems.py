"""Score the four systems of the included sample with four metrics and show their worst outputs.

Run it: python examples/compare_systems.py
"""

import evenmatch as em
from evenmatch.data.pairs import read_everyday_sample

METRICS = ["bertscore", "bertscore(idf=True)", "f_disc", "f_cont"]

print(f"{'system':<12}" + "".join(f"{name:>21}" for name in METRICS))
for system, pairs in read_everyday_sample().items():
    candidates = [pair.candidate for pair in pairs]
    references = [list(pair.references) for pair in pairs]
    found = em.score(candidates, references, METRICS)
    print(f"{system:<12}" + "".join(f"{found[name].mean:21.3f}" for name in METRICS))
    worst = min(range(len(pairs)), key=lambda row: found["f_disc"].segments[row].value)
    print(f"    lowest f_disc: {candidates[worst]!r}")

print("\nsignature:", found["bertscore(idf=True)"].signature)
