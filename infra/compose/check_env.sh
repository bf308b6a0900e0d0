#!/usr/bin/env bash
# Checks that .env (or the file that COMPOSE_ENV_FILES names) describes a Kafka and an object store of your own completely
# where COMPOSE_PROFILES leaves out the bundled one. Prints every mistake; never a secret.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
file=${COMPOSE_ENV_FILES:-.env}
mistakes=()
mistake() { mistakes+=("$*"); }

is_set() { grep -q "^$1=" "$file"; }
value() { # NAME: the value in the file, without quotes and comment
  sed -n "s/^$1=//p" "$file" | tail -n 1 | sed -E "/^['\"]/! s/[[:space:]]+#.*//; s/[[:space:]]+\$//; s/^'(.*)'\$/\1/; s/^\"(.*)\"\$/\1/"
}
profiles=,$(tr -d ' ' <<<"${COMPOSE_PROFILES-$(value COMPOSE_PROFILES)}"),
has() { [[ $profiles == *",$1,"* || $profiles == ",*," ]]; }
need() { [ -n "$(value "$1")" ] || mistake "$1 is not set: $2"; }
define() { is_set "$1" || mistake "$1 is not set: $2"; }
unwanted() { # PROFILE NAME
  ! is_set "$2" || mistake "$2 is set, but COMPOSE_PROFILES starts the bundled $1: take $1 out of COMPOSE_PROFILES, or remove $2"
}
reachable() { # NAME: its address must mean something in a container
  ! value "$1" | grep -Eq '(^|[/,])(localhost|127\.[0-9.]+|\[::1\])(:|/|,|$)' ||
    mistake "$1 names this machine's loopback, which in a container is the container itself: give an address that others reach"
}
certificate() { # NAME: a file in the folder that the containers see as /etc/ca
  local folder place
  place=$(value "$1") folder=$(value CA_FOLDER)
  folder=${folder:-infra/compose/ca}
  [ -n "$place" ] || { ! is_set "$1" || mistake "$1 is empty: remove it, or name a file in /etc/ca"; return 0; }
  case "$place" in
    /etc/ca/*) [ -r "$folder/${place#/etc/ca/}" ] || mistake "$1 is $place, but there is no ${place#/etc/ca/} in $folder, which containers see as /etc/ca" ;;
    *) mistake "$1 is $place: put the file into $folder, and name it as containers see it, /etc/ca/FILE" ;;
  esac
}

# Compose prefers the shell's variables, which are most likely there for the command line tool.
for name in $(compgen -e | grep -E '^ADLOOM_(LAKE$|KAFKA__|S3__)' || true); do
  [ "${!name}" = "$(value "$name")" ] || mistake "$name is set in this shell, and Compose would prefer it to $file: unset it here"
done
if has kafka; then
  unwanted kafka ADLOOM_KAFKA__BOOTSTRAP_SERVERS
else
  need ADLOOM_KAFKA__BOOTSTRAP_SERVERS "the brokers of your Kafka, as in broker1.example.com:9093,broker2.example.com:9093"
  need ADLOOM_KAFKA__SECURITY_PROTOCOL "SASL_SSL, SSL, SASL_PLAINTEXT or PLAINTEXT"
  define ADLOOM_KAFKA__USERNAME "the user of the jobs; empty without a user"
  if [ -n "$(value ADLOOM_KAFKA__USERNAME)" ]; then
    need ADLOOM_KAFKA__PASSWORD "the user's password"
    need ADLOOM_KAFKA__SASL_MECHANISM "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"
  else
    define ADLOOM_KAFKA__PASSWORD "the user's password; empty without a user"
  fi
  reachable ADLOOM_KAFKA__BOOTSTRAP_SERVERS
fi
if has minio; then
  unwanted minio ADLOOM_S3__ENDPOINT
else
  define ADLOOM_S3__ENDPOINT "the URL of your store, as in https://minio.example.com:9000; empty for Amazon S3"
  need ADLOOM_LAKE "the root of the lake, as in s3a://bucket/prefix"
  need S3_JOBS_ACCESS_KEY_ID "a key of the store that may change the lake"
  need S3_JOBS_SECRET_ACCESS_KEY "the secret that belongs to S3_JOBS_ACCESS_KEY_ID"
  [ -z "$(value S3_AIRFLOW_ACCESS_KEY_ID)" ] || need S3_AIRFLOW_SECRET_ACCESS_KEY "the secret that belongs to S3_AIRFLOW_ACCESS_KEY_ID"
  [ -z "$(value S3_PAGES_ACCESS_KEY_ID)" ] || need S3_PAGES_SECRET_ACCESS_KEY "the secret that belongs to S3_PAGES_ACCESS_KEY_ID"
  reachable ADLOOM_S3__ENDPOINT
fi
if has kafka && has minio; then
  :
elif value COMPOSE_FILE | grep -q docker-compose.tls.yml; then
  mistake "COMPOSE_FILE has docker-compose.tls.yml, which is for the bundled Kafka and MinIO together: remove it, and set the protocol, the endpoint and the ca_file of your own"
else
  certificate ADLOOM_KAFKA__CA_FILE
  certificate ADLOOM_S3__CA_FILE
fi
[ ${#mistakes[@]} = 0 ] && exit 0
echo "up: $file does not say which Kafka and which object store to use (docs/containers.md, Your own Kafka and object store):" >&2
printf '  %s\n' "${mistakes[@]}" >&2
exit 1
