#!/usr/bin/env bash
# Creates an authority and certificates for Kafka and MinIO, for docker-compose.tls.yml, in infra/compose/certificates or
# the folder that CERTIFICATES names (Compose reads it from .env). You can replace them with certificates of your own
# authority.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
place=${CERTIFICATES:-$here/certificates}
[ -e "$place" ] && { echo "certificates: $place already exists; remove it to create new ones" >&2; exit 1; }
umask 077
mkdir "$place.new"
trap 'rm -rf "$place.new"' EXIT
cd "$place.new"
mkdir ca kafka minio
days=${DAYS:-825}
openssl req -x509 -newkey rsa:3072 -nodes -days "$days" -subj "/CN=adloom authority" -keyout authority.key -out ca/ca.crt 2>/dev/null
sign() { # SERVICE: writes SERVICE/SERVICE.key and SERVICE/SERVICE.crt
  openssl req -newkey rsa:3072 -nodes -subj "/CN=$1" -keyout "$1/$1.key" -out request 2>/dev/null
  openssl x509 -req -in request -CA ca/ca.crt -CAkey authority.key -CAcreateserial -days "$days" -out "$1/$1.crt" \
    -extfile <(echo "subjectAltName=DNS:$1,DNS:localhost,IP:127.0.0.1") 2>/dev/null
  rm request
}
sign kafka
sign minio
cat kafka/kafka.key kafka/kafka.crt >kafka/kafka.pem
mv minio/minio.key minio/private.key
mv minio/minio.crt minio/public.crt
sed -e 's|rules.yml|/etc/prometheus/rules.yml|' -e '/job_name: minio/a\    scheme: https\n    tls_config: { ca_file: /etc/ca/ca.crt }' "$here/../prometheus/prometheus.yml" >ca/prometheus.yml
rm kafka/kafka.key kafka/kafka.crt ca/ca.srl
# The users in the containers are others than here; nobody else gets past the folder itself.
chmod 755 ca kafka minio
chmod 644 ca/* kafka/* minio/*
mv "$place.new" "$place"
trap - EXIT
cat <<END
certificates: $place, good for $days days; authority.key there signs more, keep it safe or remove it
Put this line into .env, and \`make up\`:
COMPOSE_FILE=docker-compose.yml:docker-compose.tls.yml
END
