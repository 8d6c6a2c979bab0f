#!/usr/bin/env bash
# The TensorBoard events of `tandem train` read by the real package. Makes its own venv (pinned packages from PyPI; the network is needed once).
# Not part of CI.
#   tests/peers/tensorboard.sh
# TANDEM: the program (default: build/release/bin/tandem).
set -euo pipefail
cd "$(dirname "$0")/../.."

packages=(tensorboard==2.21.0 numpy==2.4.6 protobuf==7.36.2 setuptools==80.9.0)
venv=build/peers/tensorboard
if [ "$(cat "$venv/installed" 2>/dev/null)" != "${packages[*]}" ]; then
  python3 -m venv --clear "$venv"
  "$venv/bin/pip" install --quiet "${packages[@]}"
  echo "${packages[*]}" >"$venv/installed"
fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$venv/bin/python" tests/peers/tensorboard_peer.py --tandem "${TANDEM:-build/release/bin/tandem}" --work "$out"
