"""How the HTTP server behaves under load."""
