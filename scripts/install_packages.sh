#!/usr/bin/env bash
# Installs the Debian 12 packages that building Wring needs, and with --test those that checking it needs too.
# Only what is missing is installed; where nothing is, nothing is asked of the network.
set -euo pipefail

build=(
  ca-certificates ccache cmake g++ git ninja-build pkg-config python3 python3-venv
  libcli11-dev libfmt-dev libgmock-dev libgtest-dev liblapacke-dev libopenblas-dev libpcre2-dev libspdlog-dev libsqlite3-dev libsqlitecpp-dev
  libssl-dev libutf8proc-dev libxxhash-dev nlohmann-json3-dev
  libjs-chart.js
)
test=(clang clang-format-14 clang-tidy-14 libclang-rt-14-dev libsimde-dev python3-numpy qemu-user-static)

wanted=("${build[@]}")
case "${1:-}" in
  "") ;;
  --test) wanted+=("${test[@]}") ;;
  *)
    echo "usage: $0 [--test]" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "error: this is not a Debian system; install the equivalents of: ${wanted[*]}" >&2
  exit 4
fi

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [[ $status == *" installed" ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  echo "packages: all there"
  exit 0
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "error: these packages are missing: ${missing[*]} — run this as root, or install sudo" >&2
    exit 5
  fi
  as_root=(sudo)
fi
echo "packages: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${as_root[@]}" apt-get update && "${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]}"; } \
  >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "error: apt-get could not install ${missing[*]} — is the network there?" >&2
  exit 5
fi
