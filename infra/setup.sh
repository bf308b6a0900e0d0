#!/usr/bin/env bash
# Sets up .venv with the locked Python packages and the jars that Spark needs. Run by `make setup`; quick when done before.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
CACHE=${ADLOOM_CACHE:-$HOME/.cache/adloom}
UV_VERSION=0.13.9
MAVEN_PLUGIN=org.apache.maven.plugins:maven-dependency-plugin:3.8.1

fail() { echo "setup: $*" >&2; exit 1; }

stamp=$(cat pyproject.toml uv.lock infra/jars/pom.xml infra/setup.sh | sha256sum | cut -c1-16)
[ "$(cat .venv/.adloom-setup 2>/dev/null || true)" = "$stamp" ] && [ -x .venv/bin/adloom ] && exit 0

# Python 3.11, Java 17 or 21, Maven: one line each when they are missing.
python=
for candidate in "${PYTHON:-}" python3.11 python3 python; do
  [ -n "$candidate" ] && "$candidate" -c 'import sys, venv; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null && python=$candidate && break
done
[ -n "$python" ] || fail "Python 3.11 is needed and was not found (python3 is $(python3 --version 2>&1 || true)): install it (Debian: apt-get install python3.11 python3.11-venv) or set PYTHON=/path/to/python3.11"
java=java
[ -z "${JAVA_HOME:-}" ] || java=$JAVA_HOME/bin/java
version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n1 || true)
case "$version" in
  17 | 21) ;;
  "") fail "Java 17 is needed and $java was not found: install it (Debian: apt-get install openjdk-17-jre-headless)" ;;
  *) fail "Java 17 or 21 is needed and $java is Java $version: install one (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME" ;;
esac
command -v mvn >/dev/null || fail "Maven is needed and mvn was not found: install it (Debian: apt-get install maven)"

mkdir -p "$CACHE"
uv=$(command -v uv || true)
if [ -z "$uv" ]; then
  uv=$CACHE/uv-$UV_VERSION/bin/uv
  if [ ! -x "$uv" ]; then
    echo "setup: uv $UV_VERSION"
    "$python" -m venv "$CACHE/uv-$UV_VERSION"
    "$CACHE/uv-$UV_VERSION/bin/python" -m pip install --quiet --disable-pip-version-check "uv==$UV_VERSION"
  fi
fi

echo "setup: Python packages"
"$uv" sync --quiet --locked --no-python-downloads --python "$("$python" -c 'import sys; print(sys.executable)')" --compile-bytecode

jars=$CACHE/jars-$(sha256sum <infra/jars/pom.xml | cut -c1-16)
if [ ! -d "$jars" ]; then
  echo "setup: jars"
  rm -rf "$jars.new"
  log=$(mktemp)
  mvn --batch-mode --quiet --file infra/jars/pom.xml $MAVEN_PLUGIN:copy-dependencies \
    -DoutputDirectory="$jars.new" -DincludeScope=runtime >"$log" 2>&1 || fail "Maven could not fetch the jars: $(grep -m1 ERROR "$log" || tail -n1 "$log")"
  rm -f "$log"
  mv "$jars.new" "$jars"
fi
mkdir -p .venv/share/adloom
rm -rf .venv/share/adloom/jars
cp -r "$jars" .venv/share/adloom/jars
echo "$stamp" >.venv/.adloom-setup
echo "setup: done; the command is .venv/bin/adloom"
