"""Pipelines: a TOML file in, a batch or streams with reports out."""
