"""Pretrained models: checkpoints, tokenizers, and forward passes without padding.

In: the name or folder of a checkpoint, and texts. Out: hidden states per text and layer.
Begin with `backbone.py`; `fast_bert.py` is its fast path for BERT checkpoints. `heads.py` loads
whole models with their head (language models, regression).
"""
