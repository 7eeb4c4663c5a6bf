"""The command line: `pathcast match`, `generate`, `run`, `demo`, `doctor` and others (see `app.py`)."""
