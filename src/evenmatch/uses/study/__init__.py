"""The papers' experiments, and what we measure beyond them."""
