"""An overlay of routers on Spark."""
