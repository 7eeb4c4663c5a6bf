"""Environments for tests: without Java, whatever this machine has; for a Spark that lives for seconds."""

from pathlib import Path

# Before a command: it runs as on a machine without Java.
WITHOUT_JAVA = str(Path(__file__).parents[2] / "scripts" / "without-java")


# How long a test waits for an event that must happen, in seconds: busy machines are slow.
MINUTES = 500
# The beginning of a program for `python -c`: a shell without job control starts programs that ignore Ctrl-C.
CTRL_C_WORKS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"


def short_lived(folder: Path) -> dict[str, str]:
    """Environment variables for a short-lived Spark: no second compiler of the JVM, fewer threads."""
    folder.mkdir()
    options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    (folder / "spark-defaults.conf").write_text(f"spark.driver.defaultJavaOptions {options}\n", encoding="utf-8")
    return {"SPARK_CONF_DIR": str(folder)}
