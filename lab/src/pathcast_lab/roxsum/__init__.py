"""The RoXSum paper's evaluation."""
