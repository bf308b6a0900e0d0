# The image of all Airflow services: Airflow, the DAGs, and the adloom command with its jars for tasks that need it.
# The first stages are the same text as in spark.Dockerfile, so they are built once.
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
RUN --mount=type=cache,target=/root/.cache/uv \
    uv sync --quiet --locked --no-install-project --no-default-groups --extra jobs --group drivers --group airflow --group postgres
COPY README.md ./
COPY spark_jobs spark_jobs
COPY expectations expectations
RUN --mount=type=cache,target=/root/.cache/uv \
    uv sync --quiet --locked --no-editable --no-default-groups --extra jobs --group drivers --group airflow --group postgres

FROM base
COPY --from=built /opt/adloom/.venv .venv
COPY --from=jars /jars .venv/share/adloom/jars
# The whole source: deploy_streams builds releases from it.
COPY pyproject.toml uv.lock README.md ./
COPY spark_jobs spark_jobs
COPY expectations expectations
COPY dags dags
COPY infra/docker/airflow infra/docker/airflow
ENV PYTHONPATH=/opt/adloom/dags
USER adloom
ENTRYPOINT ["/usr/bin/tini", "--", "/opt/adloom/infra/docker/airflow/start.sh"]
