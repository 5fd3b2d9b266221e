"""Names of neighbouring tools, for people who come from them."""
