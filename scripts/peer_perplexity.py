#!/usr/bin/env python3
"""Perplexity of llama.cpp beside ours: same GGUF, same text, windows of n_ctx of which the second half is scored.

    peer_perplexity.py WRING MODEL.gguf TEXT.txt [--context 512]

Needs PyPI llama-cpp-python and numpy. Exit status 1 if the two differ by more than 0.2 %.
"""
import argparse
import json
import subprocess

import llama_cpp
import numpy as np


def llama_perplexity(path, text, n_ctx, threads):
    model = llama_cpp.Llama(str(path), n_ctx=n_ctx, n_batch=n_ctx, n_threads=threads, n_threads_batch=threads, logits_all=True, verbose=False)
    ids = model.tokenize(text, add_bos=False, special=False)
    nll, count, first = 0.0, 0, n_ctx // 2
    for start in range(0, len(ids) - n_ctx + 1, n_ctx):
        window = ids[start:start + n_ctx]
        model.reset()
        model.eval(window)
        logits = np.asarray(model.scores[:n_ctx], dtype=np.float64)[first:n_ctx - 1]
        top = logits.max(1)
        log_sum = top + np.log(np.exp(logits - top[:, None]).sum(1))
        nll += (log_sum - logits[np.arange(len(logits)), window[first + 1:]]).sum()
        count += len(logits)
    return float(np.exp(nll / count)), count


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("wring")
    ap.add_argument("model")
    ap.add_argument("text")
    ap.add_argument("--context", type=int, default=512)
    ap.add_argument("--threads", type=int, default=2)
    a = ap.parse_args()
    ours = json.loads(subprocess.run([a.wring, "eval", a.model, "--text", a.text, "--protocol", "llama", "--context", str(a.context), "--json"],
                                     check=True, capture_output=True, encoding="utf-8").stdout)
    theirs, count = llama_perplexity(a.model, open(a.text, "rb").read(), a.context, a.threads)
    difference = ours["ppl"] / theirs - 1
    print(f"wring {ours['ppl']:.5f} over {ours['tokens']} tokens, llama.cpp {theirs:.5f} over {count}: {100 * difference:+.3f} %")
    raise SystemExit(0 if abs(difference) <= 0.002 and count == ours["tokens"] else 1)


if __name__ == "__main__":
    main()
