"""The automaton engine, the default: a lazily determinised automaton over label paths."""

from .engine import AutomatonEngine

__all__ = ["AutomatonEngine"]
