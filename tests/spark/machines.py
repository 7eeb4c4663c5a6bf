"""Machines as tests need them: one without Java, whatever this one has; one on which Spark lives for seconds."""

import os
from pathlib import Path


def without_java(folder: Path) -> dict[str, str]:
    """An environment without JAVA_HOME whose PATH has all commands of this machine but java."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        if not Path(place).is_dir():
            continue
        for command in Path(place).iterdir():
            link = folder / command.name
            if command.name != "java" and not link.is_symlink():
                link.symlink_to(command)
    hidden = {"JAVA_HOME", "SPARK_LOCAL_IP", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"}
    return {key: value for key, value in os.environ.items() if key not in hidden} | {"PATH": str(folder)}


def short_lived(folder: Path) -> dict[str, str]:
    """What to add to an environment for a Spark that never pays back the JVM's second compiler, nor threads."""
    folder.mkdir()
    options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    (folder / "spark-defaults.conf").write_text(f"spark.driver.defaultJavaOptions {options}\n", encoding="utf-8")
    return {"SPARK_CONF_DIR": str(folder)}
