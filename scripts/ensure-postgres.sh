#!/bin/sh
# Installs the PostgreSQL server programs from Debian's packages where they are missing, for the
# tests that run against a real server. It starts nothing: the tests start a private server of
# their own and remove it again. Does nothing where the programs exist.
set -eu

if ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
  echo "PostgreSQL is installed: $(ls -d /usr/lib/postgresql/*/bin | tail -n 1)"
  exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "ensure-postgres: must run as root to install packages" >&2
  exit 1
fi
if ! command -v apt-get >/dev/null 2>&1; then
  echo "ensure-postgres: needs apt-get; install a PostgreSQL server another way" >&2
  exit 1
fi
# The package would create and start a cluster of its own; the tests want only the programs.
mkdir -p /etc/postgresql-common
if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
  echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y --no-install-recommends postgresql
ls -d /usr/lib/postgresql/*/bin
