"""An overlay on disk."""
