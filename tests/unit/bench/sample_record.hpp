// A sample record of two paths, for tests of code that evaluates records.
#pragma once

#include "bench/record/record.hpp"

namespace spark::bench {

inline Cell valid_cell(const std::string& path, const std::string& scenario, unsigned round, Bytes bytes,
                       std::uint64_t ios, Bins bins) {
  Cell cell;
  cell.path = path;
  cell.scenario = scenario;
  cell.round = round;
  cell.status = CellStatus::Valid;
  cell.bytes = bytes;
  cell.ios = ios;
  cell.seconds = 2;
  cell.bins = std::move(bins);
  cell.command = "fio '--name=two words'";
  return cell;
}

inline Cell failed_cell(const std::string& path, const std::string& scenario, unsigned round,
                        CellStatus status, const std::string& reason) {
  Cell cell;
  cell.path = path;
  cell.scenario = scenario;
  cell.round = round;
  cell.status = status;
  cell.reasons = {reason};
  return cell;
}

inline Record sample_record() {
  Record record;
  record.run_id = "20261120T162126Z-1f3a";
  record.tool_version = "0.1.0";
  record.started = WallTime(std::chrono::seconds(1'795'191'686));
  record.seconds = 65.5;
  record.seed = 18'446'744'073'709'551'615u;
  record.size = 4 * kGiB;
  record.runtime = std::chrono::seconds(2);
  record.rounds = record.max_rounds = 3;
  record.host = {"spark-1", "6.17.0-1008-nvidia", "aarch64", 20, 128'000'000'000};
  record.fio = {"fio-3.33", "io_uring", ""};
  PathRecord remote;
  remote.name = "nvme-tcp";
  remote.path = remote.folder = "/mnt/rosa";
  remote.mount = MountFacts{"/mnt/rosa", "/dev/nvme1n1", "ext4", "ro,noatime,norecovery"};
  remote.storage.kind = PathKind::RemoteBlock;
  remote.storage.address = "192.168.0.100";
  remote.storage.controllers = {"nvme1"};
  remote.storage.settings = {{"transport", "tcp"}, {"queues", "8"}};
  remote.storage.nic = {"enp1s0f1np1", 25e9, 9000};
  remote.read_only_reason = "mounted read-only";
  remote.files = {{"/mnt/rosa/shard-000.tar", 3'000'000'000}, {"/mnt/rosa/shard-001.tar", 1'000'000'000}};
  PathRecord local;
  local.name = "local";
  local.path = local.folder = "/var/c";
  local.mount = MountFacts{"/", "/dev/nvme0n1p2", "ext4", "rw,relatime"};
  local.storage.kind = PathKind::Local;
  local.size = 4'000'000'000'000;
  local.free = 3'000'000'000'000;
  local.files = {{"/var/c/.spark-stage-bench-abc/data", 4 * kGiB}};
  record.paths = {remote, local};
  record.scenarios = {{"shards", "sequential read", "1 MiB, QD 8 x 4", false, false, Cache::Direct},
                      {"checkpoint", "sequential write", "1 MiB, QD 8 x 4", true, false, Cache::Direct},
                      {"latency", "random read", "4 KiB, QD 1", false, true, Cache::Direct}};
  const Bytes gigabyte = 1'000'000'000;
  for (unsigned round = 1; round <= 3; ++round) {
    record.cells.push_back(valid_cell("local", "shards", round, (12 + round) * gigabyte, 13'000,
                                      {{2'000'000, 12'000}, {9'000'000, 1'000}}));
    record.cells.push_back(failed_cell("nvme-tcp", "checkpoint", round, CellStatus::NotMeasured,
                                       "nothing may be written there: mounted read-only"));
    record.cells.push_back(
        valid_cell("local", "checkpoint", round, 5 * gigabyte, 5'000, {{3'000'000, 5'000}}));
    record.cells.push_back(valid_cell("local", "latency", round, 80'000'000, 20'000, {{92'000, 20'000}}));
    record.cells.push_back(
        failed_cell("nvme-tcp", "latency", round, CellStatus::Invalid, "fio took no latency samples"));
  }
  record.cells.push_back(valid_cell("nvme-tcp", "shards", 1, 5 * gigabyte, 5'000, {{8'000'000, 5'000}}));
  record.cells.push_back(valid_cell("nvme-tcp", "shards", 2, 6 * gigabyte, 6'000, {{7'000'000, 6'000}}));
  record.cells.push_back(
      failed_cell("nvme-tcp", "shards", 3, CellStatus::Invalid, "ran 0.4 s of the 2.0 s asked for"));
  record.warnings = {"something to know"};
  return record;
}

}  // namespace spark::bench
