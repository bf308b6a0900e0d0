"""Where the CPU time of a run goes, as flame graphs and as a table: `make profile`."""

import json
import os
import re
import shutil
import signal
import subprocess
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.common import make_events
from infra.environments import python_of
from spark_jobs.config.choices import StateStore
from spark_jobs.config.settings import Settings
from spark_jobs.lake.open import open_lake
from spark_jobs.spark.jars.cache import CACHE
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.session import start_session
from spark_jobs.streams.bounded_run import run

_ARTIFACT = "tools.profiler:async-profiler:4.2"
_LIBRARY = "linux-x64/libasyncProfiler.so"
_INTERVAL_MS = 5
_DRAWN = "simple,norm,minwidth=0.1"
"""Short names, duplicate generated code merged, nothing narrower than 0.1 %: keeps the file small enough to send."""
_PARTS = (
    ("Java: compiling", r"^\[(C1|C2) Comp"),
    ("Java: collecting garbage", r"^\[(GC|G1|Parallel)"),
    (
        "Java: loading classes",
        r"SystemDictionary|ClassLoader\.loadClass|defineClass|LinkResolver|MethodHandleNatives|SymbolTable",
    ),
    ("state: RocksDB", r"rocksdb|RocksDB"),
    ("state: Spark's part", r"StateStore|SymmetricHashJoin|execution/streaming/.*stateful"),
    ("Parquet, writing", r"org/apache/parquet/(hadoop|column|io|schema|bytes)|ParquetOutputWriter"),
    ("Parquet, reading", r"Vectorized|ParquetFileReader"),
    ("JSON", r"JsonParser|[jJ]ackson|[vV]ariant"),
    ("shuffle", r"shuffle"),
    ("sorting", r"Sort"),
    ("other work in tasks", r"^\[Executor"),
    ("planning and commits", r""),
)
"""Parts with the pattern of their stacks; the first match counts."""


def main(
    events: Annotated[int, typer.Option(help="Good events to generate.")] = 1_000_000,
    store: Annotated[StateStore, typer.Option(help="The state store.")] = StateStore.ROCKSDB,
    measure: Annotated[bool, typer.Option(help="Also run the job measure, and profile its Python code.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for input, lake and results; replaced.")] = Path("build/profile"),
) -> None:
    """Run the main job on generated events under a sampling profiler of the whole Java process."""
    console = Console()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    library = _profiler()
    source, stacks = out / "events", out.resolve() / "stacks.txt"
    make_events(events, source)
    settings = Settings.model_validate({"spark": {"state_store": store.value}})
    spark = start_session(settings)
    jvm = spark.sparkContext._jvm  # noqa: SLF001
    assert jvm is not None  # noqa: S101 just started
    pid = int(jvm.java.lang.ProcessHandle.current().pid())
    _command_profiler(pid, library, f"start,event=ctimer,interval={_INTERVAL_MS}ms,threads")
    python = out / "python.svg"
    with console.status("adloom run, profiled"), _sampling_python(python) if measure else nullcontext():
        run(OpenLake.of(open_lake(str(out / "lake")), settings, spark), source, drain=True, measure=measure)
    _command_profiler(pid, library, f"dump,flamegraph,{_DRAWN},title=adloom run,file={out.resolve() / 'flame.html'}")
    _command_profiler(pid, library, f"stop,collapsed,file={stacks}")
    spark.stop()
    seconds = _by_part(stacks)
    (out / "results.json").write_text(json.dumps({"events": events, "store": store.value, "cpu_s": seconds}, indent=2))
    table = Table("part", title=f"{sum(seconds.values()):.0f} CPU seconds after the start of Spark, {events:,} events")
    table.add_column("CPU s", justify="right")
    table.add_column("share", justify="right")
    for part, spent in seconds.items():
        table.add_row(part, f"{spent:.1f}", f"{spent / sum(seconds.values()):.0%}")
    console.print(table)
    console.print(f"flame graph: {out / 'flame.html'}" + (f", of Python: {python}" if measure else ""))


def _profiler() -> Path:
    """The library of async-profiler, downloaded from Maven Central if missing."""
    cache = CACHE / "profiler"
    library = cache / _LIBRARY
    if not library.exists():
        cache.mkdir(parents=True, exist_ok=True)
        fetch = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={cache}"]
        subprocess.run(fetch, check=True)
        (jar,) = cache.glob("async-profiler-*.jar")
        with zipfile.ZipFile(jar) as content:
            content.extract(_LIBRARY, cache)
    return library


def _command_profiler(pid: int, library: Path, command: str) -> None:
    """Sends ``command`` to the profiler in the Java process ``pid``."""
    loading = ["jcmd", str(pid), "JVMTI.agent_load", str(library), f'"{command}"']
    subprocess.run(loading, check=True, capture_output=True, timeout=120)


@contextmanager
def _sampling_python(picture: Path) -> Iterator[None]:
    """Samples this process and Spark's Python workers with py-spy; writes a flame graph as SVG."""
    sampler = Path(python_of("py-spy")).with_name("py-spy")
    of_these = ["--pid", str(os.getpid()), "--subprocesses"]
    with subprocess.Popen([sampler, "record", *of_these, "--output", picture], stdout=subprocess.DEVNULL) as sampling:
        try:
            yield
        finally:
            sampling.send_signal(signal.SIGINT)
            sampling.wait(timeout=60)


def _by_part(stacks: Path) -> dict[str, float]:
    """CPU seconds by part."""
    samples: Counter[str] = Counter()
    with stacks.open() as lines:
        for line in lines:
            stack, count = line.rsplit(" ", 1)
            part = next(name for name, pattern in _PARTS if re.search(pattern, stack))
            samples[part] += int(count)
    return {part: round(count * _INTERVAL_MS / 1000, 2) for part, count in samples.most_common()}


if __name__ == "__main__":
    typer.run(main)
