#!/usr/bin/env python3
"""Speed beside llama.cpp's: prefill, decode after the prompt, and batches, in tokens/s.

    bench/compare.py WRING MODEL.gguf [--peer build/peers/native/bin] [--batch 1,8,32] [--rounds 7]

The two take turns, and who goes first alternates, since a shared machine drifts: a ratio is taken within each round and the median of
these is what counts. Each turn is a process of its own that warms up before it measures once. Keep the machine free of other work.
llama.cpp (bench/peers.sh builds it) does no sampling in these tools and keeps K and V in F16; its flash attention is on "auto".
For AVX2 alone: WRING_ISA=avx2 and --peer build/peers/no-avx512/bin.
"""
import argparse
import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
from command import run


def wring(a):
    def bench(prompt, generate, batch):
        return json.loads(run(a.wring, "bench", a.model, "--compute", a.compute, "--prompt", prompt, "--generate", generate, "--batch", batch,
                              "--runs", 1, "--threads", a.threads, "--json"))

    out = bench(a.prompt, a.generate, 1)
    print(f"  wring: {out['compute']}, {out['isa']}, read bandwidth {out['read_bandwidth_gbps']:.1f} GB/s", flush=True)
    speeds = {"prefill": out["rows"][0]["prefill_tokens_per_s"], "decode": out["rows"][0]["decode_tokens_per_s"]}
    if a.batch:
        for row in bench(a.batch_prompt, a.batch_generate, ",".join(map(str, a.batch)))["rows"]:
            speeds[f"batch {row['batch']} prefill"] = row["prefill_tokens_per_s"]
            speeds[f"batch {row['batch']} decode"] = row["decode_tokens_per_s"]
    return speeds


def llama(a):
    def bench(*what):
        return json.loads(run(a.peer / "llama-bench", "-m", a.model, "-t", a.threads, "-r", 1, "-o", "json", *what))[0]["avg_ts"]

    # Two calls, for one would also decode at depth 0 and read a second prompt at depth 512.
    speeds = {"prefill": bench("-p", a.prompt, "-n", 0), "decode": bench("-p", 0, "-n", a.generate, "-d", a.prompt)}
    if a.batch:
        out = run(a.peer / "llama-batched-bench", "-m", a.model, "-t", a.threads, "-c", max(a.batch) * (a.batch_prompt + a.batch_generate),
                  "-npp", a.batch_prompt, "-ntg", a.batch_generate, "-npl", ",".join(map(str, a.batch)), "--output-format", "jsonl")
        for row in (json.loads(line) for line in out.splitlines() if line.startswith("{")):
            speeds[f"batch {row['pl']} prefill"], speeds[f"batch {row['pl']} decode"] = row["speed_pp"], row["speed_tg"]
    return speeds


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f} [{min(values):.{digits}f}, {max(values):.{digits}f}]"


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("wring")
    ap.add_argument("model", type=pathlib.Path)
    ap.add_argument("--peer", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "build/peers/native/bin")
    ap.add_argument("--compute", default="packed")
    ap.add_argument("--prompt", type=int, default=512)
    ap.add_argument("--generate", type=int, default=128)
    ap.add_argument("--batch", type=lambda s: [int(b) for b in s.split(",")], default=[], help="sequences at a time, as 1,8,32 (default: none)")
    ap.add_argument("--batch-prompt", type=int, default=128)
    ap.add_argument("--batch-generate", type=int, default=32)
    ap.add_argument("--rounds", type=int, default=7)
    ap.add_argument("--threads", type=int, default=2)
    a = ap.parse_args()
    a.peer = a.peer.resolve()
    if not (a.peer / "llama-bench").exists():
        sys.exit(f"error: llama-bench is missing — {a.peer} — run bench/peers.sh, or name its folder with --peer")
    ours, theirs = [], []
    for i in range(a.rounds):
        turns = [(ours, wring), (theirs, llama)]
        for speeds, measure in turns if i % 2 == 0 else reversed(turns):
            speeds.append(measure(a))
        print(f"round {i + 1}: " + ", ".join(f"{k} {v:.1f} / {theirs[-1][k]:.1f} = {v / theirs[-1][k]:.2f}" for k, v in ours[-1].items()), flush=True)

    print(f"\n{a.model.name}, {a.threads} threads: {a.prompt} in, {a.generate} out" +
          (f"; batches {a.batch_prompt} in, {a.batch_generate} out each" if a.batch else "") + f"; median [min, max] of {a.rounds} rounds")
    print(f"{'tokens/s':16} {'wring':>24} {'llama.cpp':>24} {'ratio':>20}")
    for key in ours[0]:
        pairs = [(o[key], t[key]) for o, t in zip(ours, theirs)]
        print(f"{key:16} {spread([o for o, _ in pairs], 1):>24} {spread([t for _, t in pairs], 1):>24} {spread([o / t for o, t in pairs], 2):>20}")
    for b in a.batch:
        for base in [f"batch {a.batch[0]} decode"] * (b != a.batch[0]) + ["prefill"]:
            mine, peers = ([s[f"batch {b} decode"] / s[base] for s in speeds] for speeds in (ours, theirs))
            print(f"batch {b} decode is {spread(mine, 2)} times {base}; llama.cpp {spread(peers, 2)}")


if __name__ == "__main__":
    main()
