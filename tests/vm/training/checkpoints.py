"""The state of a small training job, saved by torch.distributed.checkpoint of Debian's PyTorch.

The state after a step can be computed, so a process can check the checkpoint that it has loaded: the step, its part of a
tensor that is divided between the processes, a tensor of all of them, and the attempt. Each start of the job is another
attempt; a checkpoint with parts of two attempts is broken, even if all numbers are right.
"""
import dataclasses
import re

_dataclass = dataclasses.dataclass


def _hashable(cls=None, **keys):
    """Debian 12 has PyTorch 1.13 with Python 3.11, which rejects unhashable defaults such as one in PyTorch's classes."""
    def make(cls):
        made = _dataclass(cls, **keys)
        if made.__hash__ is None:
            made.__hash__ = object.__hash__
        return made
    return make if cls is None else make(cls)


dataclasses.dataclass = _hashable
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.distributed._shard import sharded_tensor  # noqa: E402
from torch.distributed._shard.checkpoint import FileSystemReader, FileSystemWriter, load_state_dict, save_state_dict  # noqa: E402
from torch.distributed._shard.sharding_spec import ChunkShardingSpec  # noqa: E402

RANKS, ROWS, COLUMNS = 2, 256, 512


def number_in(path):
    return int(re.search(r"step-(\d+)", str(path)).group(1))  # a staged copy's path has a suffix


class State:
    """A tensor that is divided between the processes, one saved by rank 0, the step, and each process's attempt."""

    def __init__(self, rank, attempt):
        spec = ChunkShardingSpec(dim=0, placements=[f"rank:{each}/cpu" for each in range(RANKS)])
        self.weights = sharded_tensor.zeros(spec, ROWS, COLUMNS, dtype=torch.float64)
        self.mine = self.weights.local_shards()[0].tensor
        self.first = torch.arange(self.mine.numel(), dtype=torch.float64).reshape(self.mine.shape) + rank * self.mine.numel()
        self.mine.copy_(self.first)
        self.attempts = sharded_tensor.zeros(spec, RANKS, 1, dtype=torch.int64)
        self.my_attempt = self.attempts.local_shards()[0].tensor
        self.my_attempt.fill_(attempt)
        self.attempt = attempt
        self.bias = torch.zeros(64, dtype=torch.float64)
        self.step = 0

    def save(self, path):
        save_state_dict(self._as_dict(), FileSystemWriter(path))

    def load(self, path):
        """Returns the reason if it is not the state that was saved as this step, else None."""
        state = self._as_dict()
        load_state_dict(state, FileSystemReader(path))
        self.step = int(state["step"])
        saved_by = int(self.my_attempt)
        self.my_attempt.fill_(self.attempt)
        first, last = (int(self._over_all(operation, saved_by)) for operation in (dist.ReduceOp.MIN, dist.ReduceOp.MAX))
        if self.step != number_in(path):
            return f"{path} says that it is step {self.step}"
        if not bool((self.mine == self.first + self.step).all()) or not bool((self.bias == self.step).all()):
            return f"{path} is not what was saved as that step"
        if first != last:
            return f"{path} has parts of the attempts {first} and {last}"
        return None

    @staticmethod
    def _over_all(operation, number):
        value = torch.tensor([number])
        dist.all_reduce(value, op=operation)
        return value

    def train(self):
        gradient = torch.full((1,), 1 / RANKS, dtype=torch.float64)
        dist.all_reduce(gradient)
        self.mine.add_(gradient)
        self.bias.add_(gradient)
        self.step += 1

    def _as_dict(self):
        return {"weights": self.weights, "attempts": self.attempts, "bias": self.bias, "step": torch.tensor([self.step])}
