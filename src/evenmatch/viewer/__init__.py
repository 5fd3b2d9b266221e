"""One alignment to look at, in a page."""
