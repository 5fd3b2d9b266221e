"""What one does with scores."""
