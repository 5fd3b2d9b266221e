"""Numbers in, numbers out: correlations, their intervals, tests, clusters. Knows no text."""
