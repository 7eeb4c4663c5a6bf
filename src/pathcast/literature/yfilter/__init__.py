"""The YFilter engine: one shared nondeterministic automaton of all paths, run on a stack of active states."""

from .engine import YFilterEngine

__all__ = ["YFilterEngine"]
