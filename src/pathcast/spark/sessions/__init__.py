"""The Spark session, the Java that it runs on, and its Python workers."""
