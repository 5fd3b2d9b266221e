"""Integrations: evenmatch behind the interfaces of other libraries.

In: calls as bert_score, torchmetrics, evaluate, TRL, OpenRLHF or verl make them, or data frames.
Out: results in the form that library returns or expects. Begin with the module named after it.
"""
