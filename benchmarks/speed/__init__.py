"""How fast scoring is, against peers and against its own parts."""
