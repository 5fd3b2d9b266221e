"""catSeq: a keyphrase generator trained by maximum likelihood and then with rewards.

In: documents with keyphrases. Out: a generator in a folder, and its predictions.
Begin with `train_catseq.py`, then `catseq.py` (the model) and `objectives.py` (the losses).
"""
