"""What packages carry: the names of `storage.packages`, for who looks here."""

from evenmatch.storage.packages import EMBEDDED, Package, file_sha256, unpack

__all__ = ["EMBEDDED", "Package", "file_sha256", "unpack"]
