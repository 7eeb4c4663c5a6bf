"""The engines of the GPX-Matcher: XPath expressions as conjunctions of Boolean predicates over document paths."""

from .engine import GpxEngine, GpxFirstEngine, GpxLastEngine

__all__ = ["GpxEngine", "GpxFirstEngine", "GpxLastEngine"]
