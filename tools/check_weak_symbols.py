#!/usr/bin/env python3
"""Checks that objects compiled for a newer CPU hand nothing to code that runs on an older one.

A weak symbol (an inline function or template with external linkage) may be chosen by the linker for the whole program, and a
global constructor runs before the CPU is known: either would end in an illegal instruction on a baseline CPU.
Usage: check_weak_symbols.py NM OBJECT...
"""
import re
import subprocess
import sys

# asan's own constructor runs no code of the object's.
CONSTRUCTOR = re.compile(r"^_GLOBAL__sub_I_(?!00099_)")


def faults(nm, path):
    listing = subprocess.run([nm, path], check=True, capture_output=True, text=True).stdout
    defined = 0
    for line in listing.splitlines():
        kind, name = line.split()[-2:]
        defined += kind == "T"
        if kind in "VWuvw":
            yield f"{path}: weak symbol {name}"
        elif CONSTRUCTOR.match(name):
            yield f"{path}: global constructor {name}"
    if defined == 0:
        yield f"{path}: no function at all: is it the right object?"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    found = [fault for path in sys.argv[2:] for fault in faults(sys.argv[1], path)]
    print("\n".join(found) or f"{len(sys.argv) - 2} objects hand nothing on")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
