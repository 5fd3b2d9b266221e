"""Corpora larger than a sitting: shards of rows, a record of what is done, workers anywhere."""
