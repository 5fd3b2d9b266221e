"""Training: metrics fitted to human ratings, and generators trained with rewards.

In: ratings, graphs or documents, and settings. Out: metrics, rewards and generators in folders.
Begin with `loop.py`, the training loop of all models; each subfolder trains one kind of model.
"""
