#!/usr/bin/env bash
# Builds the fuzz targets and runs each for a while, from the tests' files and those of ../shared/cases where that folder is.
#   scripts/fuzz.sh [SECONDS a target, default 20] [TARGET ...]
# The corpus grows in build/fuzz/corpus; an input that breaks a loader stays in build/fuzz as TARGET-crash-*.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
trap 'exit 130' INT TERM

if ! command -v clang++ >/dev/null; then
  echo "error: clang++ is missing — apt-get install clang libclang-rt-14-dev" >&2
  exit 5
fi
seconds=${1:-20}
shift || true
targets=("$@")
((${#targets[@]} > 0)) || targets=(chat_template config gguf imatrix safetensors tokenizer)

launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake --preset fuzz "${launcher[@]}" >/dev/null
cmake --build --preset fuzz -j "$(nproc)" --target "${targets[@]/%/_fuzz}" | tail -n 1

seeds() { # TARGET: files to start from
  case $1 in
    chat_template) find tests/data ../shared/fixtures ../shared/cases -name '*.jinja' ;;
    config) find tests/data ../shared/fixtures ../shared/cases -name 'config*.json' ;;
    gguf) find tests/data ../shared/cases -name '*.gguf' -size -64k ;;
    imatrix) find tests/data ../shared/cases -name '*imatrix*' -type f -size -64k ;;
    safetensors) find tests/data ../shared/cases -name '*.safetensors' -type f -size -64k ;;
    tokenizer) find tests/data ../shared/fixtures ../shared/cases -name 'tokenizer.json' -size -256k ;;
  esac 2>/dev/null || true
}

# Each input becomes a file: in memory, if there is a place for that.
if [[ -d /dev/shm ]]; then export TMPDIR=/dev/shm; fi
bad=0
for target in "${targets[@]}"; do
  corpus=build/fuzz/corpus/$target
  mkdir -p "$corpus"
  seeds "$target" | while read -r file; do cp "$file" "$corpus/$(sha256sum "$file" | cut -c1-16)"; done
  log=build/fuzz/$target.log
  # Loaders are to refuse what would take much memory before they ask for it.
  if "build/fuzz/tests/fuzz/${target}_fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=262144 \
    -artifact_prefix="build/fuzz/$target-" "$corpus" >"$log" 2>&1; then
    echo "ok     $target: $(grep -c . <(ls "$corpus")) inputs, $(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$log") runs"
  else
    bad=1
    echo "FAILED $target, from $log:"
    grep -E 'ERROR|SUMMARY|runtime error|Test unit' "$log" | head -n 5
  fi
done
exit $bad
