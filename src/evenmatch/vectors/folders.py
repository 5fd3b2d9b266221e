"""Where models and stored results lie: the names of `storage.folders`, for who looks here."""

from evenmatch.storage.folders import cache_dir, models_dir

__all__ = ["cache_dir", "models_dir"]
