"""Whether metrics favour some people over others, why, and what to do about it."""
