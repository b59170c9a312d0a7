#!/usr/bin/env python3
"""A hybrid model (Gated DeltaNet and attention, dense or with experts) of random BF16 weights from a config.json, in shards: for sizes and speed only.

    bench/make_hybrid_model.py CONFIG.json OUT [--shard 2e9]

Values are cut out of one pool of normal numbers, so that 8 GB take a minute. There is no tokenizer: ids only. Needs numpy.
"""
import argparse
import json
import pathlib
import shutil
import struct

import numpy as np


def mlps(c):
    hidden, experts = c["hidden_size"], c.get("num_experts", 0)
    parts = {"": c.get("intermediate_size")}
    if experts:
        parts = {f"experts.{e}.": c["moe_intermediate_size"] for e in range(experts)} | {"shared_expert.": c["shared_expert_intermediate_size"]}
    out = {"mlp.gate": (experts, hidden), "mlp.shared_expert_gate": (1, hidden)} if experts else {}
    for part, inner in parts.items():
        p = "mlp." + part
        out |= {p + "gate_proj": (inner, hidden), p + "up_proj": (inner, hidden), p + "down_proj": (hidden, inner)}
    return out


def shapes(c):
    """Name → shape, as transformers publishes qwen3_5_text and qwen3_5_moe_text."""
    hidden, head = c["hidden_size"], c["head_dim"]
    q, kv = c["num_attention_heads"] * head, c["num_key_value_heads"] * head
    keys = c["linear_num_key_heads"] * c["linear_key_head_dim"]
    heads = c["linear_num_value_heads"]
    values = heads * c["linear_value_head_dim"]
    out = {"model.embed_tokens.weight": (c["vocab_size"], hidden)}
    for i, kind in enumerate(c["layer_types"]):
        p = f"model.layers.{i}."
        block = {"input_layernorm": (hidden,), "post_attention_layernorm": (hidden,)} | mlps(c)
        if kind == "full_attention":
            block |= {"self_attn.q_proj": (2 * q, hidden), "self_attn.k_proj": (kv, hidden), "self_attn.v_proj": (kv, hidden),
                      "self_attn.o_proj": (hidden, q), "self_attn.q_norm": (head,), "self_attn.k_norm": (head,)}
        else:
            block |= {"linear_attn.in_proj_qkv": (2 * keys + values, hidden), "linear_attn.in_proj_z": (values, hidden),
                      "linear_attn.in_proj_b": (heads, hidden), "linear_attn.in_proj_a": (heads, hidden),
                      "linear_attn.conv1d": (2 * keys + values, 1, c["linear_conv_kernel_dim"]),
                      "linear_attn.norm": (c["linear_value_head_dim"],), "linear_attn.out_proj": (hidden, values)}
            out |= {p + "linear_attn.A_log": (heads,), p + "linear_attn.dt_bias": (heads,)}
        out |= {p + name + ".weight": shape for name, shape in block.items()}
    out["model.norm.weight"] = (hidden,)
    if not c.get("tie_word_embeddings"):
        out["lm_head.weight"] = (c["vocab_size"], hidden)
    return out


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("config", type=pathlib.Path)
    ap.add_argument("out", type=pathlib.Path)
    ap.add_argument("--shard", type=float, default=2e9, help="bytes of a shard, about")
    a = ap.parse_args()
    config = json.loads(a.config.read_text())
    a.out.mkdir(parents=True, exist_ok=True)
    shutil.copy(a.config, a.out / "config.json")
    rng = np.random.default_rng(1)
    pool = (rng.standard_normal(1 << 26, np.float32) * 0.02).view(np.uint32)
    pool = ((pool + 0x8000) >> 16).astype("<u2")  # BF16, halves away from zero

    shards, size = [{}], 0
    for name, shape in shapes(config).items():
        count = int(np.prod(shape))
        if size + 2 * count > a.shard and shards[-1]:
            shards.append({})
            size = 0
        shards[-1][name] = shape
        size += 2 * count
    weight_map = {}
    for number, tensors in enumerate(shards, 1):
        file = f"model-{number:05}-of-{len(shards):05}.safetensors"
        header, at = {}, 0
        for name, shape in tensors.items():
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + 2 * int(np.prod(shape))]}
            at = header[name]["data_offsets"][1]
            weight_map[name] = file
        text = json.dumps(header).encode()
        with open(a.out / file, "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text)
            for name, shape in tensors.items():
                left = int(np.prod(shape))
                while left > 0:
                    n = min(left, pool.size // 2)
                    begin = int(rng.integers(pool.size - n))
                    f.write(pool[begin:begin + n].tobytes())
                    left -= n
    total = sum(2 * int(np.prod(s)) for s in shapes(config).values())
    (a.out / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}))
    print(f"{total / 1e9:.2f} GB in {len(shards)} shards")


if __name__ == "__main__":
    main()
