"""The commands: `pathcast match`, `generate`, `experiment`, `demo` and `doctor` (see `app.py`)."""
