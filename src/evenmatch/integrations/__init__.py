"""Integrations: evenmatch behind the interfaces of other libraries.

In: calls in the style of bert_score, torchmetrics, evaluate, TRL, OpenRLHF, verl or data frames.
Out: results in their style. Begin with the module named after the library.
"""
