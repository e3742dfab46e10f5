// The folder of a kept run: its record, each fio job file, and fio's output.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/record/record.hpp"

namespace spark::bench {

inline constexpr const char* kRecordFile = "record.json";

// /var/lib/spark-stage/bench for root, else $XDG_STATE_HOME/spark-stage/bench (~/.local/state).
std::filesystem::path default_runs_folder(bool is_root);

// "20261120T162126Z-1f3a": sorts by time; hosts that start together get different ones.
std::string run_id_of(WallTime started, std::uint64_t seed);

class RunFolder {
 public:
  // Creates RUNS/RUN_ID, and RUNS if it is missing.
  static Result<RunFolder> make(const std::filesystem::path& runs, const std::string& run_id);

  // Replaces the record by this one.
  Result<> write(const Record& record) const;

  // Keeps a cell's job and fio's output as "0007-shards-nfs-r2.fio" and ".json"; returns the name of the
  // latter. Empty if it can't be written: the run continues without it.
  std::string keep(const Cell& cell, const std::vector<std::string>& command,
                   const std::string& output) const;

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

// Replaces the record of a kept run with the merged one of several hosts, and stores each host's own record
// next to it as "host-NAME.json".
Result<> keep_merged(const std::filesystem::path& runs, const Record& merged,
                     const std::vector<Record>& hosts);

// Finds a run's record by its id, the beginning or end of the id, its folder, or its file. NotFound lists the
// available runs.
Result<Record> load_record(const std::filesystem::path& runs, const std::string& run);

// A summary of every run in the folder, oldest first. An unreadable record has only its name.
struct RunEntry {
  std::string id;
  std::string problem;  // why its record can't be read; empty if it can
  Record record;
};
std::vector<RunEntry> list_runs(const std::filesystem::path& runs);

}  // namespace spark::bench
