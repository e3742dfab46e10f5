"""The package spark-stage-slurm: its installed files, and its required Slurm version."""
import re
import subprocess
from pathlib import Path

import pytest

from node import ROOT
from package import needs_package, package_of, run

pytestmark = needs_package


@pytest.fixture(scope="module")
def package():
    return package_of("spark-stage-slurm")


@pytest.fixture
def tree(package, tmp_path):
    run("dpkg-deb", "-x", package, tmp_path)
    return tmp_path


def test_the_package_can_be_installed_beside_its_version_of_slurm(package):
    assert "Inst spark-stage-slurm" in run("apt-get", "install", "--simulate", "--no-install-recommends", package)


def test_the_package_depends_on_its_version_of_slurm_only(package):
    version = run("dpkg-query", "-W", "-f", "${Version}", "slurmd")
    major, minor = map(int, re.match(r"(\d+)\.(\d+)", version).groups())
    depends = run("dpkg-deb", "-f", package, "Depends").strip().split(", ")
    assert f"slurm-wlm-basic-plugins (>= {major}.{minor:02})" in depends, depends
    assert f"slurm-wlm-basic-plugins (<< {major}.{minor + 1:02}~)" in depends, depends


def test_the_plugin_is_in_slurms_plugin_folder(tree):
    folder = next(line.rpartition("/")[0] for line in run("dpkg", "-L", "slurm-wlm-basic-plugins").split()
                  if line.endswith("/auth_munge.so"))
    assert Path(f"{tree}{folder}/spank_spark_stage.so").is_file()


def test_the_package_changes_nothing_before_an_administrator_enables_it(package, tree):
    """Slurm reads the package's file only if plugstack.conf includes it."""
    placed = [path.relative_to(tree).as_posix() for path in (tree / "etc").rglob("*") if path.is_file()]
    assert placed == ["etc/slurm/plugstack.conf.d/spark-stage.conf"]
    assert (tree / placed[0]).read_text().splitlines()[-1] == "optional spank_spark_stage.so"
    control = tree / "control"
    run("dpkg-deb", "-e", package, control)
    assert (control / "conffiles").read_text().split() == ["/" + placed[0]]


def remove(package, tmp_path, **files):
    """The package's script before a removal, on a host whose /etc/slurm has these files."""
    control, folder = tmp_path / "control", tmp_path / "slurm"
    run("dpkg-deb", "-e", package, control)
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.conf").write_text(text)
    Path("/etc/slurm").mkdir(exist_ok=True)
    return subprocess.run(["unshare", "--mount", "sh", "-c", f"mount --bind {folder} /etc/slurm && sh {control}/prerm remove"],
                          capture_output=True, text=True, check=False)


def test_a_removal_is_refused_while_a_line_requires_the_plugin(package, tmp_path):
    done = remove(package, tmp_path, plugstack="# required spank_spark_stage.so\n  required  /usr/lib/spank_spark_stage.so socket=/a\n")
    assert done.returncode == 1 and "/etc/slurm/plugstack.conf:2:" in done.stderr and ":1:" not in done.stderr, done
    assert "delete that line" in done.stderr


def test_a_removal_goes_on_where_the_plugin_is_optional(package, tmp_path):
    done = remove(package, tmp_path, plugstack="include /etc/slurm/plugstack.conf.d/*.conf\nrequired other.so\n",
                  own=(ROOT / "configs/slurm/spark-stage.conf").read_text())
    assert (done.returncode, done.stderr) == (0, "")


def test_the_plugin_needs_no_cpp_runtime(tree):
    plugin = next(tree.rglob("spank_spark_stage.so"))
    needed = re.findall(r"NEEDED\s+(\S+)", run("objdump", "-p", plugin))
    assert sorted(needed) == ["libc.so.6", "libjson-c.so.5"], needed
    exported = {line.split()[-1] for line in run("nm", "-D", "--defined-only", plugin).splitlines()}
    assert {"slurm_spank_init", "plugin_name"} < exported
    assert all(name.startswith(("slurm_spank_", "plugin_", "spank_plugin_version")) for name in exported), exported
