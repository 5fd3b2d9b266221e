"""Vectors: one vector, weight and mass per unit.

In: `Units`. Out: `Embedded`, the units with their vectors, averaging weights and transport masses.
Begin with `transformer.py` (contextual embeddings); `lookup.py` and `hashed.py` need no forward pass.
"""
