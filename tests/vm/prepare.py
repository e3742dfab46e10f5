"""Fetches and builds the parts of the machines that do not depend on our build: kernels, emulator, the guest's Debian.
Usage: prepare.py [KERNEL…]; without names, for all kernels."""
import sys

from rig import emulator, image, kernel

print("emulator:", emulator.command()[0])
for name in sys.argv[1:] or kernel.SOURCES:
    print("image:", image.build(name)[1])
