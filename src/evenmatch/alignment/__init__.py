"""A similarity matrix into an alignment: where each unit's credit comes from."""
