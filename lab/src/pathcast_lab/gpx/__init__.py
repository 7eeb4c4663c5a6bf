"""The GPX-Matcher paper's evaluation."""
