"""Units into vectors, with the weight and the mass of each."""
