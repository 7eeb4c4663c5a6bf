"""The select-join paper's evaluation, server side."""
