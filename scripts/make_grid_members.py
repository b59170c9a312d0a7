#!/usr/bin/env python3
"""Writes src/kernels/scalar/grid_members.h: which patterns of levels the lattices of ggml's IQ1, IQ2 and IQ3 types hold.

    make_grid_members.py            writes the file and prints each lattice's digest for src/kernels/grids_test.cc
    make_grid_members.py --check    fails if the file is not what would be written

Needs the package gguf (scripts/requirements.txt), whose tables are the source. A pattern's number is its levels' places,
lowest first, as the digits of a number: base 3 for 8 weights (IQ1, IQ2), base 8 for 4 (IQ3).
"""
import hashlib
import pathlib
import sys

import numpy as np
from gguf import quants

HEADER = pathlib.Path(__file__).parent.parent / "src/kernels/scalar/grid_members.h"
LATTICES = {"Iq1": quants.IQ1_S, "Iq2Xxs": quants.IQ2_XXS, "Iq2Xs": quants.IQ2_XS, "Iq2S": quants.IQ2_S,
            "Iq3Xxs": quants.IQ3_XXS, "Iq3S": quants.IQ3_S}
TOP = """// Which patterns of levels the lattices of IQ1, IQ2 and IQ3 hold (grids.h): bit k of hex digit i is set if
// pattern 4·i + k is in. Written by scripts/make_grid_members.py from the tables of the package gguf.
#pragma once

#include <string_view>

namespace wring::kernels::scalar {
"""


def places(quant):
    """(entries, weights): places of the levels in rising order of level, as the format lists the entries."""
    quant.init_grid()
    return np.searchsorted(np.array(quant.grid_map), quant.grid.reshape(quant.grid_shape))


def members(quant):
    digits, levels = places(quant), len(quant.grid_map)
    numbers = digits @ levels ** np.arange(digits.shape[1])
    if not (np.diff(numbers) > 0).all():
        raise SystemExit("the entries do not rise: a set does not give them back")
    bits = np.zeros((levels ** digits.shape[1] + 3) // 4 * 4, dtype=int)
    bits[numbers] = 1
    return "".join(f"{n:x}" for n in bits.reshape(-1, 4) @ [1, 2, 4, 8])


def text():
    out = TOP
    for name, quant in LATTICES.items():
        digits = members(quant)
        lines = [f'    "{digits[i:i + 100]}"' for i in range(0, len(digits), 100)]
        out += f"\ninline constexpr std::string_view k{name}Members =\n" + "\n".join(lines) + ";\n"
    return out + "\n}  // namespace wring::kernels::scalar\n"


def main():
    if sys.argv[1:] == ["--check"]:
        same = HEADER.read_text(encoding="utf-8") == text()
        print(f"{HEADER} {'is' if same else 'is NOT'} what gguf's tables give")
        return 0 if same else 1
    HEADER.write_text(text(), encoding="utf-8")
    for name, quant in LATTICES.items():
        print(f"k{name}Grid", hashlib.sha256(places(quant).astype(np.uint8).tobytes()).hexdigest())
    return 0


if __name__ == "__main__":
    sys.exit(main())
