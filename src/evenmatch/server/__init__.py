"""The HTTP server: scores, rewards and the viewer.

In: JSON requests. Out: JSON responses, the viewer's page, Prometheus metrics.
Begin with `app.py` (routes), then `queue.py` (batching); `security.py` limits requests.
"""
