#!/usr/bin/env bash
# clang-tidy over the sources (tests left out), the most recently changed first. With a budget it
# stops starting new files after so many seconds and says how many it did not reach; without one it reads all. A
# source that passed is not read again until it, a header of ours or the settings change.
#   check_tidy.sh [SECONDS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

budget=${1:-1000000}
# A configuration of its own, source by source: clang cannot read the headers that g++ has precompiled.
build=build/tidy
cmake --preset dev -B "$build" -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
tidy=$(command -v clang-tidy-14 || true)
if [[ -z $tidy ]]; then
  echo "error: clang-tidy-14 is missing — run scripts/install_packages.sh --test" >&2
  exit 5
fi
passed=.cache/tidy
mkdir -p "$passed"
common=$(find src -name '*.h' -print0 | sort -z | xargs -0 cat .clang-tidy | sha256sum)

stamp_of() { printf '%s/%s' "$passed" "$(printf '%s %s' "$common" "$(sha256sum "$1")" | sha256sum | cut -c1-32)"; }

check() {
  local output stamp
  stamp=$(stamp_of "$1")
  # The compiler's own warnings are not clang-tidy's business: g++ has said what it has to say.
  if output=$("$tidy" --quiet -p "$build" --extra-arg=-w "$1" 2>/dev/null); then
    touch "$stamp"
  else
    printf '%s\n' "$output"
    return 1
  fi
}

mapfile -t sources < <(
  {
    git log --format= --name-only -n 500 -- 'src/*.cc'
    git ls-files 'src/*.cc'
  } | awk 'NF && !seen[$0]++' | grep -v '_test\.cc$' | while read -r file; do
    if [[ -f $file ]] && grep -qF "/$file\"" "$build/compile_commands.json"; then echo "$file"; fi
  done
)

failed=0
running=0
read=0
left=0
for file in "${sources[@]}"; do
  if [[ -f $(stamp_of "$file") ]]; then continue; fi
  if ((SECONDS >= budget)); then
    left=$((left + 1))
    continue
  fi
  if ((running >= $(nproc))); then
    wait -n || failed=$((failed + 1))
    running=$((running - 1))
  fi
  check "$file" &
  running=$((running + 1))
  read=$((read + 1))
done
while ((running > 0)); do
  wait -n || failed=$((failed + 1))
  running=$((running - 1))
done
echo "clang-tidy: $read of ${#sources[@]} files read, $failed with findings, $left not reached in the time given," \
  "the rest passed before"
((failed == 0))
