"""The scanner: XML bytes to element arrays by a kernel."""
