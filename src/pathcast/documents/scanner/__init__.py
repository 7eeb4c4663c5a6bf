"""The scanner: XML bytes to element arrays in one pass of a kernel."""
