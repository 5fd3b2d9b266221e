"""What lies on this machine between runs: folders, fetched packages, contents, a store."""
