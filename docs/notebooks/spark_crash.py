# %% [markdown]
# # A Spark pipeline with a crash
#
# A pipeline file, a stream on Spark, SIGKILL in the middle, and a restart. In the end every delivery is compared with
# a matcher in this process: nothing is lost, nothing comes twice. [When a machine dies](../guides/failures.md)
# explains why.

# %%
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import pathcast
from pathcast.workloads import assign_subscribers, generate_documents, generate_subscriptions, news_schema

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
pathcast_command = [sys.executable, "-c", "from pathcast.cli.app import main; main()"]  # `pathcast` of this environment

# %% [markdown]
# ## Documents and subscriptions
#
# Four Parquet files of 50 documents each, one of which is cut short; 200 subscriptions of 20 readers.

# %%
schema = news_schema()
documents = list(generate_documents(schema, 200, seed=1))
documents[13] = documents[13][:100]
(folder / "news").mkdir()
for number in range(4):
    part = range(number * 50, number * 50 + 50)
    rows = {"number": pa.array(part, pa.int64()), "xml": pa.array([documents[index] for index in part], pa.binary())}
    pq.write_table(pa.table(rows), folder / "news" / f"{number}.parquet")

expressions = generate_subscriptions(schema, 200, seed=1)
readers = assign_subscribers(len(expressions), readers=20, seed=1)
table = {"id": range(1, 201), "subscriber": readers, "xpath": expressions}
pq.write_table(pa.table({name: list(column) for name, column in table.items()}), folder / "subscriptions.parquet")

# %% [markdown]
# ## The pipeline file
#
# One file per micro-batch, so that the stream has four of them.

# %%
pipeline = """
[source]
format = "parquet"
path = "news"
schema = "number long, xml binary"
options = { maxFilesPerTrigger = 1 }

[subscriptions]
table = "subscriptions.parquet"
index = "index"

[deliveries]
path = "deliveries"
columns = ["number"]

[dead_letters]
path = "dead-letters"
columns = ["number"]

[stream]
checkpoint = "checkpoint"
trigger = "available-now"

[spark]
"spark.ui.enabled" = false
"spark.master" = "local[1]"
"spark.sql.shuffle.partitions" = 1
"""
size = (folder / "pipeline.toml").write_text(pipeline)

# %% [markdown]
# ## Run, and kill
#
# After the second micro-batch all processes of the stream get SIGKILL: the command, Spark's JVM and its Python
# workers. (A JVM that lives for some seconds starts twice as fast with one compiler and the simplest collector.)

# %% tags=["varies"]
command = [*pathcast_command, "run", "pipeline.toml"]
environment = os.environ | {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
log = (folder / "log.txt").open("w")
stream = subprocess.Popen(
    command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
)
seen = 0
for line in stream.stdout:
    print(line, end="")
    seen += line.startswith("batch ")
    if seen == 2:
        os.killpg(stream.pid, signal.SIGKILL)
        break
status = stream.wait()
assert seen == 2, (folder / "log.txt").read_text()
print(f"ended by signal {-status}")

# %% [markdown]
# What has been delivered so far may contain part of a third micro-batch:

# %% tags=["varies"]
sorted(path.name for path in (folder / "deliveries").glob("batch=*"))

# %% [markdown]
# ## Run again
#
# The same command. It repeats the micro-batch that was interrupted and continues.

# %% tags=["varies"]
again = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
print(again.stdout)
assert again.returncode == 0, again.stderr

# %% [markdown]
# ## Count
#
# The same subscriptions and documents in this process, without Spark:

# %%
subscriptions = pathcast.Subscriptions()
subscriptions.add_many(expressions, subscribers=readers)
answers = subscriptions.compile().match_many(documents, errors="return")
expected = Counter()
for number, answer in enumerate(answers):
    if isinstance(answer, pathcast.Matches):
        expected.update((number, name) for name in answer.subscribers)

rows = ds.dataset(folder / "deliveries", partitioning="hive").to_table().to_pylist()
found = Counter((row["number"], row["subscriber"]) for row in rows)
lost, twice = expected - found, Counter({row: count for row, count in found.items() if count > 1})
wrong = [row for row in found if row not in expected]
print(f"expected {expected.total():,}, found {found.total():,}")
print(f"lost {lost.total()}, twice {len(twice)}, wrong {len(wrong)}")
assert found == expected

# %%
unreadable = ds.dataset(folder / "dead-letters", partitioning="hive").to_table().to_pylist()
[(row["number"], row["error"]["reason"]) for row in unreadable]
