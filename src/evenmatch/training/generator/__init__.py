"""Graph-to-text generators fine-tuned with cross-entropy mixed with a reward.

In: graphs with texts, and a reward. Out: a fine-tuned language model in a folder.
Begin with `tune.py`, then `loss.py`; `policy.py` holds the model, `decoding.py` its decoding.
"""
