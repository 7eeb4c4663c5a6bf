"""Containment of tree patterns, upper bounds, generalisation and minimisation."""
