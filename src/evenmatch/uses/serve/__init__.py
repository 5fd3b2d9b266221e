"""Scores, rewards and alignments over HTTP, and the page to look at them."""
