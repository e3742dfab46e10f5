"""Failures: the user sees the reason, the task ends, and the node stays in service."""
import re
import subprocess
import time

import pytest

from cluster import NODES
from node import wait_until

FROZEN_S = 15  # longer than any limit of the plugin for one answer
RAN = "ran.txt"
WAITING = r"spark-stage: n\d: imagenet: "  # first line of a task, printed after a second


def ran(cluster):
    return (cluster.work / RAN).exists()


def start(cluster, *arguments, **more):
    (cluster.work / RAN).unlink(missing_ok=True)
    return cluster.start("srun", "--stage=imagenet", *arguments, "sh", "-c", f'touch {RAN}; ls "$SPARK_STAGE_IMAGENET" | wc -l',
                         **more)


def finish(process):
    output = process.communicate(timeout=120)[0]
    return process.returncode, output


def lines_until(process, pattern, count):
    """The output up to this number of matching lines."""
    read = ""
    while len(re.findall(pattern, read)) < count:
        line = process.stdout.readline()
        assert line, read
        read += line
    return read


def test_a_dataset_that_is_not_configured_is_refused_at_submission(cluster):
    for command, *job in (("srun", "true"), ("sbatch", "--wrap", "true"), ("salloc", "true")):
        done = cluster.slurm(command, "--stage=models,imagnet", *job, user="root")
        assert done.returncode != 0
        assert "there is no dataset 'imagnet'; did you mean 'imagenet'?" in done.stderr, done.stderr
    script = cluster.work / "refused.sh"
    script.write_text("#!/bin/sh\n#SBATCH --prefetch=imagnet\n")
    done = cluster.slurm("sbatch", script, user="root")
    assert "did you mean 'imagenet'?" in done.stderr, done.stderr
    assert not cluster.jobs()


def test_an_invalid_name_is_refused_without_a_daemon(cluster):
    for option, reason in (("--stage=", "an empty name"), ("--stage=a,,b", "an empty name"),
                           ("--prefetch=data:", "no path after the colon"),
                           ("--stage-out=a:b", "is not the name of an output")):
        done = cluster.slurm("srun", option, "true")
        assert done.returncode != 0 and reason in done.stderr, (option, done.stderr)


def test_a_user_without_access_to_the_daemon_gets_the_error_from_the_task(cluster):
    done = cluster.slurm("srun", "-N2", "--stage=imagnet", "echo", "ran")
    assert (done.returncode, done.stdout) == (1, "")
    for node in ("n1", "n2"):
        assert f"spark-stage: {node}: there is no dataset 'imagnet'; did you mean 'imagenet'?" in done.stderr, done.stderr


def test_a_dataset_that_does_not_fit_fails_the_task(cluster):
    done = cluster.slurm("srun", "--stage=huge", "echo", "ran")
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert re.search(r"spark-stage: n\d: .*huge", done.stderr), done.stderr


def test_a_stopped_daemon_fails_the_task_and_names_the_command_to_start_it(cluster):
    daemon = cluster.nodes["n2"].daemon
    daemon.stop()
    try:
        code, output = finish(start(cluster, "-w", "n2"))
    finally:
        daemon.start()
    assert code == 1 and not ran(cluster), output
    assert "spark-staged on n2 does not answer" in output and "systemctl start spark-staged" in output, output


def test_staging_continues_after_the_daemon_is_killed(cluster, frozen):
    job = start(cluster, "-N2", "-w", "n1,n2")
    frozen.wait_for(2)
    daemon = cluster.nodes["n1"].daemon
    daemon.kill()
    lines_until(job, r"n1: .* trying again for", 1)
    daemon.start()
    frozen.open()
    code, output = finish(job)
    assert (code, output.split().count("40")) == (0, 2), output


def test_a_frozen_source_is_reported_and_waited_for(cluster, frozen):
    begun = time.monotonic()
    job = start(cluster, "-N2", "-w", "n1,n2")
    frozen.wait_for(2)
    read = lines_until(job, r"n[12]: imagenet: stalled", 2)
    assert {"n1", "n2"} == set(re.findall(r"(n[12]): imagenet: stalled", read)), read
    time.sleep(max(0, FROZEN_S - (time.monotonic() - begun)))
    assert not ran(cluster)
    frozen.open()
    code, output = finish(job)
    assert (code, output.split().count("40")) == (0, 2), output


def test_the_tasks_of_a_job_wait_in_one_job_of_the_daemon(cluster, frozen):
    job = start(cluster, "-n8", "-w", "n1")
    frozen.wait_for(1)
    lines_until(job, WAITING, 1)
    time.sleep(2)  # every task has asked
    assert [one["state"] for one in cluster.nodes["n1"].daemon.new_jobs()] == ["running"]
    frozen.open()
    code, output = finish(job)
    assert (code, output.split().count("40")) == (0, 8), output


@pytest.fixture
def away(cluster):
    """On n1, the dataset `remote` is on a volume whose target does not answer."""
    node = cluster.nodes["n1"]
    text, mount = node.daemon.config.read_text(), node.daemon.folder / "mnt"
    volumes = ("targets: {rose: {address: 127.0.0.1, port: 9}}\n"
               f"volumes: {{gone: {{target: rose, subsystem: data, mount: {mount}}}}}\ncache:")
    node.daemon.config.write_text(text.replace("cache:", volumes, 1) + "  remote: {volume: gone, path: data}\n")
    assert node.daemon.ask("POST", "/v1/reload")[0] == 200
    yield node
    node.daemon.config.write_text(text)
    assert node.daemon.ask("POST", "/v1/reload")[0] == 200
    subprocess.run(["chattr", "-i", mount], stderr=subprocess.DEVNULL, check=False)


def test_a_target_that_is_away_is_waited_for_in_one_job_and_named(cluster, away):
    job = cluster.start("srun", "-n4", "-w", "n1", "--stage=remote", "true")
    read = lines_until(job, r"n1: remote: stalled: volume gone is ", 2)
    waiting = away.daemon.new_jobs()
    assert [one["state"] for one in waiting] == ["running"], read
    assert waiting[0]["progress"]["phase"] == "stalled" and "volume gone is " in waiting[0]["progress"]["reason"]
    cluster.slurm("scancel", "--me")
    code, output = finish(job)
    assert code != 0 and "the step is being cancelled" in read + output, output


def test_scancel_ends_the_wait_while_the_source_is_still_frozen(cluster, frozen):
    job = start(cluster, "-N2", "-w", "n1,n2")
    frozen.wait_for(2)
    lines_until(job, WAITING, 2)
    begun = time.monotonic()
    cluster.slurm("scancel", "--me")
    code, output = finish(job)
    print(f"the wait ended after {time.monotonic() - begun:.2f} s")
    assert code != 0 and not ran(cluster), output
    assert "the step is being cancelled" in output, output
    wait_until(lambda: set(cluster.states().values()) == {"idle"}, "the nodes are free")
    assert not frozen.opened


def test_scancel_ends_the_wait_of_a_batch_job(cluster, frozen):
    for name in (RAN, "cancelled.out"):
        (cluster.work / name).unlink(missing_ok=True)
    cluster.slurm("sbatch", "-w", "n1", "--stage=imagenet", "-o", "cancelled.out", "--wrap", f"touch {RAN}")
    output = cluster.work / "cancelled.out"
    wait_until(lambda: output.exists() and re.search(WAITING, output.read_text()), "the script's task waits")
    cluster.slurm("scancel", "--me")
    wait_until(lambda: set(cluster.states().values()) == {"idle"} and not cluster.jobs(), "the node is free")
    assert not frozen.opened and not ran(cluster)


def test_a_cancelled_step_leaves_its_allocation_usable(cluster, frozen):
    assert cluster.slurm("salloc", "--no-shell", "-N1", "-w", "n1", "--stage=imagenet").returncode == 0
    job = cluster.jobs()[0].split()[0]
    step = start(cluster, f"--jobid={job}")
    lines_until(step, WAITING, 1)
    cluster.slurm("scancel", f"{job}.0")
    code, output = finish(step)
    assert code != 0 and not ran(cluster), output
    frozen.open()
    code, output = finish(start(cluster, f"--jobid={job}"))
    assert (code, output.split().count("40")) == (0, 1) and ran(cluster), output
    cluster.slurm("scancel", job)


def test_a_slurmd_restart_during_staging_loses_no_job(cluster, frozen):
    job = start(cluster, "-N2", "-w", "n1,n2")
    frozen.wait_for(2)
    cluster.nodes["n1"].restart_slurmd()
    frozen.open()
    code, output = finish(job)
    assert (code, output.split().count("40")) == (0, 2), output


@pytest.mark.parametrize("how", ["optional", "required"])
def test_a_task_without_its_data_never_runs(cluster, how):
    cluster.use_plugin(how=how)
    done = cluster.slurm("srun", "--stage=imagnet", "echo", "ran")
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "there is no dataset 'imagnet'" in done.stderr, done.stderr
    done = cluster.slurm("srun", "--stage=huge", "echo", "ran")  # known, and larger than the cache: the task finds out
    assert done.returncode != 0 and done.stdout == "", done.stderr
    done = cluster.slurm("srun", "--stage=imagenet", "sh", "-c", 'ls "$SPARK_STAGE_IMAGENET" | wc -l')
    assert done.stdout.split() == ["40"], done.stderr


def test_slurm_goes_on_where_the_plugin_is_missing(cluster):
    cluster.use_plugin(plugin="/nowhere/spank_spark_stage.so")
    done = cluster.slurm("srun", "-N4", "hostname")
    assert (done.returncode, sorted(done.stdout.split())) == (0, list(NODES)), done.stderr
    assert cluster.slurm("srun", "--stage=imagenet", "true").returncode != 0


def test_argument_errors_of_the_plugin_fail_only_the_jobs_that_use_it(cluster):
    cluster.use_plugin("soket=/a")
    assert cluster.slurm("srun", "-N4", "true").returncode == 0
    done = cluster.slurm("srun", "--stage=imagenet", "true")
    assert done.returncode != 0 and "not known: soket=/a" in done.stderr, done.stderr
