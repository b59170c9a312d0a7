#!/usr/bin/env bash
# Holds the sources to .clang-format, with the version of Debian 12, since versions differ in what they write.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
format=$(command -v clang-format-14 || true)
if [[ -z $format ]]; then
  echo "error: clang-format-14 is missing — run scripts/install_packages.sh --test" >&2
  exit 5
fi
git ls-files -z 'src/*.cc' 'src/*.h' | xargs -0 "$format" --dry-run -Werror
