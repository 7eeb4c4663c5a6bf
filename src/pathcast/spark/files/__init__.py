"""A streaming source over files: each file once, when it is complete."""
