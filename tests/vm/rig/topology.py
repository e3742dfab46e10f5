"""Machines on one network, which are always ended."""
import os
import shutil
import tempfile
from pathlib import Path

from . import image
from .cache import hold
from .machine import Machine
from .settings import ACCELERATOR, CPUS, KEEP, KERNEL, patience
from .wire import Wire

FIRST_TARGET, FIRST_HOST = 10, 20
_FOLDER_PREFIX = "spark-vm-"


class Topology:
    """with Topology() as rig: rig.add_target("target1").start() ..."""

    def __init__(self, kernel=KERNEL, install_tree=None):
        self.kernel, self._image = image.build(kernel, install_tree)
        self._held_image = hold(self._image)
        self._wire = Wire()
        self.machines = []
        self._targets = self._hosts = 0
        _sweep()
        self.folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER_PREFIX}{os.getpid()}-"))
        self.accelerator = self._choose_accelerator()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def add_target(self, name, **options):
        self._targets += 1
        # The host image starts the product at boot; a target does not need it.
        return self._add(name, FIRST_TARGET + self._targets, cpus=1, append="systemd.mask=spark-staged.service", **options)

    def add_host(self, name, append="", **options):
        """append: to the kernel's command line."""
        self._hosts += 1
        # Without its own drive the machine would wait for it for 90 s.
        append += "" if options.get("disks") else " systemd.mask=local.mount"
        return self._add(name, FIRST_HOST + self._hosts, cpus=CPUS, append=append, **options)

    def report(self):
        return "\n".join(machine.report() for machine in self.machines)

    def close(self):
        for machine in self.machines:
            machine.kill()
        os.close(self._held_image)
        if KEEP:
            print(f"rig: machines' folders are kept in {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _add(self, name, number, **options):
        machine = Machine(name, number, self._image, self.kernel, self._wire, self.folder / name,
                          accelerator=self.accelerator, **options)
        self.machines.append(machine)
        return machine

    def _choose_accelerator(self):
        """"auto" test-boots a machine under KVM: /dev/kvm may exist and still not run these kernels."""
        if ACCELERATOR != "auto":
            return ACCELERATOR
        trial = Machine("trial", 9, self._image, self.kernel, self._wire, self.folder / "trial", accelerator="kvm",
                        append="systemd.mask=spark-staged.service")
        try:
            trial.start()
            trial.wait_ready(30 / patience(1))
            return "kvm"
        except (AssertionError, RuntimeError, OSError):
            return "tcg"
        finally:
            trial.kill()


def _sweep():
    """Removes the folders of killed runs."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*"):
        owner = folder.name[len(_FOLDER_PREFIX):].split("-")[0]
        if not KEEP and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(folder, ignore_errors=True)
