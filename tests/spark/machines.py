"""Machines as tests need them: one without Java, whatever this one has; one on which Spark lives for seconds."""

from pathlib import Path

# Before a command: it runs as on a machine without Java.
WITHOUT_JAVA = str(Path(__file__).parents[2] / "scripts" / "without-java")


def short_lived(folder: Path) -> dict[str, str]:
    """What to add to an environment for a Spark that never pays back the JVM's second compiler, nor threads."""
    folder.mkdir()
    options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    (folder / "spark-defaults.conf").write_text(f"spark.driver.defaultJavaOptions {options}\n", encoding="utf-8")
    return {"SPARK_CONF_DIR": str(folder)}
