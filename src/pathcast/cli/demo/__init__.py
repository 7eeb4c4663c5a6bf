"""`pathcast demo`. See command.py."""

from .command import demo

__all__ = ["demo"]
