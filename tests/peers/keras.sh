#!/usr/bin/env bash
# tandem's weights beside real Keras 3. Makes its own venv (pinned packages from PyPI; the network is needed once). Not part of CI.
#   tests/peers/keras.sh [FIXTURES]      default: $TANDEM_FIXTURES
# FIXTURES/xception_mini/xception_mini.h5 is the file that Keras wrote for models/xception_mini; where there is none, its arrays are taken from
# tests/data/keras_h5/xception_mini.txt (names, shapes and SHA-256 of the same file).
# TANDEM: the program (default: build/release/bin/tandem).
set -euo pipefail
cd "$(dirname "$0")/../.."

packages=(keras==3.15.1 jax==0.10.2 jaxlib==0.10.2 h5py==3.16.0 numpy==2.4.6)
venv=build/peers/keras
if [ "$(cat "$venv/installed" 2>/dev/null)" != "${packages[*]}" ]; then
  python3 -m venv --clear "$venv"
  "$venv/bin/pip" install --quiet "${packages[@]}"
  echo "${packages[*]}" >"$venv/installed"
fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
KERAS_BACKEND=jax JAX_PLATFORMS=cpu "$venv/bin/python" tests/peers/keras_peer.py \
  --tandem "${TANDEM:-build/release/bin/tandem}" --fixtures "${1:-${TANDEM_FIXTURES:-}}" --work "$out"
