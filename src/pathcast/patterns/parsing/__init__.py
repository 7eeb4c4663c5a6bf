"""Parsing: XPath expressions to tree patterns."""
