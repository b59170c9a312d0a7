#!/usr/bin/env bash
# clang-tidy over the sources of a build folder, tests left out. A source whose text, headers of ours and settings are
# as they were when it last passed is not read again, so that only the first run takes minutes.
#   check_tidy.sh BUILD_FOLDER
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=${1:?usage: check_tidy.sh BUILD_FOLDER}
tidy=$(command -v clang-tidy-14 || command -v clang-tidy)
passed=.cache/tidy
mkdir -p "$passed"

# GCC-only flags in the commands are none of clang's business.
flags=(--quiet -p "$build" --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-error)
headers=$(cat .clang-tidy src/*/*.h src/*/*/*.h | sha256sum)

check() {
  local file=$1 stamp
  stamp=$passed/$(printf '%s %s' "$headers" "$(sha256sum <"$file")" | sha256sum | cut -c1-32)
  [[ -f $stamp ]] && return 0
  if output=$("$tidy" "${flags[@]}" "$file" 2>/dev/null); then
    touch "$stamp"
  else
    printf '%s\n%s\n' "$file" "$output"
    return 1
  fi
}
export -f check
export tidy passed headers build
mapfile -t sources < <(git ls-files 'src/*.cc' | grep -v '_test\.cc$' | while read -r f; do
  grep -q "\"file\": \"$PWD/$f\"" "$build/compile_commands.json" && echo "$f"
done)

failed=0
running=0
jobs_at_once=$(nproc)
for file in "${sources[@]}"; do
  check "$file" &
  if ((++running >= jobs_at_once)); then
    wait -n || failed=$((failed + 1))
    running=$((running - 1))
  fi
done
while ((running > 0)); do
  wait -n || failed=$((failed + 1))
  running=$((running - 1))
done
echo "clang-tidy: ${#sources[@]} files, $failed with findings"
((failed == 0))
