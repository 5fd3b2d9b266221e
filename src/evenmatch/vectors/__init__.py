"""Vectors: one vector, weight and mass per unit.

In: `Units`. Out: `Embedded`, the units with their vectors, averaging weights and transport masses.
Begin with `transformer.py` (contextual embeddings) and `pooling.py` (tokens to units); `lookup.py`
and `hashed.py` need no forward pass, `mover.py` is MoverScore's encoder.
`encoder_contract.py` checks the properties that every encoder must have.
"""
