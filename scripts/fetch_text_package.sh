#!/usr/bin/env bash
# Unpacks a Debian package into a folder without installing it: its files are text to measure models on.
# A folder that is already there is left alone, so later runs need no network.
#   fetch_text_package.sh PACKAGE FOLDER
set -euo pipefail

package=${1:?usage: fetch_text_package.sh PACKAGE FOLDER}
folder=${2:?usage: fetch_text_package.sh PACKAGE FOLDER}
[[ -d $folder ]] && exit 0

mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

download() { (cd "$work" && apt-get -o APT::Sandbox::User="$(id -un)" download "$package") >"$work/log" 2>&1; }
if ! download; then
  # The machine's package lists may be missing or older than the archive.
  as_root=()
  [[ $(id -u) -eq 0 ]] || as_root=(sudo)
  "${as_root[@]}" apt-get update >/dev/null 2>&1 || true
  if ! download; then
    tail -n 5 "$work/log" >&2
    echo "error: cannot download the Debian package $package — is the network there? Your own text works too:" \
      "./quickstart --text FILE --calibration FILE" >&2
    exit 5
  fi
fi
mkdir "$work/files"
dpkg-deb -x "$work"/*.deb "$work/files"
mv "$work/files" "$folder"
