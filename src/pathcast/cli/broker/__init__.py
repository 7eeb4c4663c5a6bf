"""Commands of a broker: `serve`, `publish`, `subscribe`, `replay`, `token` and `log`."""
