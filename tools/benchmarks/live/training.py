"""A PyTorch job that trains ResNet-50 with the samples of the shards as pictures, and compares every byte: training.py SHAPE FOLDER TO
EPOCHS. TO gets a JSON object: when the first step ended (time.monotonic()), and each epoch's seconds and pictures."""
import json
import os
import sys
import time
from pathlib import Path

import torch
import torchvision
from content import SAMPLE, Content

BATCH, WORKERS, CLASSES, SIDE = 256, 12, 1000, 208  # 3 x 208 x 208 bytes of a sample are its picture


class Samples(torch.utils.data.Dataset):
    """Opens the shards anew in each worker, and in each epoch: once the copy is published, an open reaches its files."""

    def __init__(self, content, folder):
        self.content, self.folder, self.samples, self.files = content, folder, content.samples(), {}

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, at):
        number, offset = self.samples[at]
        if number not in self.files:
            self.files[number] = os.open(os.path.join(self.folder, self.content.path("big", number)), os.O_RDONLY)
        got = os.pread(self.files[number], SAMPLE, offset)
        picture = torch.frombuffer(bytearray(got[:3 * SIDE * SIDE]), dtype=torch.uint8).view(3, SIDE, SIDE)
        return picture, at % CLASSES, self.content.is_right("big", number, offset, got, SAMPLE)


class Trainer:
    def __init__(self):
        torch.backends.cudnn.benchmark = True
        self.model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.loss = torch.nn.CrossEntropyLoss()

    def step(self, pictures, classes):
        pictures = pictures.cuda(non_blocking=True).to(memory_format=torch.channels_last).float().div_(255)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = self.loss(self.model(pictures), classes.cuda(non_blocking=True))
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss


def train(content, folder, epochs):
    trainer, found = Trainer(), {"epochs": [], "wrong": 0, "gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    order = torch.Generator().manual_seed(1)
    for _ in range(epochs):
        began, pictures_seen = time.monotonic(), 0
        loader = torch.utils.data.DataLoader(Samples(content, folder), BATCH, shuffle=True, generator=order, num_workers=WORKERS,
                                             pin_memory=True, drop_last=True)
        for pictures, classes, right in loader:
            loss = trainer.step(pictures, classes)
            if "first_step_at" not in found:
                torch.cuda.synchronize()
                found["first_step_at"] = time.monotonic()
            pictures_seen += len(classes)
            found["wrong"] += int((~right).sum())
        found["loss"] = float(loss.detach())  # waits for the accelerator
        found["epochs"].append({"seconds": time.monotonic() - began, "pictures": pictures_seen})
    return found


if __name__ == "__main__":
    shape, place, to, count = sys.argv[1:]
    Path(to).write_text(json.dumps(train(Content(shape), os.environ[place[1:]] if place.startswith("$") else place, int(count))))
