"""The four figures: each is measured on both sides, in turns, and every byte that was read has been compared."""
import json
import os
import random
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from place import ROOT, forget_pages

READER = [sys.executable, Path(__file__).with_name("reader.py")]
TRAINER = [sys.executable, Path(__file__).with_name("training.py")]
EPOCHS = 3        # of a training
CLIENT = ROOT / "build/release/cli/spark-stage"
READERS = 4       # of the copy in progress, at random
SAMPLERS = 8      # of a batch
WORKERS = 4       # of an epoch
DEADLINE_S = 900


class Wrong(Exception):
    """A reader got other bytes, or an error."""


class Reader:
    def __init__(self, place, kind, folder, within=(), **options):
        command = [*within, *READER, place.content.shape, kind, folder, *(f"{key}={json.dumps(value)}" for key, value in options.items())]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def end(self, said=None):
        out, _ = self.process.communicate(said, timeout=DEADLINE_S)
        return checked(json.loads(out))


def checked(found):
    if found.get("wrong") or found.get("failed"):
        raise Wrong(json.dumps(found))
    return found


@contextmanager
def live(place, name):
    """The folder of a view that lives as long as the block."""
    holder = subprocess.Popen(["sleep", "1000000"])
    try:
        asked = time.monotonic()
        yield place.stage(name, now=True, hold=holder.pid) | {"asked_at": asked}
    finally:
        holder.kill()
        holder.wait()


def end_of_walk(place):
    """When the list of what is staged was written, which is the first thing after the walk; by the clock of time.monotonic()."""
    lists = [path.stat().st_mtime for path in (place.folder / "state/live").iterdir() if path.suffix != ".at"]
    return min(lists) + time.monotonic() - time.time()


def middle(rounds, key):
    return statistics.median(one[key] for one in rounds)


def first_batch(place, rounds):
    """Seconds from the end of the walk to the first sample, and to a batch; and of the same after all has been staged."""
    found, later = [], []
    for number in range(rounds):
        place.empty()
        job = Reader(place, "first", "-", seed=number, readers=SAMPLERS)
        job.process.stdout.readline()
        with live(place, "big") as view:
            walked = end_of_walk(place)
            end = job.end(view["path"] + "\n")
        found.append({"sample": end["first_at"] - walked, "batch": end["batch_at"] - walked, "request": end["first_at"] - view["asked_at"]})
    for number in range(max(1, rounds // 3)):
        place.empty()
        job = Reader(place, "first", "-", seed=number, readers=SAMPLERS)
        job.process.stdout.readline()
        began = time.monotonic()
        end = job.end(place.stage("big")["path"] + "\n")
        later.append({"sample": end["first_at"] - began, "batch": end["batch_at"] - began})
    return {"live": found, "staged_first": later}


def job_of(place, verb, job, to):
    """Seconds of `spark-stage VERB big -- JOB`, and what the job has written to the file `to`."""
    began = time.monotonic()
    command = [CLIENT, *verb, "big", "--", *map(str, job)]
    ran = subprocess.run(command, env=os.environ | {"SPARK_STAGE_SOCKET": str(place.daemon.socket)}, timeout=DEADLINE_S, check=False,
                         capture_output=True, text=True)
    if ran.returncode:
        raise Wrong(ran.stderr)
    return time.monotonic() - began, checked(json.loads(Path(to).read_text()))


def epoch(place, order):
    """Stage, then train; and both at once. The job computes as long as the staging takes."""
    to = place.folder / "epoch.json"

    def job(compute):
        return [*READER, place.content.shape, "epoch", "$SPARK_STAGE_BIG", "seed=1", f"order={json.dumps(order)}", f"workers={WORKERS}",
                f"compute={compute}", f"to={json.dumps(str(to))}"]

    place.empty()
    began = time.monotonic()
    place.stage("big")
    stage = time.monotonic() - began
    forget_pages()
    train, alone = job_of(place, ["run"], job(stage), to)
    place.empty()
    now, with_view = job_of(place, ["run", "--now"], job(stage), to)
    return {"order": order, "stage": stage, "compute": stage, "train": train, "now": now, "first_batch": with_view["first_batch"],
            "first_batch_alone": alone["first_batch"]}


def training(place):
    """A real job on a GPU, staged first and with --now: seconds to its first step and to its end, and its epochs."""
    to, found = place.folder / "training.json", {}
    for kind, verb in (("staged_first", ["run"]), ("now", ["run", "--now"])):
        place.empty()
        began = time.monotonic()
        seconds, job = job_of(place, verb, [*TRAINER, place.content.shape, "$SPARK_STAGE_BIG", to, EPOCHS], to)
        found[kind] = job | {"seconds": seconds, "first_step": job["first_step_at"] - began}
    return found


def background(place, rounds):
    """Seconds of the staging alone, with a view that nobody reads, and with readers at random."""
    def of(readers, number):
        place.empty()
        began = time.monotonic()
        if readers is None:
            place.stage("big")
            return {"seconds": time.monotonic() - began}
        with live(place, "big") as view:
            running = [Reader(place, "random", view["path"], seed=number * 10 + i) for i in range(readers)]
            place.stage("big")
            seconds = time.monotonic() - began
            ends = [one.end() for one in running]
        return {"seconds": seconds, "reads": sum(one["reads"] for one in ends), "longest": max((one["longest"] for one in ends), default=0)}

    found = {"alone": [], "unread": [], "read": []}
    for number in range(rounds):
        kinds = list(found)
        random.Random(number).shuffle(kinds)
        for kind in kinds:
            found[kind].append(of({"alone": None, "unread": 0, "read": READERS}[kind], number))
    return found


@contextmanager
def container():
    """A mount namespace of its own, with the mounts of now."""
    holder = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sleep", "1000000"])
    time.sleep(0.2)
    try:
        yield ["nsenter", f"--mount=/proc/{holder.pid}/ns/mnt", "--"]
    finally:
        holder.kill()
        holder.wait()


def published(place, rounds):
    """Seconds of reads of the plain copy, by the view's path, and by the view's path in a container that was started before."""
    found = {}
    place.empty()
    for name, kinds in (("big", ("sequential", "scattered")), ("small", ("small",))):
        with live(place, name) as view, container() as within:
            copy = place.stage(name)["path"]
            place.daemon.wait_until(lambda view=view, copy=copy: os.path.samefile(view["path"], copy), "showed the copy")
            ways = {"plain": (copy, ()), "view": (view["path"], ()), "container": (view["path"], within)}
            for kind in kinds:
                found[kind] = {way: [] for way in ways}
                options = {} if kind == "sequential" else {"seed": 1}
                for number in range(rounds):
                    order = list(ways)
                    random.Random(number).shuffle(order)
                    for way in order:
                        forget_pages()
                        folder, inside = ways[way]
                        found[kind][way].append(Reader(place, kind, folder, inside, **options).end()["seconds"])
    return found
