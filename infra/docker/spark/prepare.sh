#!/usr/bin/env bash
# What the stack needs before it starts: the lake's bucket, a user for the jobs and one for Airflow, the topics.
set -euo pipefail
make_user() { # ROLE, whose keys go to /keys/ROLE/credentials
  AWS_SHARED_CREDENTIALS_FILE=/keys/$1/credentials \
    adloom init --lake "$ADLOOM_LAKE" --user "adloom-$1" --role "$1" --partitions "$TOPIC_PARTITIONS"
}
make_user jobs
make_user airflow
# Airflow's tasks care for tables and checkpoints with the keys of the jobs.
umask 077
cat /keys/jobs/credentials /keys/airflow/credentials >/keys/tasks/credentials
