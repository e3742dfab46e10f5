"""A training job on two hosts: each saves its shards of a checkpoint, both are killed and resume from the newest complete one."""
import json
import os
import queue
import random
import time
from contextlib import contextmanager

import pytest

from rig.holder_export import HolderExport
from rig.house import NAS_EXPORT, TARGET_ADDRESS
from rig.own_volume import assert_whole, own_volume
from rig.settings import patience
from rig.trainer import OUT, THERE, VOLUME, Trainer, python

ROUNDS = int(os.environ.get("SPARK_TRAINING_ROUNDS", "5"))
FOLDER = f"{OUT}/run7"
MOST_SAVES, LONGEST_PAUSE_S = 2, 3.0
KILL_DAEMON, LOSE_NODE = 2, 4  # round numbers modulo five
FIRST_PORT = 29000


class Node:
    """A host's part of the job: training/node.py."""

    def __init__(self, trainer, rank, first_host):
        self.trainer, self.machine, self.product = trainer, trainer.host, trainer.product
        self.answers = queue.Queue()
        self._text = ""
        self.machine.sh("rm -f /tmp/orders; mkfifo /tmp/orders")
        self.program = self.machine.spawn(
            f"exec {python('eth0')} /root/node.py {rank} {first_host} {FOLDER} run7 <>/tmp/orders", on_output=self._take)

    def _take(self, text):
        *lines, self._text = (self._text + text).split("\n")
        for line in lines:
            try:
                self.answers.put(json.loads(line))
            except ValueError:
                print(f"{self.machine.name}: {line}", flush=True)

    def order(self, **words):
        self.machine.sh(f"echo '{json.dumps(words)}' >/tmp/orders")

    def wait(self, word, deadline=240):
        """Waits for an answer with this word, and returns it; fails on any that tells of a failure."""
        end = time.monotonic() + patience(deadline)
        while True:
            try:
                found = self.answers.get(timeout=max(0.1, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"{self.machine.name}: no '{word}'\n{self.program.err}") from None
            assert "wrong" not in found and "failed" not in found, found
            if word in found:
                return found


class Job:
    """`saved`: the newest step that both hosts have saved, as far as its data still exists."""

    def __init__(self, trainers, server, there):
        first_host = trainers[0].host.address
        self.nodes = [Node(trainer, rank, first_host) for rank, trainer in enumerate(trainers)]
        self.server, self.there = server, there
        self.saved = self.attempt = 0
        for node in self.nodes:
            node.wait("ready", 300)

    def published(self):
        name = self.server.sh(f"readlink {self.there}/latest || true").strip()
        return int(name.removeprefix("step-") or 0)

    def begin(self, **words):
        """Both hosts resume from one checkpoint, the newest that both had saved or a newer one; returns the step."""
        self.attempt += 1
        floor = max(self.saved, self.published())
        for node in self.nodes:
            node.order(begin=self.attempt, port=FIRST_PORT + self.attempt, **words)
        steps = [node.wait("resumed")["resumed"] for node in self.nodes]
        assert steps[0] == steps[1], steps
        assert steps[0] >= floor, f"resumed from step {steps[0]}, but both hosts had saved {floor}"
        self.saved = steps[0]
        return steps[0]

    def end(self):
        """Kills the processes of both hosts."""
        for node in random.sample(self.nodes, 2):
            node.order(end=0)
        for node in self.nodes:
            while "ended" not in (found := node.answers.get(timeout=patience(60))):
                self.saved = found.get("saved", self.saved)

    def wait_saved(self, step):
        while self.saved < step:
            self.saved = self.nodes[0].wait("saved")["saved"]

    def lose(self, node):
        """Deletes a host's local data; the published checkpoints remain."""
        node.machine.sh(f"rm -rf {FOLDER}/*")
        self.saved = 0

    def close(self):
        for node in self.nodes:
            node.program.signal(9)
            node.program.wait(30)


@pytest.fixture(scope="module")
def trainers(product_rig, house):
    made = [Trainer(product_rig, house, f"trainer{number}") for number in (1, 2)]
    try:
        for trainer in made:
            trainer.start()
        yield made
    finally:
        for trainer in made:
            trainer.host.kill()


@contextmanager
def job_of(trainers, volumes, volume, server, there):
    """The job of these hosts. volumes: the configuration of each; volume: that of the output; `there`: its folder on `server`."""
    output = {"path": FOLDER, "volume": volume, "to": "run7", "complete": "marker:DONE", "nodes": 2, "keep": 2, "keep_local": 3}
    for trainer, mine in zip(trainers, volumes, strict=True):
        trainer.host.sh(f"mkdir -p {FOLDER}")
        trainer.product.configure(trainer.config(volumes=mine))
        trainer.product.wait_volume(volume, "ready", 120)
        trainer.product.configure(trainer.config(volumes=mine, outputs={"run7": output}))
    job = Job(trainers, server, there)
    try:
        yield job
        assert assert_whole(trainers[1].product, volume, mine[volume]["mount"])
    finally:
        job.close()
        for trainer, mine in zip(trainers, volumes, strict=True):
            trainer.product.configure(trainer.config(volumes=mine))
            trainer.product.run(f"volumes down {volume}", 120)
            trainer.product.configure(trainer.config(volumes={name: body for name, body in mine.items() if name != volume}))
            trainer.host.sh(f"rm -rf {OUT} /var/lib/spark-stage/stage-outs/outputs/run7.json")


@pytest.fixture
def job_on_nas(trainers):
    target = trainers[0].target.machine
    nas = {"nas": {"nfs": f"{TARGET_ADDRESS}:{NAS_EXPORT}", "mount": "/mnt/nas", "access": "exclusive", "options": ["vers=4.2"]}}
    with job_of(trainers, (nas, nas), "nas", target, f"{NAS_EXPORT}/run7") as job:
        yield job
    target.sh(f"rm -rf {NAS_EXPORT}/run7")


@pytest.fixture
def job_on_volume_of_holder(trainers):
    """The first host holds the volume, and exports it to both."""
    holder, other = (trainer.host for trainer in trainers)
    with own_volume(trainers[0], VOLUME) as held:
        export = HolderExport(holder, other, VOLUME, THERE, OUT)
        try:
            export.start()
            with job_of(trainers, ({**held, **export.volumes()}, export.volumes()), "both", holder, f"{THERE}/run7") as job:
                yield job
        finally:
            export.stop()


def train(job, rounds):
    for number in range(rounds):
        began = time.monotonic()
        node = random.choice(job.nodes)
        if number % 5 == KILL_DAEMON:
            node.product.kill()
        elif number % 5 == LOSE_NODE:
            job.lose(node)
        resumed = job.begin()
        waited = time.monotonic() - began
        job.wait_saved(resumed + random.randint(0, MOST_SAVES))
        time.sleep(random.uniform(0, LONGEST_PAUSE_S))
        job.end()
        print(json.dumps({"round": number, "resumed": resumed, "saved": job.saved, "published": job.published(),
                          "resumed_after_s": round(waited, 1), "seconds": round(time.monotonic() - began, 1)}), flush=True)
    assert job.begin() > 0, "nothing was ever published"
    job.end()


def test_a_job_on_two_hosts_resumes_and_loses_at_most_the_checkpoint_in_flight(job_on_nas):
    train(job_on_nas, ROUNDS)


def test_a_job_on_two_hosts_resumes_on_a_volume_exported_by_one_of_them(job_on_volume_of_holder):
    train(job_on_volume_of_holder, max(ROUNDS // 10, 3))


def test_the_step_before_is_not_lost_if_a_host_was_killed_while_it_wrote_the_marker(job_on_nas):
    job, machines = job_on_nas, [node.machine for node in job_on_nas.nodes]
    job.begin()
    job.wait_saved(1)
    for machine in machines:
        machine.sh("systemctl stop spark-staged")
    job.wait_saved(job.saved + 2)
    job.end()
    whole = [{int(name) for name in machine.sh(f"ls -d {FOLDER}/step-*/DONE | sed 's,.*step-,,; s,/DONE,,'").split()} for machine in machines]
    newest = max(whole[0] & whole[1])
    for machine in machines:
        machine.sh(f"rm -rf {FOLDER}/step-{newest + 1}")  # the one in flight
    assert newest - 1 > job.published()
    machines[1].sh(f": >{FOLDER}/step-{newest}/DONE")
    for machine in machines:
        machine.sh("systemctl start spark-staged")
    job.saved = newest - 1
    assert job.begin() == newest - 1
    job.end()


def test_the_check_of_the_job_finds_a_broken_and_a_lost_checkpoint(job_on_nas):
    job = job_on_nas
    job.begin()
    job.wait_saved(2)
    job.end()
    assert job.begin() >= 2
    job.end()
    job.server.sh(f"cd {job.there} && rm -rf step-* .step-* latest")
    for node in job.nodes:
        node.machine.sh(f"rm -rf {FOLDER}/*")
    with pytest.raises(AssertionError, match="both hosts had saved"):
        job.begin()
    job.end()
    job.saved = 0
    job.begin(spoils=True)
    job.wait_saved(1)
    job.end()
    with pytest.raises(AssertionError, match="is not what was saved as that step"):
        job.begin()
    job.end()
