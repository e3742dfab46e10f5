"""The container image of SPARK_VM_IMAGE: its programs start, under emulation if it is of another architecture, and nothing
else is in it. tests/vm/test_container.py runs it on a node."""
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from staged import ROOT

IMAGE = os.environ.get("SPARK_VM_IMAGE", "")
pytestmark = pytest.mark.skipif(not IMAGE, reason="SPARK_VM_IMAGE names no image: `make image` makes one")
LIMIT_MB = 75
VERSIONS = {"spark-staged": "--version", "spark-stage": "--version", "spark-stage-csi": "--version", "kmod": "--version",
            "mkfs.ext4": "-V", "e2fsck": "-V", "mkfs.xfs": "-V", "xfs_repair": "-V", "mount.nfs": "-V"}


@pytest.fixture(scope="module", name="image")
def unpacked(tmp_path_factory):
    """(Its root, its configuration)"""
    folder = tmp_path_factory.mktemp("image")
    with tarfile.open(ROOT / IMAGE) as archive:
        archive.extractall(folder)

    def blob(entry):
        return folder.joinpath("blobs", *entry["digest"].split(":"))
    manifest = json.loads(blob(json.loads((folder / "index.json").read_text())["manifests"][0]).read_text())
    for layer in manifest["layers"]:
        subprocess.run(["tar", "-x", "-f", blob(layer), "--one-top-level=root"], cwd=folder, check=True)
    return folder / "root", json.loads(blob(manifest["config"]).read_text())


def start(root, *command):
    return subprocess.run(["chroot", root, *command], env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, capture_output=True, text=True,
                          check=False, timeout=120)


def test_the_image_is_for_the_architecture_of_its_name_and_starts_the_daemon(image):
    root, configuration = image
    assert configuration["architecture"] in Path(IMAGE).name
    command = configuration["config"]["Cmd"]
    done = start(root, *command, "--help")
    assert done.returncode == 0 and done.stdout.startswith("Keeps shared NVMe/TCP volumes connected"), done


@pytest.mark.parametrize("program", VERSIONS)
def test_a_program_of_the_image_starts(image, program):
    done = start(image[0], program, VERSIONS[program])
    assert done.returncode in (0, 1) and done.stdout + done.stderr and "error while loading" not in done.stderr, done


def test_the_daemon_refuses_a_configuration_with_a_sentence(image):
    root, _ = image
    (root / "etc/spark-stage/spark-stage.yaml").write_text("version: 1\ntarget: {}\n")
    done = start(root, "spark-stage", "config", "check", "/etc/spark-stage/spark-stage.yaml")
    assert done.returncode == 2 and "spark-stage.yaml:2:1" in done.stderr, done


def test_the_image_has_no_shell_no_package_manager_and_no_identity(image):
    root, _ = image
    for name in ("bin/sh", "bin/bash", "bin/dash", "bin/dpkg", "bin/apt-get", "bin/perl", "bin/python3"):
        assert not (root / "usr" / name).exists(), name
    assert not list((root / "etc/nvme").iterdir())


def test_the_image_is_small(image):
    used = int(subprocess.run(["du", "-sm", image[0]], check=True, capture_output=True, text=True).stdout.split()[0])
    assert used <= LIMIT_MB
