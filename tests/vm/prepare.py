"""Fetches and builds the parts of the machines that do not depend on our build: kernels, emulator, the guest's Debian."""
from rig import emulator, image, kernel, packages

print("emulator:", emulator.command()[0])
for name in kernel.SOURCES:
    print("image:", image.build(name)[1])
print("PyTorch:", packages.drive("torch", image.userland_folder(), ["python3-torch"]))
