#!/usr/bin/env bash
# Prepares what the stack needs to start: the topics, the lake's bucket, and a user for the jobs, for Airflow's tasks and
# for its pages. Of a Kafka or a store of your own (OWN_KAFKA, OWN_STORE) it changes nothing: it checks them, and puts your
# keys where the services look for theirs.
set -euo pipefail
umask 077

# A lake in a folder needs no preparation, so this is about Kafka alone.
if [ -n "${OWN_KAFKA:-}" ]; then
  adloom init --check --lake /tmp
else
  adloom init --lake /tmp --partitions "$TOPIC_PARTITIONS" --reader jobs --writer sender
fi
export ADLOOM_KAFKA__BOOTSTRAP_SERVERS= # the rest is about the store alone

write_keys() { # ROLE KEY SECRET; printf is built in, so the secret is on no command line
  printf '[adloom-%s]\naws_access_key_id = %s\naws_secret_access_key = %s\n' "$1" "$2" "$3" >"/keys/$1/credentials.new"
  mv "/keys/$1/credentials.new" "/keys/$1/credentials"
}
use_user() { # ROLE: creates its user; the keys go to /keys/ROLE/credentials
  # Keys that are not MinIO's are left from a store of your own.
  grep -qsx "aws_access_key_id = adloom-$1" "/keys/$1/credentials" || rm -f "/keys/$1/credentials"
  AWS_SHARED_CREDENTIALS_FILE=/keys/$1/credentials adloom init --lake "$ADLOOM_LAKE" --user "adloom-$1" --role "$1"
}
check_keys() { # ROLE: whether the store accepts the keys in /keys/ROLE/credentials
  AWS_SHARED_CREDENTIALS_FILE=/keys/$1/credentials ADLOOM_S3__PROFILE=adloom-$1 adloom init --check --lake "$ADLOOM_LAKE"
}

if [ -n "${OWN_STORE:-}" ]; then
  unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
  key=${S3_JOBS_ACCESS_KEY_ID:?is the key of the jobs; set it in .env} secret=${S3_JOBS_SECRET_ACCESS_KEY:?belongs to the key}
  write_keys jobs "$key" "$secret"
  key=${S3_AIRFLOW_ACCESS_KEY_ID:-$key} secret=${S3_AIRFLOW_SECRET_ACCESS_KEY:-$secret}
  write_keys airflow "$key" "$secret"
  write_keys pages "${S3_PAGES_ACCESS_KEY_ID:-$key}" "${S3_PAGES_SECRET_ACCESS_KEY:-$secret}"
  check_keys jobs
  check_keys airflow
  check_keys pages
else
  use_user jobs
  use_user airflow
  use_user pages
fi
# Airflow's maintenance tasks also need the jobs' keys.
cat /keys/jobs/credentials /keys/airflow/credentials >/keys/tasks/credentials

# Airflow's tasks sign the releases that they build; drivers and tasks run no other. Those from before were trusted.
if [ ! -e /keys/tasks/release.pem ]; then
  rm -f /keys/tasks/release.new
  adloom releases key /keys/tasks/release.new >/keys/tasks/release.pub
  AWS_SHARED_CREDENTIALS_FILE=/keys/jobs/credentials ADLOOM_S3__PROFILE=adloom-jobs \
    ADLOOM_RELEASE_KEY=/keys/tasks/release.new adloom releases sign --all --lake "$ADLOOM_LAKE"
  cp /keys/tasks/release.pub /keys/jobs/release.pub
  mv /keys/tasks/release.new /keys/tasks/release.pem
fi
