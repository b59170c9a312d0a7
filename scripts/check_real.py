#!/usr/bin/env python3
"""A real GGUF file against golden numbers of float32 reference arithmetic: NLL of each token, largest logits, greedy answers.

    scripts/check_real.py WRING MODEL.gguf GOLDEN.safetensors [--rms 1e-3]

GOLDEN holds input_ids (T), nll (T - 1), top_ids and top_logits (T, n), and greedy_prompt_i, greedy_i. Exact mode; fails if the rms of the
NLL's error reaches --rms or an answer differs. Needs numpy.
"""
import argparse
import json
import pathlib
import struct
import sys
import tempfile

import numpy as np

from command import run


def safetensors(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    types = {"F32": np.float32, "I32": np.int32, "I64": np.int64}
    return {name: np.frombuffer(data[slice(*t["data_offsets"])], types[t["dtype"]]).reshape(t["shape"])
            for name, t in header.items() if name != "__metadata__"}


def joined(ids):
    return ",".join(map(str, ids))


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("wring")
    ap.add_argument("model", type=pathlib.Path)
    ap.add_argument("golden", type=pathlib.Path)
    ap.add_argument("--rms", type=float, default=1e-3)
    a = ap.parse_args()
    golden = safetensors(a.golden)
    ids = golden["input_ids"]
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "logits.safetensors"
        run(a.wring, "logits", a.model, "--ids", joined(ids), "-o", out)
        logits = safetensors(out)["logits"].astype(np.float64)
    top = np.abs(np.take_along_axis(logits, golden["top_ids"].astype(np.int64), 1) - golden["top_logits"]).max()
    logits -= logits.max(1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    nll = -log_p[np.arange(len(ids) - 1), ids[1:]]
    error = nll - golden["nll"]
    rms = float(np.sqrt(np.mean(error**2)))
    wrong = 0
    prompts = [name for name in golden if name.startswith("greedy_prompt_")]
    for name in prompts:
        expected = golden[name.replace("_prompt", "")].tolist()
        got = json.loads(run(a.wring, "run", a.model, "--ids", joined(golden[name]), "-n", len(expected), "--temperature", 0, "--ignore-eos",
                             "--compute", "exact", "--json"))["ids"]
        if got[:len(expected)] != expected:
            wrong += 1
            print(f"{name}: {got} instead of {expected}")
    print(f"{a.model.name}: NLL {nll.mean():.6f}, golden {golden['nll'].mean():.6f}; rms of the error {rms:.2e}, largest logits within {top:.1e}; "
          f"{len(prompts) - wrong} of {len(prompts)} greedy answers equal")
    if rms >= a.rms or wrong:
        sys.exit(1)


if __name__ == "__main__":
    main()
