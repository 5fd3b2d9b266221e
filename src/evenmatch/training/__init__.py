"""Training: metrics fitted to ratings, and generators trained with rewards.

In: ratings, graphs or documents, and settings. Out: metrics, rewards and generators in folders.
Begin with `loop.py`; each subfolder trains one kind of model.
"""
