#!/usr/bin/env bash
# A hybrid of Gated DeltaNet and attention in the shape of a configuration, with random weights: how long it takes to open, the memory
# that 512 tokens in and 32 out take beside the file's size, and the delta rule's share of prefill (perf, where there is one).
#   bench/hybrid.sh CONFIG.json WRING [FOLDER]      FOLDER (default: a temporary one) receives the weights, 8 GB for a 4 B model
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage="usage: hybrid.sh CONFIG.json WRING [FOLDER]"
config=$(realpath "${1:?$usage}")
wring=$(realpath "${2:?$usage}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
model=${3:-$work/model}
python=python3
[[ -x .venv/bin/python ]] && python=.venv/bin/python
[[ -f $model/config.json ]] || "$python" bench/make_hybrid_model.py "$config" "$model"

cat "$model"/*.safetensors >/dev/null # into the page cache
"$python" - "$wring" "$model" "$work" <<'PYTHON'
import json, os, pathlib, re, shutil, subprocess, sys, time

wring, model, work = sys.argv[1:]
size = sum(p.stat().st_size for p in pathlib.Path(model).glob("*.safetensors"))
vocabulary = json.loads(pathlib.Path(model, "config.json").read_text())["vocab_size"]
ids = ",".join(str((i * 7919 + i * i) % vocabulary) for i in range(512))
run = [wring, "run", model, "--ids", ids, "--temperature", "0", "--ignore-eos", "--compute", "exact", "--json"]

begin = time.monotonic()
subprocess.run([wring, "info", model], check=True, stdout=subprocess.DEVNULL)
print(f"opens in {time.monotonic() - begin:.3f} s")

process = subprocess.Popen([*run, "-n", "32"], stdout=subprocess.PIPE)
out = json.loads(process.stdout.read())
_, status, usage = os.wait4(process.pid, 0)
assert status == 0, status
rss = usage.ru_maxrss * 1024
print(f"512 in, {len(out['ids'])} out: prefill {out['prefill_tokens_per_s']:.1f}, decode {out['decode_tokens_per_s']:.2f} tokens/s; "
      f"resident {rss / 1e9:.2f} GB, {rss / size:.3f} x the {size / 1e9:.2f} GB of weights")

if shutil.which("perf"):
    data = f"{work}/perf.data"
    subprocess.run(["perf", "record", "-o", data, "-e", "cpu-clock", "-F", "400", *run, "-n", "1"], check=True, capture_output=True)
    report = subprocess.run(["perf", "report", "-i", data, "--no-children", "-g", "none"], check=True, capture_output=True, text=True).stdout
    share = lambda name: sum(float(m[1]) for m in re.finditer(rf"^\s*([\d.]+)%.*(?:{name})", report, re.M))
    print(f"of the time with 1 token out: delta rule {share('DeltaRule'):.1f} %, convolution and gates "
          f"{share('convolve|unit_length|run_delta_net|gather_inputs'):.1f} %, matrices {share('Matmul'):.1f} %")
PYTHON
