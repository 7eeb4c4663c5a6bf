"""The mediation paper's evaluation."""
