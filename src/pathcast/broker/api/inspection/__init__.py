"""Endpoints for people who look at a broker: what happens, what an expression selects, who gets what."""
