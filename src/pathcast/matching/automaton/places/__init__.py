"""Places and counts of elements, as attributes of the elements, for patterns with positions."""
