#include "bench/report/run_folder.hpp"

#include <algorithm>
#include <cstdio>

#include "base/file.hpp"
#include "base/text.hpp"
#include "bench/fio/fio_job.hpp"
#include "bench/report/report.hpp"

namespace spark::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestRecord = 256 << 20;

Result<Record> read_record(const fs::path& file) {
  const std::string doing = "reading the record " + printable(file.string());
  auto text = read_file(file, kLargestRecord);
  if (!text) return fail_with(text.error(), doing);
  auto object = parse_json_object(*text);
  if (!object) return fail_with(object.error(), doing);
  auto record = record_from_json(*object);
  if (!record) return fail_with(record.error(), doing);
  return record;
}

std::vector<std::string> ids_in(const fs::path& runs) {
  std::vector<std::string> ids;
  for (const fs::path& entry : list_folder(runs)) {
    std::error_code ignored;
    if (fs::exists(entry / kRecordFile, ignored)) ids.push_back(entry.filename().string());
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace

fs::path default_runs_folder(bool is_root) {
  if (is_root) return "/var/lib/spark-stage/bench";
  const std::string state = environment("XDG_STATE_HOME");
  if (state.starts_with('/')) return fs::path(state) / "spark-stage/bench";
  const std::string home = environment("HOME");
  return fs::path(home.empty() ? "." : home) / ".local/state/spark-stage/bench";
}

std::string run_id_of(WallTime started, std::uint64_t seed) {
  std::string id = rfc3339(started);
  std::erase_if(id, [](char c) { return c == '-' || c == ':'; });
  char suffix[8];
  std::snprintf(suffix, sizeof suffix, "-%04x", static_cast<unsigned>(seed & 0xFFFF));
  return id + suffix;
}

Result<RunFolder> RunFolder::make(const fs::path& runs, const std::string& run_id) {
  const fs::path folder = runs / run_id;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return fail_errno(error.value(), "making the folder " + printable(folder.string()) + " for the record",
                      "choose another place with --runs FOLDER");
  }
  return RunFolder(folder);
}

Result<> RunFolder::write(const Record& record) const {
  return write_file_atomically(path_ / kRecordFile, json_text(record));
}

std::string RunFolder::keep(const Cell& cell, const std::vector<std::string>& command,
                            const std::string& output) const {
  char number[16];
  std::snprintf(number, sizeof number, "%04u", cell.order);
  const std::string name =
      std::string(number) + "-" + cell.scenario + "-" + cell.path + "-r" + std::to_string(cell.round);
  if (!write_file_atomically(path_ / (name + ".fio"), job_file(command))) return {};
  if (!write_file_atomically(path_ / (name + ".json"), output)) return {};
  return name + ".json";
}

Result<> keep_merged(const fs::path& runs, const Record& merged, const std::vector<Record>& hosts) {
  const fs::path folder = runs / merged.run_id;
  for (const Record& record : hosts) {
    std::string name = record.host.name;  // reported by the other host, so not trusted
    std::replace(name.begin(), name.end(), '/', '_');
    auto written = write_file_atomically(folder / ("host-" + name + ".json"), json_text(record));
    if (!written) return written;
  }
  return write_file_atomically(folder / kRecordFile, json_text(merged));
}

Result<Record> load_record(const fs::path& runs, const std::string& run) {
  std::error_code ignored;
  if (fs::is_regular_file(run, ignored)) return read_record(run);
  if (fs::is_regular_file(fs::path(run) / kRecordFile, ignored))
    return read_record(fs::path(run) / kRecordFile);
  const std::vector<std::string> ids = ids_in(runs);
  if (run == "last" && !ids.empty()) return read_record(runs / ids.back() / kRecordFile);
  std::vector<std::string> matching;
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(matching), [&](const std::string& id) {
    return !run.empty() && (id.starts_with(run) || id.ends_with(run));
  });
  if (matching.size() == 1) return read_record(runs / matching.front() / kRecordFile);
  if (matching.size() > 1) {
    return fail(Errc::Invalid, "'" + printable(run) + "' could be " + join(matching, ", "),
                "write more of the id");
  }
  return fail(Errc::NotFound, "there is no run '" + printable(run) + "' in " + printable(runs.string()),
              "`spark-stage bench list` shows the runs; a folder or a record.json works too");
}

std::vector<RunEntry> list_runs(const fs::path& runs) {
  std::vector<RunEntry> entries;
  for (const std::string& id : ids_in(runs)) {
    RunEntry entry;
    entry.id = id;
    auto record = read_record(runs / id / kRecordFile);
    if (record) {
      entry.record = std::move(*record);
    } else {
      entry.problem = record.error().message();
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace spark::bench
