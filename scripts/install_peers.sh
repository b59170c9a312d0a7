#!/usr/bin/env bash
# Installs what the tests labelled "peers" compare with: the library that defines compressed-tensors, and torch under it (about
# 6 GB, from PyPI). Into build/peers/python; configure again afterwards (cmake --preset release), then ctest -L peers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python3 -m venv build/peers/python
build/peers/python/bin/pip install --disable-pip-version-check compressed-tensors==0.20.1 torch==2.15.0 safetensors==0.8.0
