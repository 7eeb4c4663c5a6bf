"""The broker's settings: `broker.toml`, declared once."""
