"""Programs that read a set and compare every byte: reader.py SHAPE KIND FOLDER [KEY=VALUE…]. Each prints a JSON object.

first: one sample, then a batch; FOLDER is read from the standard input, so that the program has started before. epoch: a job that
computes. random: samples until the standard input ends. sequential, scattered, small: the seconds that their reads took.
"""
import itertools
import json
import os
import queue
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from content import MIB, SAMPLE, Content

BATCH = 32


class Files:
    """The shards of a folder, opened by need and then kept open."""

    def __init__(self, content, folder):
        self.content, self.folder = content, folder
        self.open, self.lock = {}, threading.Lock()

    def sample(self, number, offset):
        """(bytes, whether they are right)"""
        with self.lock:
            file = self.open.get(number)
        if file is None:
            file = os.open(os.path.join(self.folder, self.content.path("big", number)), os.O_RDONLY)
            with self.lock:
                self.open[number] = file
        return os.pread(file, SAMPLE, offset)

    def is_right(self, number, offset, got):
        return self.content.is_right("big", number, offset, got, SAMPLE)


def first(content, folder, seed, readers):
    chosen = random.Random(seed).sample(content.samples(), BATCH + 1)
    print(json.dumps("ready"), flush=True)
    files = Files(content, sys.stdin.readline().strip())
    got = [files.sample(*chosen[0])]
    first_at = time.monotonic()
    with ThreadPoolExecutor(readers) as at_once:
        got += at_once.map(lambda one: files.sample(*one), chosen[1:])
    batch_at = time.monotonic()
    return {"first_at": first_at, "batch_at": batch_at, "wrong": sum(not files.is_right(*one, have) for one, have in zip(chosen, got))}


def parts_of(content, order, where):
    """What a worker reads in one go: a shard from its begin to its end, or a batch of samples."""
    samples = content.samples()
    if order == "random":
        where.shuffle(samples)
        return [samples[at:at + BATCH] for at in range(0, len(samples), BATCH)]
    by_file = [list(part) for _, part in itertools.groupby(samples, key=lambda one: one[0])]
    where.shuffle(by_file)
    return by_file


def epoch(content, folder, seed, order, workers, compute):
    """`compute`: seconds of the whole epoch. The accelerator works on one batch while the workers read the next ones."""
    files, todo, done = Files(content, folder), queue.SimpleQueue(), queue.Queue(BATCH * 2 * workers)
    for part in parts_of(content, order, random.Random(seed)):
        todo.put(part)
    began = time.monotonic()

    def work():
        while True:
            try:
                part = todo.get_nowait()
            except queue.Empty:
                return
            for one in part:
                try:
                    done.put(files.is_right(*one, files.sample(*one)))
                except OSError as failure:
                    done.put(failure)

    for _ in range(workers):
        threading.Thread(target=work, daemon=True).start()
    count, wrong, failed, first_batch = len(content.samples()), 0, 0, None
    for at in range(count):
        had = done.get()
        failed += isinstance(had, OSError)
        wrong += had is False
        if at % BATCH == BATCH - 1:
            first_batch = first_batch or time.monotonic() - began
            time.sleep(compute * BATCH / count)
    return {"seconds": time.monotonic() - began, "first_batch": first_batch, "samples": count, "wrong": wrong, "failed": failed}


def reads_at_random(content, folder, seed):
    files, samples, where = Files(content, folder), content.samples(), random.Random(seed)
    reads = wrong = failed = 0
    longest, is_over = 0.0, threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), is_over.set()), daemon=True).start()
    while not is_over.is_set():
        one, began = where.choice(samples), time.monotonic()
        try:
            wrong += not files.is_right(*one, files.sample(*one))
        except OSError:
            failed += 1
        longest = max(longest, time.monotonic() - began)
        reads += 1
    return {"reads": reads, "wrong": wrong, "failed": failed, "longest": longest}


def timed(content, folder, name, wanted, size):
    """Reads `wanted`, (file, offset) each, and sums up the time of the reads; a file is opened when it is first read."""
    spent, wrong, files = 0.0, 0, {}
    for number, offset in wanted:
        count = min(size, content.sets[name]["bytes"] - offset)
        path = os.path.join(folder, content.path(name, number))
        began = time.perf_counter()
        if name == "small":
            with open(path, "rb", buffering=0) as file:
                got = file.read()
        else:
            if number not in files:
                files[number] = os.open(path, os.O_RDONLY)
            got = os.pread(files[number], count, offset)
        spent += time.perf_counter() - began
        wrong += not content.is_right(name, number, offset, got, count)
    return {"seconds": spent, "reads": len(wanted), "wrong": wrong}


def sequential(content, folder):
    one = content.sets["big"]
    return timed(content, folder, "big", [(number, at) for number in range(one["files"]) for at in range(0, one["bytes"], MIB)], MIB)


def scattered(content, folder, seed):
    samples = content.samples()
    return timed(content, folder, "big", random.Random(seed).sample(samples, min(4096, len(samples) // 2)), SAMPLE)


def small(content, folder, seed):
    files = list(range(content.sets["small"]["files"]))
    random.Random(seed).shuffle(files)
    return timed(content, folder, "small", [(number, 0) for number in files], MIB)


KINDS = {"first": first, "epoch": epoch, "random": reads_at_random, "sequential": sequential, "scattered": scattered, "small": small}


def main():
    shape, kind, folder, *more = sys.argv[1:]
    options = {key: json.loads(value) for key, value in (one.split("=", 1) for one in more)}
    if folder.startswith("$"):
        folder = os.environ[folder[1:]]
    if to := options.pop("to", None):
        Path(to).write_text(json.dumps(KINDS[kind](Content(shape), folder, **options)))
    else:
        print(json.dumps(KINDS[kind](Content(shape), folder, **options)))


if __name__ == "__main__":
    main()
