"""The program that spark-submit runs on a cluster: the command ``adloom`` as it is installed there.

Alone in its folder: Spark puts the folder of this file before all others that Python imports from.
"""

from spark_jobs.cli import main

if __name__ == "__main__":
    main()
