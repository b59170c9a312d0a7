#!/usr/bin/env python3
"""Share of the fp32 multiply-add peak that exact mode reaches over an evaluation, head and attention included.

    exact_speed.py WRING MODEL TEXT [--rounds 5] [--context 1024]

Doctor (which measures the peak) and eval take turns; each round's share is printed, then the median. The multiply-adds of attention are
counted for the keys that a position sees: (p + 1) · heads · head_dim · 2 a layer at position p, for documents of full length.
"""
import argparse
import json
import pathlib
import statistics

import command


def run(*args):
    return json.loads(command.run(*args))


def macs_per_token(wring, model, context):
    info = run(wring, "info", model, "--json")
    matrices = sum(t["shape"][0] * t["shape"][1] for t in info["tensors"] if len(t["shape"]) == 2 and "embed_tokens" not in t["name"])
    config = json.loads((pathlib.Path(model) / "config.json").read_text())
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    attention = config["num_hidden_layers"] * config["num_attention_heads"] * head_dim * 2 * (context + 1) / 2
    return matrices, attention


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("wring")
    ap.add_argument("model")
    ap.add_argument("text")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--context", type=int, default=1024)
    a = ap.parse_args()
    matrices, attention = macs_per_token(a.wring, a.model, a.context)
    shares = []
    for i in range(a.rounds):
        doctor = run(a.wring, "doctor", "--json")
        result = run(a.wring, "eval", a.model, "--text", a.text, "--context", str(a.context), "--json")
        peak, rate = doctor["fp32_gmacs"] * 1e9, result["tokens_per_s"]
        shares.append((rate * (matrices + attention) / peak, rate * matrices / peak))
        print(f"round {i + 1}: {rate:.0f} tokens/s, peak {peak / 1e9:.1f} G multiply-adds/s ({doctor['isa']}): {100 * shares[-1][0]:.1f} %, "
              f"matrices alone {100 * shares[-1][1]:.1f} %", flush=True)
    print(f"median {100 * statistics.median(s for s, _ in shares):.1f} %, matrices alone {100 * statistics.median(s for _, s in shares):.1f} %")


if __name__ == "__main__":
    main()
