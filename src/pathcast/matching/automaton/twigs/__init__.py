"""Twigs: patterns of elements alone that branch off one path."""
