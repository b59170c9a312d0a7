#!/usr/bin/env bash
# Builds the fuzz targets (preset asan) and runs each for a while, as many at a time as there are cores, from what
# tests/fuzz/make_seeds.cc makes and the small files of tests/data and, where that folder is, ../shared.
#   scripts/fuzz.sh [SECONDS a target, default 20] [TARGET ...]
# The corpus grows in build/fuzz/corpus; an input that breaks a loader stays in build/fuzz as TARGET-crash-* and the like.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
trap 'exit 130' INT TERM

if ! command -v clang++ >/dev/null; then
  echo "error: clang++ is missing — run scripts/install_packages.sh --test" >&2
  exit 5
fi
seconds=${1:-20}
shift || true
targets=("$@")
((${#targets[@]} > 0)) || targets=(chat_template config gguf imatrix safetensors tokenizer)
cores=$(nproc)

launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
mkdir -p build/fuzz
if ! { cmake --preset asan "${launcher[@]}" &&
  cmake --build --preset asan -j "$cores" --target make_seeds "${targets[@]/%/_fuzz}"; } >build/fuzz/build.log 2>&1; then
  echo "FAILED to build, from build/fuzz/build.log:"
  tail -n 60 build/fuzz/build.log
  exit 1
fi

files() { # TARGET: those to start from; longer ones would leave time for little else
  case $1 in
    chat_template) ;;
    config) find tests/data ../shared/fixtures ../shared/cases -name 'config*.json' ;;
    gguf) find ../shared/cases -name '*.gguf' -size -64k ;;
    imatrix) ;;
    safetensors) find ../shared/cases -name '*.safetensors' -type f -size -64k ;;
    tokenizer) find tests/data ../shared/fixtures ../shared/cases -name 'tokenizer.json' -size -64k ;;
  esac 2>/dev/null || true
}

fuzz() { # TARGET
  local target=$1 seeds=build/fuzz/seeds/$1 corpus=build/fuzz/corpus/$1 log=build/fuzz/$1.log
  mkdir -p "$seeds" "$corpus"
  files "$target" | while read -r file; do cp "$file" "$seeds/$(sha256sum "$file" | cut -c1-16)"; done
  # Loaders are to refuse what would take much memory before they ask for it.
  if "build/asan/tests/fuzz/${target}_fuzz" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 -max_len=262144 \
    -artifact_prefix="build/fuzz/$target-" "$corpus" "$seeds" >"$log" 2>&1; then
    echo "ok     $target: $(find "$corpus" "$seeds" -type f | wc -l) inputs, $(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$log") runs"
  else
    echo "FAILED $target, from $log:"
    grep -E 'ERROR|SUMMARY|runtime error|Test unit' "$log" | head -n 5
    return 1
  fi
}

# Each input becomes a file: in memory, if there is a place for that.
if [[ -d /dev/shm ]]; then export TMPDIR=/dev/shm; fi
rm -rf build/fuzz/seeds
build/asan/tests/fuzz/make_seeds tests/data build/fuzz/seeds
bad=0
running=0
for target in "${targets[@]}"; do
  if ((running == cores)); then
    wait -n || bad=1
    running=$((running - 1))
  fi
  fuzz "$target" &
  running=$((running + 1))
done
for (( ; running > 0; running--)); do wait -n || bad=1; done
exit $bad
