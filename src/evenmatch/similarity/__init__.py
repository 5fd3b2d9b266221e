"""Two embedded texts into a matrix of similarities, candidate units by reference units."""
