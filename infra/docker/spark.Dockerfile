# The image of Spark's master, its workers and the drivers. Python packages come from uv.lock, jars from
# spark_jobs/spark/jars/jars.lock. The first stages are the same text as in airflow.Dockerfile, so they are built once.
FROM python:3.11-slim-bookworm AS base
RUN apt-get update && apt-get install -y --no-install-recommends openjdk-17-jre-headless tini \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --no-create-home --home-dir /var/lib/adloom adloom \
 && install -d -o adloom -g adloom /var/lib/adloom /var/lib/adloom/logs /keys /keys/jobs /keys/airflow /keys/pages /keys/tasks
WORKDIR /opt/adloom
ENV PATH=/opt/adloom/.venv/bin:/usr/local/bin:/usr/bin:/bin HOME=/var/lib/adloom \
    UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1 UV_PYTHON_DOWNLOADS=never PYTHONUNBUFFERED=1

FROM base AS packages
RUN --mount=type=cache,target=/root/.cache/pip pip install --quiet --root-user-action=ignore uv==0.13.9
COPY pyproject.toml uv.lock ./
RUN --mount=type=cache,target=/root/.cache/uv \
    uv sync --quiet --locked --no-install-project --no-default-groups --extra jobs --group drivers

FROM packages AS jars
COPY spark_jobs/spark/jars spark_jobs/spark/jars
RUN --mount=type=cache,target=/var/cache/jars ADLOOM_CACHE=/var/cache/jars python -m spark_jobs.spark.jars.install /jars

FROM packages AS built
COPY README.md ./
COPY spark_jobs spark_jobs
COPY expectations expectations
RUN --mount=type=cache,target=/root/.cache/uv uv sync --quiet --locked --no-editable --no-default-groups --extra jobs --group drivers

FROM base
COPY --from=built /opt/adloom/.venv .venv
COPY --from=jars /jars .venv/share/adloom/jars
COPY infra/supervisor/drivers.conf infra/supervisor/drivers.conf
COPY infra/docker/spark infra/docker/spark
ENV SPARK_HOME=/opt/adloom/.venv/lib/python3.11/site-packages/pyspark
USER adloom
ENTRYPOINT ["/usr/bin/tini", "--", "/opt/adloom/infra/docker/spark/start.sh"]
