#!/usr/bin/env bash
# Installs the Debian packages that tandem is built, tested and shown with, as far as they are missing. Quiet when nothing is missing.
# Needs root, or sudo. `tools/setup.sh --list` prints the packages and installs nothing.
set -euo pipefail

packages=(
  # compiler and build
  build-essential cmake ninja-build ccache pkg-config clang-format-14
  # libraries
  libonnx-dev libprotobuf-dev protobuf-compiler libhdf5-dev libfmt-dev libcli11-dev nlohmann-json3-dev
  libhwy-dev
  libjpeg-dev libspng-dev libwebp-dev zlib1g-dev libzip-dev
  # tests and demo
  libgtest-dev libbenchmark-dev libonnx-testdata dataset-fashion-mnist
)

if [ "${1:-}" = --list ]; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup.sh: this machine has no apt; install these packages' counterparts: ${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "setup.sh: needs root or sudo to install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi

echo "setup.sh: installing ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q "$@" >>"$log" 2>&1; }
if ! { apt update && apt install -y --no-install-recommends "${missing[@]}"; }; then
  tail -n 20 "$log" >&2
  echo "setup.sh: apt-get could not install: ${missing[*]}" >&2
  exit 1
fi
