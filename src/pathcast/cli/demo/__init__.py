"""`pathcast demo`. See demo_command.py."""

from .demo_command import demo

__all__ = ["demo"]
