"""How scoring scales: workers, failures, memory growth, streams."""
