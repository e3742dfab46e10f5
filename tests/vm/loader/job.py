"""A training job as PyTorch users write it: a DataLoader with workers, and a device that is busy for a while with each
batch.

    job.py EPOCHS WORKERS STEP KIND:FOLDER...

small: files picked in random order. shards: tar files read from start to end, like webdataset. STEP: seconds of device time
for each batch. Trains on the folders in order and prints for each the seconds of all epochs, and the bytes, as JSON. For
"now=DATASET" it asks for the folder of a live view, when everything else of the job has begun.
Empties the page cache before each epoch, which has the effect of a dataset larger than memory.
"""
import json
import os
import subprocess
import sys
import tarfile
import time

from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

BATCH = 32


class Small(Dataset):
    def __init__(self, folder):
        self.paths = sorted(os.path.join(inner, name) for inner, _, names in os.walk(folder) for name in names)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with open(self.paths[index], "rb") as file:
            return len(file.read())


class Shards(IterableDataset):
    def __init__(self, folder):
        self.paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))

    def __iter__(self):
        worker = get_worker_info()
        for path in self.paths[worker.id::worker.num_workers]:
            with open(path, "rb", buffering=0) as file, tarfile.open(fileobj=file, mode="r|", bufsize=1 << 17) as shard:
                for member in shard:
                    yield len(shard.extractfile(member).read())


def empty_page_cache():
    with open("/proc/sys/vm/drop_caches", "w") as caches:
        caches.write("1")


def folder_of(where):
    if not where.startswith("now="):
        return where
    asked = ["spark-stage", "stage", where.removeprefix("now="), "--now", "--hold", str(os.getpid())]
    return subprocess.run(asked, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def train(kind, where, epochs, workers, step):
    began = time.monotonic()
    folder = folder_of(where)
    seconds = time.monotonic() - began
    dataset = {"small": Small, "shards": Shards}[kind](folder)
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=kind == "small", num_workers=workers, persistent_workers=True)
    total = 0
    for _ in range(epochs):
        empty_page_cache()
        began = time.monotonic()
        for batch in loader:
            total += int(batch.sum())
            time.sleep(step)
        seconds += time.monotonic() - began
    print(json.dumps({"seconds": seconds, "bytes": total}), flush=True)


if __name__ == "__main__":
    for where in sys.argv[4:]:
        train(*where.split(":", 1), int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
