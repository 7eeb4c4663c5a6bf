"""Middleware of the broker's HTTP surface: who sends a request, and the memory that request bodies take."""
