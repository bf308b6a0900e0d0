#!/usr/bin/env bash
# Creates what the stack needs to start: the lake's bucket, a user for the jobs, a user for Airflow, and the topics.
set -euo pipefail
make_user() { # ROLE: its keys go to /keys/ROLE/credentials
  AWS_SHARED_CREDENTIALS_FILE=/keys/$1/credentials \
    adloom init --lake "$ADLOOM_LAKE" --user "adloom-$1" --role "$1" --partitions "$TOPIC_PARTITIONS"
}
make_user jobs
make_user airflow
# Airflow's maintenance tasks also need the jobs' keys.
umask 077
cat /keys/jobs/credentials /keys/airflow/credentials >/keys/tasks/credentials
