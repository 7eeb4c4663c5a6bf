"""Schema trees: where they come from, what corresponds in them, and their integration."""
