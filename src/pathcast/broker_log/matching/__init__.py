"""Documents of a log matched as the broker matches them: by what is valid at their sequences."""
