"""Jobs that stage and train: the tasks' environment, the leases, and one copy per node."""
import hashlib
import re
import secrets
import time

import pytest

from cluster import ALICE, BOB
from node import wait_until

# Prints the digest of the staged files, then waits for the file $0.
TRAIN = 'cat "$SPARK_STAGE_IMAGENET"/*.bin | sha256sum; until [ -e "$0" ]; do sleep 0.1; done'


def digest(cluster, dataset):
    hashed = hashlib.sha256()
    for path in sorted((cluster.source / dataset).iterdir(), key=lambda path: path.name):
        hashed.update(path.read_bytes())
    return hashed.hexdigest()


def copies_made(daemon, dataset="imagenet"):
    """The paths of copies that the daemon made since the test began, from its own jobs; reused copies are not included."""
    staged = [one for job in daemon.new_jobs() if job["verb"] == "stage" and job["result"] for one in job["result"]["datasets"]]
    return {one["path"] for one in staged if one["name"] == dataset and one["served_from"] == "copied"}


def leases_of(daemon, dataset="imagenet"):
    return sorted(lease["id"] for lease in daemon.datasets().get(dataset, {"leases": []})["leases"])


@pytest.fixture
def go(cluster):
    """The file that ends the jobs' training when it exists."""
    path = cluster.work / "go"
    path.unlink(missing_ok=True)
    yield path
    path.touch()


def job_of(cluster, user=ALICE):
    return wait_until(lambda: cluster.slurm("squeue", "-h", "-t", "R", "-u", user, "-o", "%A").stdout.split(), "a job runs")[0]


def test_four_nodes_stage_one_dataset_and_train_on_it(cluster, go):
    training = cluster.start("srun", "-N4", "--ntasks-per-node=2", "--stage=imagenet", "sh", "-c", TRAIN, go)
    job = job_of(cluster)
    for daemon in cluster.daemons():
        wait_until(lambda daemon=daemon: leases_of(daemon) == [f"job:slurm:{job}:imagenet"], f"job {job} holds its copy")
    go.touch()
    output = training.communicate(timeout=60)[0]
    assert training.returncode == 0, output
    assert re.findall(r"[0-9a-f]{64}", output) == 8 * [digest(cluster, "imagenet")], output
    for daemon in cluster.daemons():
        assert daemon.datasets()["imagenet"]["state"] == "ready"


@pytest.fixture
def fleet(cluster):
    """The daemons are a fleet whose configuration names no peer."""
    key = cluster.folder / "fleet.key"
    key.touch(mode=0o600)
    key.write_text(secrets.token_hex(32) + "\n")
    texts = {node: node.daemon.config.read_text() for node in cluster.nodes.values()}
    for node, text in texts.items():
        node.daemon.config.write_text(f"{text}fleet: {{listen: {node.host.address}:7789, key_file: {key}, peers: {{}}}}\n")
        assert node.daemon.ask("POST", "/v1/reload")[0] == 200
    for node in texts:
        wait_until(lambda node=node: node.daemon.ask("GET", "/v1/status")[1]["fleet"]["serving"], f"{node.name} serves peers")
    yield
    for node, text in texts.items():
        node.daemon.config.write_text(text)
        assert node.daemon.ask("POST", "/v1/reload")[0] == 200


@pytest.mark.usefixtures("fleet")
def test_the_nodes_of_a_job_are_peers_of_its_staging(cluster):
    size = sum(path.stat().st_size for path in (cluster.source / "imagenet").iterdir())
    done = cluster.slurm("srun", "-N4", "--stage=imagenet", "true")
    assert done.returncode == 0, done.stderr
    staged = [daemon.datasets()["imagenet"]["bytes_from"] for daemon in cluster.daemons()]
    assert sum(one["volume"] for one in staged) == size, staged
    assert sum(one["peers"] for one in staged) == 3 * size, staged


def test_each_task_finds_its_datasets_by_a_variable_for_each(cluster):
    done = cluster.slurm("srun", "-N2", "--ntasks-per-node=3", "--stage=imagenet,models", "sh", "-c",
                         'ls "$SPARK_STAGE_IMAGENET" "$SPARK_STAGE_MODELS" | wc -l; [ "$HF_HOME" = "$SPARK_STAGE_MODELS" ] && echo same')
    assert done.returncode == 0, done.stderr
    assert done.stdout.split().count("same") == 6, done.stdout


def test_a_job_without_the_option_needs_no_daemon(cluster):
    daemon = cluster.nodes["n1"].daemon
    daemon.stop()
    try:
        done = cluster.slurm("srun", "-w", "n1", "sh", "-c", "env | grep SPARK_STAGE; echo ran")
    finally:
        daemon.start()
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr


def test_the_steps_of_a_batch_job_copy_once(cluster):
    script = cluster.work / "steps.sh"
    script.write_text("#!/bin/sh\n#SBATCH --stage=imagenet -N2 --ntasks-per-node=2\n"
                      'echo "batch $SPARK_STAGE_IMAGENET"\n'
                      'for step in 1 2 3; do srun sh -c \'echo "step $SPARK_STAGE_IMAGENET"\'; done\n')
    done = cluster.slurm("sbatch", "--wait", "-o", "steps.out", script)
    output = (cluster.work / "steps.out").read_text()
    assert done.returncode == 0, done.stderr + output
    paths = re.findall(r"(batch|step) (\S+/imagenet/\d+)", output)
    assert [kind for kind, _ in paths].count("step") == 12 and paths[0][0] == "batch", output
    for name in ("n1", "n2"):
        assert len(copies_made(cluster.nodes[name].daemon)) == 1


def test_a_batch_job_without_the_users_environment_stages(cluster):
    for export in ("NONE", "X=1"):
        done = cluster.slurm("sbatch", "--wait", "-N1", f"--export={export}", "--stage=imagenet,models", "-o", "export.out", "--wrap",
                             'ls "$SPARK_STAGE_IMAGENET" | wc -l; ls "$HF_HOME" | wc -l')
        output = (cluster.work / "export.out").read_text()
        assert (done.returncode, of_job(output)) == (0, ["40", "10"]), output + done.stderr
        done = cluster.slurm("sbatch", "--wait", "-N1", f"--export={export}", "--stage=data:away", "-o", "export.out", "--wrap", "echo ran")
        output = (cluster.work / "export.out").read_text()
        assert done.returncode != 0 and "ran" not in output.split(), output


def of_job(output):
    """The words of a job's output without the plugin's lines, which follow a wait of some seconds."""
    return " ".join(line for line in output.splitlines() if not line.startswith("spark-stage: ")).split()


def test_the_steps_of_a_job_have_their_copy_whatever_happens_to_the_source(cluster, go):
    script = cluster.work / "holds.sh"
    script.write_text("#!/bin/sh\n#SBATCH --stage=imagenet -N1\ntouch held\nuntil [ -e go ]; do sleep 0.1; done\n"
                      'srun sh -c \'ls "$SPARK_STAGE_IMAGENET" | wc -l\'\n')
    held = cluster.work / "held"
    held.unlink(missing_ok=True)
    source, aside = cluster.source / "imagenet", cluster.source / "aside"
    job = cluster.start("sbatch", "--wait", "-o", "holds.out", script)
    wait_until(held.exists, "the script runs")
    source.rename(aside)
    try:
        go.touch()
        assert job.wait(60) == 0, (cluster.work / "holds.out").read_text()
    finally:
        aside.rename(source)
    assert of_job((cluster.work / "holds.out").read_text()) == ["40"]


def test_an_interactive_allocation_stages_for_its_steps(cluster):
    done = cluster.slurm("salloc", "-N2", "--stage=imagenet", "srun", "sh", "-c", 'ls "$SPARK_STAGE_IMAGENET" | wc -l')
    assert (done.returncode, done.stdout.split()) == (0, ["40", "40"]), done.stderr


def test_an_array_of_twenty_jobs_copies_once_per_node(cluster):
    done = cluster.slurm("sbatch", "--wait", "--array=1-20", "--stage=imagenet", "-o", "array.%a.out", "--wrap",
                         'echo "$SLURM_ARRAY_TASK_ID $(ls "$SPARK_STAGE_IMAGENET" | wc -l)"')
    outputs = [(cluster.work / f"array.{number}.out").read_text() for number in range(1, 21)]
    assert done.returncode == 0, done.stderr + "".join(outputs)
    assert [of_job(output) for output in outputs] == [[str(number), "40"] for number in range(1, 21)]
    assert all(len(copies_made(daemon)) <= 1 for daemon in cluster.daemons())
    assert any(copies_made(daemon) for daemon in cluster.daemons())


def test_jobs_of_two_users_share_a_copy_and_hold_it_separately(cluster, frozen, go):
    jobs = {user: cluster.start("srun", "-w", "n1", "--stage=imagenet", "sh", "-c", TRAIN, end, user=user)
            for user, end in ((ALICE, cluster.work / "end"), (BOB, go))}
    frozen.wait_for(1)
    daemon = cluster.nodes["n1"].daemon
    numbers = {user: job_of(cluster, user) for user in jobs}
    frozen.open()
    both = sorted(f"job:slurm:{number}:imagenet" for number in numbers.values())
    wait_until(lambda: leases_of(daemon) == both, "both hold the copy")
    (cluster.work / "end").touch()
    first = jobs[ALICE].communicate(timeout=60)[0]
    wait_until(lambda: leases_of(daemon) == [f"job:slurm:{numbers[BOB]}:imagenet"], "the other's lease is left")
    go.touch()
    second = jobs[BOB].communicate(timeout=60)[0]
    assert digest(cluster, "imagenet") in first and digest(cluster, "imagenet") in second
    assert len(copies_made(daemon)) == 1


def test_a_requeued_job_stages_again_and_holds_its_copy(cluster, frozen):
    started = cluster.work / "requeued.out"
    job = cluster.slurm("sbatch", "--parsable", "--requeue", "-w", "n1", "--stage=imagenet", "-o", "requeued.out", "--wrap",
                        'echo "ran $(ls "$SPARK_STAGE_IMAGENET" | wc -l)"').stdout.strip()
    wait_until(lambda: started.exists() and "imagenet: " in started.read_text(), "the script's task waits")
    assert cluster.slurm("scontrol", "requeue", job).returncode == 0
    wait_until(lambda: f"{job} PENDING" in cluster.jobs(), "the job waits again")
    frozen.open()

    asked = []

    def has_run():
        # Slurm delays a requeued job by two minutes after the first attempt was cleaned up. If StartTime is set more often
        # than Slurm checks it, the job starts even later. If it starts in the second in which the first attempt was killed,
        # it fails: slurmd identifies attempts by the second of their credentials ("already killed, do not launch batch job").
        reason = cluster.slurm("squeue", "-h", "-j", job, "-o", "%r").stdout.strip()
        if reason == "BeginTime" and (not asked or time.monotonic() - asked[-1] > 10):
            cluster.slurm("scontrol", "update", f"JobId={job}", "StartTime=now+3seconds", user="root")
            asked.append(time.monotonic())
        return started.exists() and "ran 40" in started.read_text()

    wait_until(has_run, lambda: "the requeued job has run: " + cluster.slurm("scontrol", "show", "job", job).stdout
               + started.read_text() + cluster.nodes["n1"].story())
    assert started.read_text().count("ran") == 1


def test_a_step_stages_in_an_allocation_without_the_option(cluster):
    done = cluster.slurm("salloc", "-N2", "srun", "--stage=imagenet", "sh", "-c", 'ls "$SPARK_STAGE_IMAGENET" | wc -l')
    assert (done.returncode, done.stdout.split()) == (0, ["40", "40"]), done.stderr


def test_the_parts_of_a_heterogeneous_job_hold_their_copies_separately(cluster, go):
    part = ["--stage=imagenet,models", "sh", "-c", f'{TRAIN}; ls "$SPARK_STAGE_MODELS" | wc -l', go]
    job = cluster.start("srun", "-w", "n1", *part, ":", "-w", "n2", *part)
    first = job_of(cluster)
    for name, number in (("n1", first), ("n2", str(int(first) + 1))):
        wait_until(lambda name=name, number=number: leases_of(cluster.nodes[name].daemon) == [f"job:slurm:{number}:imagenet"],
                   f"part {number} holds its copy")
    go.touch()
    output = job.communicate(timeout=60)[0]
    assert job.returncode == 0 and output.count(digest(cluster, "imagenet")) == 2, output


def test_the_next_jobs_data_is_prefetched_while_this_one_trains(cluster, go):
    training = cluster.start("srun", "-w", "n1", "--stage=imagenet", "--prefetch=models", "sh", "-c", TRAIN, go)
    daemon = cluster.nodes["n1"].daemon
    wait_until(lambda: daemon.datasets().get("models", {}).get("state") == "ready", "the next job's data is there")
    assert not go.exists(), "while this job runs"
    go.touch()
    output = training.communicate(timeout=60)[0]
    assert training.returncode == 0, output
    wait_until(lambda: not daemon.leases(), "the job has released its own copy")
    assert [lease["id"] for lease in daemon.all_leases()] == ["prefetch:models"]
