"""Text into units: what the later parts compare."""
