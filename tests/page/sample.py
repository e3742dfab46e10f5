"""A made-up record of three paths, as spark-stage bench writes it."""
import random

PATHS = {"nvme-tcp": ("remote_block", 2.8e9), "nfs": ("nas", 1.1e9), "local": ("local", 6.5e9)}
SCENARIOS = [
    ("shards", "sequential read", "1 MiB, QD 8 x 4", "direct", False, 1.0),
    ("stream", "streamed read", "128 KiB, QD 1 x 8", "cold", False, 0.8),
    ("samples", "random read", "128 KiB, QD 1 x 8", "cold", False, 0.6),
    ("smallfiles", "small files", "whole, 8 threads", "cold", True, 0.3),
    ("latency", "random read", "4 KiB, QD 1", "direct", True, 0.01),
    ("checkpoint", "sequential write", "1 MiB, QD 8 x 4", "direct", False, 0.7),
    ("stagecopy", "staging copy", "to durable", "direct", False, 0.9),
]
ROUNDS = 5


def cell(path, scenario, round_number, order, dice):
    identity, _, _, _, counts_ios, share = scenario
    kind, rate = PATHS[path]
    seconds = 2.0
    moved = int(rate * share * seconds * dice.uniform(0.97, 1.03))
    if identity == "checkpoint" and kind == "remote_block":
        return {"path": path, "scenario": identity, "round": round_number, "order": order, "status": "not_measured",
                "reasons": ["nothing may be written there: mounted read-only"]}
    if identity == "stagecopy" and path == "local":
        return {"path": path, "scenario": identity, "round": round_number, "order": order, "status": "not_measured",
                "reasons": ["this is the path that the others are staged to"]}
    from_storage = int(moved * 1.002)
    ios = moved // (4096 if identity == "latency" else 131072 if counts_ios else 1 << 20)
    return {"path": path, "scenario": identity, "round": round_number, "order": order, "at_s": order * 2.7,
            "status": "valid", "reasons": [], "cautions": [], "command": "fio --name=stream0", "bytes": moved,
            "ios": ios, "seconds": seconds,
            "origin": {"bytes": from_storage, "counter": "block device nvme1n1", "nic_bytes": None},
            "host_cpu": {"seconds": 2.1, "busy_s": 1.4, "kernel_threads_s": 0.6, "idle_share": 0.9, "busiest_core": 0.4},
            "latency_ns_bins": {"180000": 9000, "420000": 900, "3900000": 100}}


def path_object(name):
    kind, _ = PATHS[name]
    remote = kind != "local"
    return {"name": name, "path": f"/mnt/{name}", "folder": f"/mnt/{name}",
            "mount": {"size_bytes": 4 * 10**12, "free_bytes": 3 * 10**12, "mount_point": f"/mnt/{name}",
                      "source": "192.168.0.100:/data/a-rather-long-export-name/shared" if kind == "nas" else "/dev/nvme1n1",
                      "type": "nfs4" if kind == "nas" else "ext4",
                      "options": "rw,relatime,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,hard,proto=tcp,nconnect=8"},
            "storage": {"kind": kind, "address": "192.168.0.100" if remote else "", "controllers": [],
                        "settings": {"queues": "9"},
                        "nic": {"name": "enp1s0f1np1", "bytes_per_second": 25e9, "mtu": 9000} if remote else {}},
            "read_only_reason": "mounted read-only" if kind == "remote_block" else "", "unusable": "",
            "files": [{"path": "/x", "bytes": 4 << 30}], "notes": []}


def record():
    dice = random.Random(7)
    cells, order = [], 0
    for round_number in range(ROUNDS + 1):
        for scenario in SCENARIOS:
            for path in PATHS:
                order += 1
                cells.append(cell(path, scenario, round_number, order, dice))
    return {"schema": "spark-stage-bench/2", "run_id": "20261120T162126Z-1f3a", "tool_version": "0.1.0",
            "started": "2026-11-20T16:21:26Z", "seconds": 388.0, "interrupted": False, "seed": "7",
            "size_bytes": 4 << 30, "runtime_s": 2, "rounds": ROUNDS, "max_rounds": 9,
            "asked": {"dataset": "imagenet", "dataset_bytes": 1_200_000_000_000, "dataset_files": 1000, "epochs": 30,
                      "demand_bytes_per_second": 3.18e9, "demand_words": "unet3d on one H100"},
            "host": {"name": "spark-1", "kernel": "6.17.0-1008-nvidia", "machine": "aarch64", "cpus": 20,
                     "memory_bytes": 128 * 10**9},
            "idle_cpu": {"cpu_s_per_s": 0.05, "error": 0.001},
            "fio": {"version": "fio-3.33", "engine": "io_uring", "engine_note": ""},
            "paths": [path_object(name) for name in PATHS],
            "scenarios": [{"id": identity, "title": title, "shape": shape, "cache": cache, "writes": identity == "checkpoint",
                           "headline": "ios_per_second" if counts_ios else "bytes_per_second"}
                          for identity, title, shape, cache, counts_ios, _ in SCENARIOS],
            "cells": cells, "warnings": ["nfs was read while something else used the network card"]}
