"""Metrics made from ratings, or from another metric."""
