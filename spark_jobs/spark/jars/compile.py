"""Compiles adloom's own Java classes into a jar next to the others.

It needs no JDK but a Java: Janino compiles, which Spark ships to compile the code that it generates. Janino has no
generics, so the sources do without.
"""

import os
import subprocess
import tempfile
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from spark_jobs.spark.jars.spark import jars_of_spark, java

_COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"
ADLOOM_JAR = "adloom.jar"
"""The name of the jar with adloom's own classes."""


class CompileError(Exception):
    """Raised when a source cannot be compiled."""


def compile_jar(sources: Path, jars: Path) -> Path:
    """Compiles each ``.java`` below ``sources`` against the jars in ``jars`` and Spark's own.

    Returns:
        The jar with their classes, in ``jars``; the same classes give the same bytes.

    Raises:
        CompileError: there is no Java, or a source is wrong.
    """
    of_spark = jars_of_spark()
    if of_spark is None:
        raise CompileError("PySpark is not installed, whose jars are needed")
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *(java(), "-cp", os.pathsep.join(_named(of_spark, "janino", "commons-compiler")), _COMPILER),
            *("-d", folder, "-encoding", "UTF-8", "-g"),
            *("-classpath", os.pathsep.join(map(str, [*sorted(jars.glob("*.jar")), *sorted(of_spark.glob("*.jar"))]))),
            *map(str, sorted(sources.rglob("*.java"))),
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        except FileNotFoundError as error:
            raise CompileError(f"{command[0]} was not found, which compiles {sources}") from error
        classes = sorted(Path(folder).rglob("*.class"))
        if done.returncode or not classes:
            raise CompileError(f"{sources} cannot be compiled: {done.stdout}{done.stderr}")
        draft = Path(folder) / ADLOOM_JAR
        with ZipFile(draft, "w", ZIP_DEFLATED) as jar:
            for file in classes:
                # The time of an entry is that of the oldest file a zip can have, not now.
                jar.writestr(ZipInfo(file.relative_to(folder).as_posix()), file.read_bytes())
        (jars / ADLOOM_JAR).write_bytes(draft.read_bytes())
    return jars / ADLOOM_JAR


def _named(folder: Path, *names: str) -> list[str]:
    return [str(jar) for name in names for jar in sorted(folder.glob(f"{name}-[0-9]*.jar"))]
