"""Checkpoints in the layouts of frameworks, saved in parts on request, with Debian's PyTorch.

    layouts.py FOLDER < ORDERS

ORDERS are lines "begin N", "finish N" and "check N PATH...". `begin` writes a step of each layout without the part that
makes it complete, `finish` writes that part; `check` loads the given copies (in the order pt, hf, deepspeed) and compares
them. Answers each order with a line.

pt: one file by torch.save, written under another name and renamed, like PyTorch Lightning.
hf: Trainer's checkpoint-N (transformers, Trainer._save_checkpoint): weights in safetensors with their index, then
    optimizer, scheduler and random state, trainer_state.json last. safetensors: 8 bytes of length, a JSON header, the
    tensors.
deepspeed: global_stepN with the optimizer states of the model and of each process, then the file `latest` (deepspeed,
    DeepSpeedEngine.save_checkpoint), and next to them zero_to_fp32.py.
"""
import json
import os
import struct
import sys
from pathlib import Path

import torch

ROWS = 4096


def tensor(step, part):
    return torch.arange(ROWS * 16, dtype=torch.float32).reshape(ROWS, 16) + 1000 * step + part


def save_safetensors(path, tensors):
    header, data = {}, b""
    for name, value in tensors.items():
        raw = value.numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def load_safetensors(path):
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + length])
    return {name: torch.frombuffer(bytearray(raw[8 + length:][slice(*entry["data_offsets"])]), dtype=torch.float32).reshape(entry["shape"])
            for name, entry in header.items()}


class Pt:
    def __init__(self, folder):
        self.folder = folder / "pt"

    def begin(self, step):
        torch.save({"step": step, "model": tensor(step, 0)}, self.folder / f"step-{step}.pt.tmp")

    def finish(self, step):
        (self.folder / f"step-{step}.pt.tmp").rename(self.folder / f"step-{step}.pt")

    @staticmethod
    def check(step, path):
        loaded = torch.load(path)
        return loaded["step"] == step and torch.equal(loaded["model"], tensor(step, 0))


class HuggingFace:
    PARTS = [f"model-0000{part}-of-00002.safetensors" for part in (1, 2)]

    def __init__(self, folder):
        self.folder = folder / "hf"

    def begin(self, step):
        path = self.folder / f"checkpoint-{step}"
        path.mkdir()
        (path / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"]}))
        save_safetensors(path / self.PARTS[0], {"layer.0": tensor(step, 0)})

    def finish(self, step):
        path = self.folder / f"checkpoint-{step}"
        save_safetensors(path / self.PARTS[1], {"layer.1": tensor(step, 1)})
        index = {"metadata": {"total_size": 2 * 4 * ROWS * 16},
                 "weight_map": {f"layer.{part}": name for part, name in enumerate(self.PARTS)}}
        (path / "model.safetensors.index.json").write_text(json.dumps(index))
        torch.save({"state": tensor(step, 2)}, path / "optimizer.pt")
        torch.save({"last_epoch": step}, path / "scheduler.pt")
        torch.save({"cpu": torch.random.get_rng_state()}, path / "rng_state.pth")
        (path / "trainer_state.json").write_text(json.dumps({"global_step": step}))

    def check(self, step, path):
        return (json.loads((path / "trainer_state.json").read_text())["global_step"] == step and
                torch.equal(torch.load(path / "optimizer.pt")["state"], tensor(step, 2)) and
                all(torch.equal(load_safetensors(path / name)[f"layer.{part}"], tensor(step, part))
                    for part, name in enumerate(self.PARTS)))


class DeepSpeed:
    def __init__(self, folder):
        self.folder = folder / "deepspeed"

    def begin(self, step):
        path = self.folder / f"global_step{step}"
        path.mkdir()
        torch.save({"module": tensor(step, 0), "global_steps": step}, path / "mp_rank_00_model_states.pt")
        for rank in (0, 1):
            torch.save({"optimizer_state_dict": tensor(step, 1 + rank)}, path / f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")

    def finish(self, step):
        (self.folder / "latest").write_text(f"global_step{step}")
        (self.folder / "zero_to_fp32.py").write_text("# joins the states of all processes\n")

    @staticmethod
    def check(step, path):
        named = path.parent / "latest"  # the engine reads this file when no tag is given
        model = torch.load(path.parent / named.read_text().strip() / "mp_rank_00_model_states.pt")
        return (model["global_steps"] == step and torch.equal(model["module"], tensor(step, 0)) and
                all(torch.equal(torch.load(path / f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")["optimizer_state_dict"],
                                tensor(step, 1 + rank)) for rank in (0, 1)))


def main():
    layouts = [kind(Path(sys.argv[1])) for kind in (Pt, HuggingFace, DeepSpeed)]
    for layout in layouts:
        os.makedirs(layout.folder, exist_ok=True)
    for line in sys.stdin:
        order, step, *paths = line.split()
        if order == "check":
            wrong = [str(path) for layout, path in zip(layouts, map(Path, paths), strict=True) if not layout.check(int(step), path)]
            print("wrong: " + " ".join(wrong) if wrong else "right", flush=True)
            continue
        for layout in layouts:
            getattr(layout, order)(int(step))
        print(order, step, flush=True)


if __name__ == "__main__":
    main()
