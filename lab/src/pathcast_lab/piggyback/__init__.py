"""The piggyback paper's evaluation."""
