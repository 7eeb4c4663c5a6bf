"""The select-join paper's evaluation, network side."""
