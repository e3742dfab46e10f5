"""The package spark-stage-csi, and the objects for the cluster."""
import re
import subprocess

import pytest

from package import needs_package, package_of, run
from staged import BUILD


@pytest.fixture(scope="module")
def package():
    return package_of("spark-stage-csi")


@needs_package
def test_it_can_be_installed(package):
    assert "Inst spark-stage-csi" in run("apt-get", "install", "--simulate", "--no-install-recommends", package)


@needs_package
def test_the_package_starts_nothing_and_has_the_files_that_its_page_names(package, tmp_path):
    run("dpkg-deb", "-x", package, tmp_path)
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert "usr/sbin/spark-stage-csi" in names
    assert any(name.endswith("systemd/system/spark-stage-csi.service") for name in names)
    for file in ("kustomization.yaml", "csidriver.yaml", "daemonset.yaml", "job.yaml", "talos/machine.yaml"):
        assert f"usr/share/doc/spark-stage-csi/examples/kubernetes/{file}" in names
    assert not any(name.startswith("etc/") for name in names), names


def test_the_daemon_and_the_cli_do_not_link_grpc():
    for program in ("daemon/spark-staged", "cli/spark-stage"):
        needed = re.findall(r"NEEDED\s+(\S+)", run("objdump", "-p", BUILD / program))
        assert needed and not [name for name in needed if "grpc" in name or "protobuf" in name], needed


@pytest.mark.parametrize("arguments, words", [
    (["--nonsense"], "'--nonsense' is no option"), (["--socket"], "'--socket' is no option, or lacks its value"),
    (["--kubelet-dir", "here"], "is not an absolute path"), (["extra"], "'extra' is no option"),
    (["--kubelet-dir", "/" + "x" * 100], "longer than the kernel allows")])
def test_a_wrong_option_is_explained_and_exits_with_2(arguments, words):
    done = subprocess.run([BUILD / "csi/server/spark-stage-csi", *arguments], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2 and words in done.stderr, done


def test_help_and_version_work_without_options():
    program = BUILD / "csi/server/spark-stage-csi"
    assert run(program, "--help").startswith("Usage: spark-stage-csi")
    assert run(program, "--version").startswith("spark-stage-csi ")
