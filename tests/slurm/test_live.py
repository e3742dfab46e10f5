"""Jobs that begin before their dataset is complete (--stage=NAME:now)."""
import os
from pathlib import Path

import pytest

from cluster import Cluster
from gate import Gate
from node import wait_until
from test_training import digest, leases_of

# Lists the files, says so by the file $0, then reads them.
READ = 'ls "$SPARK_STAGE_IMAGENET" | wc -l; touch "$0"; cat "$SPARK_STAGE_IMAGENET"/*.bin | sha256sum; echo "at $SPARK_STAGE_IMAGENET"'


@pytest.fixture
def begun(cluster):
    path = cluster.work / "begun"
    path.unlink(missing_ok=True)
    return path


def state(daemon):
    return daemon.datasets()["imagenet"]["state"]


def views_of(node):
    return [line for line in Path(f"/proc/{node.host.init}/mounts").read_text().splitlines() if "/.live/" in line]


def ends_its_view(node):
    wait_until(lambda: not views_of(node), lambda: f"the view has ended: {views_of(node)}\n{node.story()}")


def test_a_task_begins_at_once_and_reads_what_arrives(cluster, frozen, begun):
    node = cluster.nodes["n1"]
    job = cluster.start("srun", "-w", "n1", "--ntasks-per-node=2", "--stage=imagenet:now", "sh", "-c", READ, begun)
    wait_until(begun.exists, lambda: f"a task runs\n{node.story()}")
    assert state(node.daemon) == "live"
    assert [lease.rsplit(":", 1)[1] for lease in leases_of(node.daemon)] == ["imagenet"]
    frozen.open()
    output = job.communicate(timeout=60)[0]
    assert job.returncode == 0, output
    assert output.count(digest(cluster, "imagenet")) == 2 and "imagenet is live: reads of what is missing wait" in output, output
    ends_its_view(node)
    assert not leases_of(node.daemon)


def test_each_dataset_says_for_itself(cluster, frozen, begun):
    job = cluster.start("srun", "-w", "n1", "--stage=imagenet:now,models", "sh", "-c",
                        f'echo "copies $(cat "$SPARK_STAGE_MODELS"/*.bin | wc -c)"; {READ}', begun)
    wait_until(begun.exists, "the task runs")
    datasets = cluster.nodes["n1"].daemon.datasets()
    assert (datasets["imagenet"]["state"], datasets["models"]["state"]) == ("live", "ready")
    frozen.open()
    output = job.communicate(timeout=60)[0]
    assert job.returncode == 0 and digest(cluster, "imagenet") in output and "copies 500000" in output, output


def test_the_next_step_gets_the_copy_once_it_is_published(cluster, frozen, begun):
    node = cluster.nodes["n1"]
    script = cluster.work / "live.sh"
    script.write_text(f"#!/bin/sh\n#SBATCH --stage=imagenet:now -N1 -w n1\nsrun sh -c '{READ}' {begun}\n"
                      f"until [ -e {begun}.2 ]; do sleep 0.1; done\nsrun sh -c '{READ}' {begun}\n")
    second = begun.with_suffix(".2")
    second.unlink(missing_ok=True)
    job = cluster.start("sbatch", "--wait", "-o", "live.out", script)
    wait_until(begun.exists, lambda: f"the first step runs\n{node.story()}")
    frozen.open()
    wait_until(lambda: state(node.daemon) == "ready", "the copy is complete")
    second.touch()
    assert job.wait(60) == 0, (cluster.work / "live.out").read_text()
    output = (cluster.work / "live.out").read_text()
    assert output.count(digest(cluster, "imagenet")) == 2, output
    places = [line for line in output.splitlines() if line.startswith("at ")]
    assert "/.live/" in places[0] and "/data/" in places[1], output
    ends_its_view(node)


def test_scancel_ends_a_task_that_waits_for_its_data(cluster, frozen, begun):
    node = cluster.nodes["n1"]
    job = cluster.start("srun", "-w", "n1", "--stage=imagenet:now", "sh", "-c", READ, begun)
    wait_until(begun.exists, "the task runs")
    number = leases_of(node.daemon)[0].split(":")[2]
    assert cluster.slurm("scancel", number).returncode == 0
    job.communicate(timeout=60)
    ends_its_view(node)
    wait_until(lambda: state(node.daemon) == "absent", "nobody stages it any more")


def test_a_prefetch_is_never_live(cluster):
    done = cluster.slurm("srun", "-w", "n1", "--prefetch=imagenet:now", "true")
    assert done.returncode == 0 and "there is no volume 'imagenet'" in done.stderr, done.stderr  # a job needs no prefetch
    assert state(cluster.nodes["n1"].daemon) == "absent"


@pytest.fixture
def private():
    """A node whose jobs have a /tmp and mounts of their own. On one CPU: Linux 6.18 numbers namespaces per CPU, and refuses to
    bind that of a job, as Slurm does, if its number is below the node's."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        cluster = Cluster(("n1",), private_tmp=True)
        yield cluster
        cluster.stop()
    finally:
        os.sched_setaffinity(0, allowed)


def test_a_job_with_mounts_of_its_own_sees_the_view(private):
    node, begun = private.nodes["n1"], private.work / "begun"
    with Gate(private.source / "imagenet/0.bin") as gate:
        job = private.start("srun", "--stage=imagenet:now", "sh", "-c", f"readlink /proc/self/ns/mnt; {READ}", begun)
        wait_until(begun.exists, lambda: f"the task runs\n{node.story()}")
        gate.open()
        output = job.communicate(timeout=60)[0]
    assert job.returncode == 0 and digest(private, "imagenet") in output, output
    assert Path(f"/proc/{node.host.init}/ns/mnt").readlink().name not in output, "it has a namespace of its own"
    ends_its_view(node)
