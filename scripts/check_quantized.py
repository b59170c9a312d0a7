#!/usr/bin/env python3
"""Quantized checkpoints against golden numbers: logits in exact mode, and the layouts that only single matrices are there of.

    scripts/check_quantized.py WRING FIXTURES      FIXTURES holds a folder a checkpoint, awq.safetensors and gptq.safetensors

A folder passes if no logit is off by more than 1e-4 of their standard deviation from golden.safetensors' logits_w. AutoAWQ's and
AutoGPTQ's matrices, and an FP8 one whose blocks are cut at the edge, are put into a small model and read back, bit for bit. Needs numpy.
"""
import json
import pathlib
import struct
import sys
import tempfile

import numpy as np

from command import run

DTYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "I32": "<i4", "I64": "<i8", "U8": "u1", "F8_E4M3": "u1"}


def read(path):
    """Name → (dtype, array)."""
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    return {n: (t["dtype"], np.frombuffer(data[slice(*t["data_offsets"])], DTYPES[t["dtype"]]).reshape(t["shape"]))
            for n, t in header.items() if n != "__metadata__"}


def write(path, tensors):
    header, chunks, at = {}, [], 0
    for name, (dtype, values) in sorted(tensors.items(), key=lambda t: -t[1][1].itemsize):
        raw = np.ascontiguousarray(values).tobytes()
        header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": [at, at + len(raw)]}
        chunks.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def logits_error(wring, folder, work):
    golden = read(folder / "golden.safetensors")
    ids = ",".join(map(str, golden["input_ids"][1].tolist()))
    run(wring, "logits", folder, "--ids", ids, "-o", work / "logits.safetensors")
    want = golden["logits_w"][1]
    return float(np.abs(read(work / "logits.safetensors")["logits"][1] - want).max() / want.std())


def reads_back(wring, base, work, parts, quantization, want):
    """Whether a model of `base` with one matrix replaced by `parts` is read as `want` there."""
    rows, columns = want.shape
    config = json.loads((base / "config.json").read_text()) | {"quantization_config": quantization, "num_hidden_layers": 1}
    tensors = {n: t for n, t in read(base / "model.safetensors").items() if "layers.1." not in n}
    module = "model.layers.0.self_attn.k_proj"
    if (rows, columns) != (128, 256):  # as a head over a smaller model of its own
        hidden, heads = columns, 3
        config |= {"hidden_size": hidden, "num_attention_heads": heads, "num_key_value_heads": heads, "intermediate_size": 64}
        shapes = {"model.embed_tokens": (rows, hidden), "model.norm": (hidden,)}
        block = {"input_layernorm": (hidden,), "post_attention_layernorm": (hidden,), "mlp.gate_proj": (64, hidden),
                 "mlp.up_proj": (64, hidden), "mlp.down_proj": (hidden, 64)}
        block |= {f"self_attn.{p}_proj": (hidden, hidden) for p in "qkvo"}
        shapes |= {"model.layers.0." + n: s for n, s in block.items()}
        tensors = {n + ".weight": ("F32", np.zeros(s, "<f4")) for n, s in shapes.items()} | {"lm_head.weight": None}
        config["vocab_size"], module = rows, "lm_head"
    tensors.pop(module + ".weight")
    tensors |= {f"{module}.{part}": t for part, t in parts.items()}
    model = work / "model"
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text(json.dumps(config))
    write(model / "model.safetensors", tensors)
    with tempfile.TemporaryDirectory(dir=work) as out:
        run(wring, "convert", model, "--to", "hf", "--type", "f32", "-o", out + "/hf")
        got = read(pathlib.Path(out) / "hf" / "model.safetensors")[module + ".weight"][1]
    return got.tobytes() == np.ascontiguousarray(want).tobytes()


def main():
    wring, fixtures = sys.argv[1], pathlib.Path(sys.argv[2])
    base, failed = fixtures / "llama_q_bf16", 0

    def tell(good, text):
        nonlocal failed
        failed += not good
        print("ok  " if good else "FAIL", text)

    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for d in sorted(p for p in fixtures.iterdir() if (p / "golden.safetensors").exists()):
            if "logits_w" not in read(d / "golden.safetensors"):
                continue
            error = logits_error(wring, d, work)
            tell(error < 1e-4, f"{d.name}: logits off by {error:.1e} of a standard deviation")
        awq, gptq = read(fixtures / "awq.safetensors"), read(fixtures / "gptq.safetensors")
        parts = {p: awq["m." + p] for p in ("qweight", "qzeros", "scales")}
        quantization = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
        tell(reads_back(wring, base, work, parts, quantization, awq["m.dequant"][1]), "awq.safetensors: bit for bit")
        for name, in_order in (("plain", False), ("act_order", True)):
            parts = {p: gptq[f"{name}.{p}"] for p in ("qweight", "qzeros", "scales", "g_idx")}
            quantization = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": in_order, "sym": True}
            tell(reads_back(wring, base, work, parts, quantization, gptq[name + ".dequant"][1]),
                 f"gptq.safetensors, {name}: bit for bit")
        edge = read(fixtures / "fp8_block_ds" / "golden.safetensors")
        parts = {p: edge["edge." + p] for p in ("weight", "weight_scale_inv")}
        quantization = {"quant_method": "fp8", "weight_block_size": [128, 128], "fmt": "e4m3"}
        tell(reads_back(wring, base, work, parts, quantization, edge["edge.dequant"][1]), "fp8 blocks cut at the edge: bit for bit")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
