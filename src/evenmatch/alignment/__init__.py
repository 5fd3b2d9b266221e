"""Alignment: decide which units are matched, given their similarities.

In: problems (similarity matrix, row masses, column masses). Out: one `Alignment` per problem.
Begin with `assignment.py`, then `transport.py` (optimal transport), `partial.py` (units may stay
unmatched) and `lisa.py` (approximate assignment). `batching.py` and `compiled.py` make them fast;
training uses `differentiable.py`. `solver_contract.py` checks the properties that every solver must
have.
"""
