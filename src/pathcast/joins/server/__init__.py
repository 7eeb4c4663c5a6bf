"""The server with its tables, and the clients that it keeps up to date."""
