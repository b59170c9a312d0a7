#!/usr/bin/env python3
"""Folders of codes against the library that defines them.

    scripts/check_compressed_tensors.py WRING MODEL…      Needs what scripts/install_peers.sh installs

Each model is put into BF16 and quantized by every recipe that writes a folder. The library must read config.json's
quantization_config; decompressing with scales widened to float32 must give what `wring convert --to hf --type f32` gives, bit
for bit; and compressing the BF16 weights with the library must give the folder's own bytes.
"""
import json
import pathlib
import sys
import tempfile

import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
from compressed_tensors.compressors.pack_quantized.helpers import unpack_from_int32
from compressed_tensors.quantization import QuantizationConfig
from compressed_tensors.quantization.lifecycle.forward import dequantize
from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam
from safetensors.torch import load_file

from command import run

RECIPES = {"int4-rtn": ["--group", "32"], "fp8": [], "nvfp4": []}


def same(a, b):
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))


def parts_by_module(tensors):
    modules = {}
    for name, tensor in tensors.items():
        module, part = name.rsplit(".", 1)
        modules.setdefault(module, {})[part] = tensor
    return {m: p for m, p in modules.items() if "weight_scale" in p}


def decompressed(parts, scheme):
    """The module's weight in float32."""
    if "weight" in parts:
        codes = parts["weight"].float()
    elif parts["weight_packed"].dtype == torch.int32:
        shape = torch.Size(parts["weight_shape"].tolist())
        codes = unpack_from_int32(parts["weight_packed"], scheme.weights.num_bits, shape).float()
    else:
        rows, half = parts["weight_packed"].shape
        codes = unpack_fp4_from_uint8(parts["weight_packed"], rows, 2 * half).float()
    return dequantize(codes, parts["weight_scale"].float(), args=scheme.weights, dtype=torch.float32,
                      global_scale=parts.get("weight_global_scale"))


def compressed(weight, scheme, name, global_scale):
    """The module's parts as the library makes them of a BF16 weight."""
    group = scheme.weights.group_size or weight.shape[1]
    grouped = weight.reshape(weight.shape[0], -1, group)
    scale, zero = calculate_qparams(grouped.amin(-1), grouped.amax(-1), scheme.weights, global_scale=global_scale)
    state = {"weight": weight, "weight_scale": scale, "weight_zero_point": zero}
    if global_scale is not None:
        state["weight_global_scale"] = global_scale
    state = BaseCompressor.get_value_from_registry(name).compress(state, scheme)
    state.pop("weight_zero_point", None)
    return state


def check(wring, source, recipe, work):
    folder, plain = work / recipe, work / f"{recipe}-f32"
    run(wring, "quantize", source, "--recipe", recipe, *RECIPES[recipe], "-o", folder)
    run(wring, "convert", folder, "--to", "hf", "--type", "f32", "-o", plain)
    config = json.loads((folder / "config.json").read_text())["quantization_config"]
    scheme = next(iter(QuantizationConfig.model_validate(config).config_groups.values()))
    modules, want = parts_by_module(load_file(folder / "model.safetensors")), load_file(plain / "model.safetensors")
    weights = load_file(source / "model.safetensors")
    numbers = {}  # NVFP4: by the number stored, the library's of each module that has it
    for module, parts in modules.items():
        weight = weights[f"{module}.weight"]
        if "weight_global_scale" in parts:
            theirs = generate_gparam(weight.amin(), weight.amax()).item()
            numbers.setdefault(parts["weight_global_scale"].item(), []).append(theirs)
        theirs = compressed(weight, scheme, config["format"], parts.get("weight_global_scale"))
        faults = [p for p in theirs if p not in parts or not same(theirs[p], parts[p])]
        if not same(decompressed(parts, scheme), want[f"{module}.weight"]):
            faults.append("decompressed")
        if faults:
            sys.exit(f"error: {recipe} of {source}: {module} differs in {', '.join(faults)}")
    for number, theirs in numbers.items():
        if number != min(theirs):
            sys.exit(f"error: {recipe} of {source}: a global scale is {number}, the library's least {min(theirs)}")
    return len(modules)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    wring = sys.argv[1]
    for model in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as work:
            work = pathlib.Path(work)
            run(wring, "convert", model, "--to", "hf", "--type", "bf16", "-o", work / "bf16")
            for recipe in RECIPES:
                matrices = check(wring, work / "bf16", recipe, work)
                print(f"{model}, {recipe}: {matrices} matrices as the library has them", flush=True)


if __name__ == "__main__":
    main()
