#!/usr/bin/env bash
# Builds the tools of llama.cpp that Wring is compared with (bench/compare.py), for the CPU of this machine, from the
# source that PyPI's llama-cpp-python carries: everybody who repeats a comparison gets the same code without a git
# server. All of it stays in FOLDER; what is there already is used, and an interrupted build goes on where it was.
#   bench/peers.sh [FOLDER] [--no-avx512]
# FOLDER (default build/peers) gets native/bin/llama-{bench,batched-bench,quantize,perplexity,server}. --no-avx512 builds
# no-avx512/bin beside it, the partner of WRING_ISA=avx2. AMX stays off (see build).
set -euo pipefail

version=0.3.36
sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
tools=(llama-bench llama-batched-bench llama-quantize llama-perplexity llama-server)

usage() {
  echo "usage: bench/peers.sh [FOLDER] [--no-avx512]" >&2
  exit 2
}

folder="" variants=(native)
for argument in "$@"; do
  case $argument in
    --no-avx512) variants+=(no-avx512) ;;
    -*) usage ;;
    *)
      [[ -z $folder ]] || usage
      folder=$argument
      ;;
  esac
done
folder=${folder:-$(dirname "${BASH_SOURCE[0]}")/../build/peers}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
trap 'exit 130' INT TERM

fail() { # LOG WHAT TODO: the log's end, then the one line
  if [[ -f $1 ]]; then tail -n 15 "$1" >&2; fi
  echo "error: $2 — $1 — $3" >&2
  exit 5
}

for program in cmake ninja g++ python3; do
  if ! command -v "$program" >/dev/null; then
    echo "error: $program is missing — run scripts/install_packages.sh" >&2
    exit 5
  fi
done

# A build for another CPU dies of an illegal instruction, or flatters us by leaving instructions unused.
cpu=$(grep -m1 '^flags' /proc/cpuinfo | cat - <(g++ -dumpfullversion) | sha256sum | cut -c1-16)
stamp="llama-cpp-python $version, CPU and compiler $cpu, no AMX"

fetch_source() {
  local archive="$folder/llama_cpp_python-$version.tar.gz" log="$folder/download.log" sum
  if [[ -f $folder/source/$version ]]; then return; fi
  if [[ ! -f $archive ]]; then
    echo "downloading the source of llama-cpp-python $version from PyPI (77 MB)"
    # pip asks the package for its dependencies even if it is to leave them out, which needs a place for build tools.
    rm -rf "$folder/venv" "$folder/download"
    python3 -m venv "$folder/venv" >"$log" 2>&1 || fail "$log" "cannot make a Python environment" "install python3-venv"
    "$folder/venv/bin/pip" download --disable-pip-version-check --no-binary llama-cpp-python --no-deps \
      -d "$folder/download" "llama-cpp-python==$version" >"$log" 2>&1 ||
      fail "$log" "cannot download llama-cpp-python $version from PyPI" "is the network there?"
    mv "$folder/download/${archive##*/}" "$archive"
    rm -rf "$folder/venv" "$folder/download"
  fi
  sum=$(sha256sum "$archive" | cut -d' ' -f1)
  [[ $sum == "$sha256" ]] || fail "$archive" "SHA-256 is $sum, not $sha256" "delete the file and run this again"
  echo "unpacking"
  rm -rf "$folder/source" "$folder/source.part" "$folder/native" "$folder/no-avx512"
  mkdir "$folder/source.part"
  tar -xzf "$archive" -C "$folder/source.part" --strip-components=3 "llama_cpp_python-$version/vendor/llama.cpp"
  touch "$folder/source.part/$version"
  mv "$folder/source.part" "$folder/source"
}

build() { # VARIANT
  local variant=$1 build="$folder/$1" log="$folder/$1.log" flags=(-DGGML_NATIVE=ON)
  # Without GGML_NATIVE its defaults are AVX2, FMA, F16C and BMI2, and no more.
  [[ $variant == native ]] || flags=(-DGGML_NATIVE=OFF -DGGML_AVX512=OFF)
  # Its AMX code dies of an invalid tile configuration where GCC builds it (llama.cpp's issue 20824), so that native
  # means AVX-512 on CPUs that have AMX. The flags must stand behind -march=native to count.
  if [[ $variant == native ]] && grep -q -m1 amx_int8 /proc/cpuinfo; then
    flags+=("-DCMAKE_CXX_COMPILE_OBJECT=<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> <FLAGS> \
-mno-amx-tile -mno-amx-int8 -mno-amx-bf16 -o <OBJECT> -c <SOURCE>")
  fi
  if [[ -f $build/built && $(<"$build/built") == "$stamp" ]]; then
    echo "$variant: built already"
    return
  fi
  if [[ ! -f $build/stamp || $(<"$build/stamp") != "$stamp" ]]; then
    rm -rf "$build"
    mkdir "$build"
    echo "$stamp" >"$build/stamp"
  fi
  echo "$variant: building ${tools[*]}, which takes long on two cores; the log is $log"
  # The commit is named since llama.cpp would else print the one of the git tree around it. The server needs neither
  # its web page, which it would download, nor TLS.
  cmake -S "$folder/source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF "${flags[@]}" \
    -DLLAMA_BUILD_COMMIT="pypi-$version" -DLLAMA_BUILD_NUMBER=0 -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
    -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF >"$log" 2>&1 ||
    fail "$log" "cannot configure llama.cpp" "see the log"
  cmake --build "$build" -j "$(nproc)" --target "${tools[@]}" >>"$log" 2>&1 ||
    fail "$log" "cannot build llama.cpp" "see the log; another run goes on from here"
  echo "$stamp" >"$build/built"
}

fetch_source
for variant in "${variants[@]}"; do
  build "$variant"
  echo "$folder/$variant/bin"
done
