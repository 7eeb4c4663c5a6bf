"""Skylines of key points: the envelope of a point, and the few points that describe a set of semijoins."""
