"""The commands of docs/slurm.md, and its example that stages while a job is pending."""
import re

import pytest

from cluster import BUILD
from node import ROOT, wait_until

PAGE = (ROOT / "docs/slurm.md").read_text()


def block(begin):
    """The only block of the page with a line that begins with this text, without indentation."""
    found = [text for text in re.findall(r"^ *```\w+\n(.*?)^ *```$", PAGE, re.DOTALL | re.MULTILINE)
             if any(line.strip().startswith(begin) for line in text.splitlines())]
    assert len(found) == 1, f"{len(found)} blocks with {begin!r}"
    return found[0]


@pytest.mark.parametrize("begin", ["srun --kill-on-bad-exit=1 python train.py --data", "#SBATCH --stage=imagenet:now"])
def test_the_scripts_of_the_page_train_on_four_nodes(cluster, begin):
    script = cluster.work / "page.sh"
    script.write_text(block(begin).replace("python train.py --data", "ls").replace("python train.py", "sh -c 'ls $SPARK_STAGE_IMAGENET'"))
    done = cluster.slurm("sbatch", "--wait", "-o", "page.out", script)
    output = (cluster.work / "page.out").read_text()
    assert (done.returncode, output.split().count("39.bin")) == (0, 4), done.stderr + output


def test_the_first_job_of_the_page_counts_entries_on_each_node(cluster):
    typed = block("srun --nodes=4 --stage=imagenet").strip()
    done = cluster.slurm("bash", "-c", typed)
    assert sorted(re.findall(r"^(n\d): 40 entries$", done.stdout, re.MULTILINE)) == ["n1", "n2", "n3", "n4"], done.stderr


def test_the_line_of_the_page_enables_the_plugin(cluster):
    typed = block("echo 'include /etc/slurm").strip()
    included, file = re.fullmatch(r"echo '(include (\S+))' \| sudo tee -a /etc/slurm/plugstack.conf", typed).groups()
    assert file == "/etc/slurm/plugstack.conf.d/*.conf"  # where the package has it: test_package.py
    folder = cluster.folder / "plugstack.conf.d"
    folder.mkdir(exist_ok=True)
    shipped = (ROOT / "configs/slurm/spark-stage.conf").read_text()
    # Slurm searches for a plain file name in PluginDir.
    plugin = str(BUILD / "slurm/spank_spark_stage.so")
    text = shipped.replace("optional spank_spark_stage.so", f"optional {plugin} socket={cluster.folder}/%n/api.sock")
    assert text != shipped
    (folder / "spark-stage.conf").write_text(text)
    cluster.write_plugstack(included.replace("/etc/slurm", str(cluster.folder)))
    assert "--stage=DATASET" in cluster.slurm("srun", "--help").stdout
    (folder / "spark-stage.conf").unlink()  # as after a purge: the line that includes it may stay
    assert cluster.slurm("srun", "true").returncode == 0


def test_a_job_of_the_burst_buffer_example_is_pending_until_its_data_is_staged(cluster, frozen):
    script = cluster.work / "burst.sh"
    script.write_text('#!/bin/sh\n#SPARK stage=imagenet\n#SBATCH -w n1 --stage=imagenet -o burst.out\nls "$SPARK_STAGE_IMAGENET" | wc -l\n')
    submitted = cluster.slurm("sbatch", "--parsable", script)
    job = submitted.stdout.strip()
    assert job, submitted.stderr
    frozen.wait_for(4)
    assert cluster.slurm("squeue", "-h", "-j", job, "-o", "%T").stdout == "PENDING\n"
    frozen.open()
    wait_until(lambda: (cluster.work / "burst.out").exists() and (cluster.work / "burst.out").read_text() == "40\n", "it has run")
    for daemon in cluster.daemons():
        assert daemon.datasets()["imagenet"]["state"] == "ready"
        for lease in daemon.leases():
            daemon.ask("DELETE", f"/v1/leases/{lease['id']}")


def test_an_invalid_name_is_refused_by_the_burst_buffer_example(cluster):
    script = cluster.work / "refused.sh"
    script.write_text("#!/bin/sh\n#SPARK stage=imagenet;reboot\ntrue\n")
    done = cluster.slurm("sbatch", script)
    assert done.returncode != 0 and "a character that no dataset's name has" in done.stderr, done.stderr
