"""The jars that Spark needs besides its own: where they are, and how they get there."""

import sys
from pathlib import Path

from spark_jobs.errors import EnvironmentMissingError
from spark_jobs.spark.jars.cache import CACHE
from spark_jobs.spark.jars.compile import CompileError
from spark_jobs.spark.jars.fetch import FetchError
from spark_jobs.spark.jars.install import InsecureError, folder_in_cache, install, is_sound
from spark_jobs.spark.jars.lock import LockError
from spark_jobs.spark.java import check_java

_GIVEN = Path(sys.prefix) / "share" / "adloom" / "jars"
"""Where `make setup` and the images put them."""


def jars_folder() -> Path:
    """The folder of the jars: the one that set-up or the image gave this Python, or else one in the user's cache."""
    return _GIVEN if _GIVEN.is_dir() else folder_in_cache()


def ready_jars() -> None:
    """Fetches the jars, with progress on stderr, unless a folder of them can be trusted: a wheel brings none.

    Raises:
        EnvironmentMissingError: there is no Java, a jar cannot be fetched, the cache cannot be written or is others'.
    """
    folder = jars_folder()
    # Whoever can change the folder of set-up or of the image can change the Python that runs here, too.
    if folder == _GIVEN or is_sound(folder):
        return
    check_java()
    try:
        install(folder)
    except (FetchError, LockError, CompileError, InsecureError) as error:
        raise EnvironmentMissingError(str(error)) from error
    except OSError as error:
        raise EnvironmentMissingError(
            f"the jars that Spark needs cannot be kept in {CACHE}: {error.strerror}; make room or set ADLOOM_CACHE to "
            "a folder that can be written"
        ) from error


def mending() -> str:
    """The remedy if jars are missing in a folder that exists."""
    return "run `make setup`" if _GIVEN.is_dir() else f"remove {jars_folder()}: the next start of Spark fetches them"
