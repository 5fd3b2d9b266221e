"""All five parts in a row: pairs of texts into scores."""
