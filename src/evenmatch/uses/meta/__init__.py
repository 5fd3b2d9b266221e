"""Metrics against people, and systems against each other."""
