"""Keyphrases: documents in, tables out; and a scorer of phrases to train."""
