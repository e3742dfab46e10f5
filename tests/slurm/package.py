"""A package that SPARK_VM_PACKAGE's folder has, for the tests of what is in it."""
import os
import subprocess

import pytest

from node import ROOT

PACKAGE = os.environ.get("SPARK_VM_PACKAGE", "")
needs_package = pytest.mark.skipif(not PACKAGE, reason="SPARK_VM_PACKAGE names no folder with packages: `make deb` makes them")


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def package_of(name):
    found = list((ROOT / PACKAGE).glob(f"{name}_*.deb"))
    assert len(found) == 1, found
    return found[0]
