"""The experiments of LiSAScore (Mander and Phillips, 2024).

In: sentence pairs. Out: scores of aligned and shuffled pairs, quality and speed of approximations.
Begin with `grid.py`, then `findings.py`; `trade_off.py` compares with exact assignment.
"""
