#!/bin/sh
# Installs zsh and fish from Debian's packages where they are missing, for the tests that let real shells
# complete command lines. Does nothing where they exist. Without them those tests are skipped, and say so.
set -eu

missing=""
for shell in zsh fish; do
  if ! command -v "$shell" >/dev/null 2>&1; then missing="$missing $shell"; fi
done
if [ -z "$missing" ]; then
  echo "zsh and fish are installed"
  exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "ensure-shells: needs root and apt-get to install$missing; their tests will be skipped" >&2
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # two words
if ! { apt-get update && apt-get install -y --no-install-recommends $missing; }; then
  echo "ensure-shells: could not install$missing; their tests will be skipped" >&2
fi
