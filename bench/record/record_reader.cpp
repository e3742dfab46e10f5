// A record is read back field by field: what is missing or of another type keeps its default, so that a
// record of an interrupted or an older run of the same schema is shown as far as it goes.
#include <charconv>
#include <cmath>

#include "base/text.hpp"
#include "bench/record/record.hpp"

namespace spark::bench {
namespace {

std::string text_of(const json::object& object, std::string_view key) {
  return printable(get_string(object, key).value_or(""));
}

std::uint64_t count_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr) return 0;
  if (value->is_uint64()) return value->get_uint64();
  return value->is_int64() && value->get_int64() > 0 ? static_cast<std::uint64_t>(value->get_int64()) : 0;
}

unsigned small_count_of(const json::object& object, std::string_view key) {
  return static_cast<unsigned>(std::min<std::uint64_t>(count_of(object, key), 1'000'000'000));
}

// Not negative, and small enough that sums and products of some stay finite.
double number_of(const json::object& object, std::string_view key) {
  const double number = get_double(object, key).value_or(0);
  return std::isfinite(number) && number > 0 ? std::min(number, 1e18) : 0;
}

std::optional<Bytes> optional_bytes(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return count_of(object, key);
}

const json::object& object_in(const json::object& object, std::string_view key) {
  static const json::object empty;
  const json::object* found = get_object(object, key);
  return found == nullptr ? empty : *found;
}

std::vector<std::string> texts_of(const json::object& object, std::string_view key) {
  std::vector<std::string> texts;
  const json::array* array = get_array(object, key);
  if (array == nullptr) return texts;
  for (const json::value& value : *array) {
    if (value.is_string()) texts.push_back(printable(std::string_view(value.get_string())));
  }
  return texts;
}

// Calls `take` with each object of the array.
template <class Take>
void each_object(const json::object& object, std::string_view key, const Take& take) {
  const json::array* array = get_array(object, key);
  if (array == nullptr) return;
  for (const json::value& value : *array) {
    if (value.is_object()) take(value.get_object());
  }
}

template <class Number>
Number parsed(std::string_view text) {
  Number number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Bins bins_of(const json::object& object) {
  Bins bins;
  for (const auto& [key, value] : object) {
    const auto count = count_of(object, {key.data(), key.size()});
    if (count > 0)
      bins[parsed<std::uint64_t>({key.data(), key.size()})] = std::min<std::uint64_t>(count, 1ULL << 50);
  }
  return bins;
}

StorageFacts storage_of(const json::object& object) {
  StorageFacts storage;
  storage.kind = path_kind_from(text_of(object, "kind"));
  storage.address = text_of(object, "address");
  storage.controllers = texts_of(object, "controllers");
  for (const auto& [key, value] : object_in(object, "settings")) {
    if (value.is_string()) {
      storage.settings.emplace_back(printable({key.data(), key.size()}),
                                    printable(std::string_view(value.get_string())));
    }
  }
  const json::object& nic = object_in(object, "nic");
  storage.nic = {text_of(nic, "name"), number_of(nic, "bytes_per_second"), small_count_of(nic, "mtu")};
  return storage;
}

PathRecord path_of(const json::object& object) {
  PathRecord path;
  path.name = text_of(object, "name");
  path.path = text_of(object, "path");
  path.folder = text_of(object, "folder");
  const json::object& mount = object_in(object, "mount");
  path.size = count_of(mount, "size_bytes");
  path.free = count_of(mount, "free_bytes");
  if (mount.contains("type")) {
    path.mount = MountFacts{text_of(mount, "mount_point"), text_of(mount, "source"), text_of(mount, "type"),
                            text_of(mount, "options")};
  }
  path.storage = storage_of(object_in(object, "storage"));
  path.read_only_reason = text_of(object, "read_only_reason");
  path.unusable = text_of(object, "unusable");
  each_object(object, "files", [&](const json::object& file) {
    path.files.push_back({text_of(file, "path"), count_of(file, "bytes")});
  });
  path.small_files = count_of(object, "small_files");
  path.small_bytes = count_of(object, "small_files_bytes");
  path.notes = texts_of(object, "notes");
  return path;
}

ScenarioRecord scenario_of(const json::object& object) {
  ScenarioRecord scenario;
  scenario.id = text_of(object, "id");
  scenario.title = text_of(object, "title");
  scenario.shape = text_of(object, "shape");
  const std::string cache = text_of(object, "cache");
  scenario.cache = cache == "cold" ? Cache::Cold : cache == "warm" ? Cache::Warm : Cache::Direct;
  scenario.writes = get_bool(object, "writes").value_or(false);
  scenario.counts_ios = text_of(object, "headline") == "ios_per_second";
  return scenario;
}

Cell cell_of(const json::object& object) {
  Cell cell;
  cell.path = text_of(object, "path");
  cell.scenario = text_of(object, "scenario");
  cell.round = small_count_of(object, "round");
  cell.order = small_count_of(object, "order");
  cell.at_s = number_of(object, "at_s");
  const std::string status = text_of(object, "status");
  cell.status = status == "valid"     ? CellStatus::Valid
                : status == "invalid" ? CellStatus::Invalid
                                      : CellStatus::NotMeasured;
  cell.reasons = texts_of(object, "reasons");
  cell.cautions = texts_of(object, "cautions");
  cell.command = text_of(object, "command");
  cell.raw_file = text_of(object, "raw_file");
  cell.bytes = count_of(object, "bytes");
  cell.ios = count_of(object, "ios");
  cell.seconds = number_of(object, "seconds");
  if (cell.seconds < 1e-6) cell.seconds = 0;  // no rate can be made of it
  cell.cpu_seconds = number_of(object, "fio_cpu_seconds");
  cell.bins = bins_of(object_in(object, "latency_ns_bins"));
  const json::object& origin = object_in(object, "origin");
  cell.origin = {optional_bytes(origin, "bytes"), text_of(origin, "counter"),
                 optional_bytes(origin, "nic_bytes")};
  if (const json::object* cpu = get_object(object, "host_cpu")) {
    cell.cpu =
        CpuUse{number_of(*cpu, "seconds"), number_of(*cpu, "busy_s"), number_of(*cpu, "kernel_threads_s"),
               number_of(*cpu, "idle_share"), number_of(*cpu, "busiest_core")};
  }
  return cell;
}

AskedFor asked_of(const json::object& object) {
  AskedFor asked;
  asked.dataset = text_of(object, "dataset");
  asked.dataset_bytes = count_of(object, "dataset_bytes");
  asked.dataset_files = count_of(object, "dataset_files");
  asked.epochs = small_count_of(object, "epochs");
  asked.demand = {number_of(object, "demand_bytes_per_second"), text_of(object, "demand_words")};
  return asked;
}

void read_head(const json::object& object, Record& record) {
  record.run_id = text_of(object, "run_id");
  record.tool_version = text_of(object, "tool_version");
  record.started = parse_rfc3339(text_of(object, "started")).value_or(WallTime{});
  record.seconds = number_of(object, "seconds");
  record.seed = parsed<std::uint64_t>(text_of(object, "seed"));
  record.interrupted = get_bool(object, "interrupted").value_or(false);
  record.size = count_of(object, "size_bytes");
  record.runtime = std::chrono::seconds(small_count_of(object, "runtime_s"));
  record.rounds = small_count_of(object, "rounds");
  record.max_rounds = small_count_of(object, "max_rounds");
  record.rate_limit = count_of(object, "rate_limit");
  record.asked = asked_of(object_in(object, "asked"));
  const json::object& host = object_in(object, "host");
  record.host = {text_of(host, "name"), text_of(host, "kernel"), text_of(host, "machine"),
                 small_count_of(host, "cpus"), count_of(host, "memory_bytes")};
  const json::object& idle = object_in(object, "idle_cpu");
  record.idle_cpu = {number_of(idle, "cpu_s_per_s"), number_of(idle, "error")};
  const json::object& fio = object_in(object, "fio");
  record.fio = {text_of(fio, "version"), text_of(fio, "engine"), text_of(fio, "engine_note")};
  record.warnings = texts_of(object, "warnings");
}

}  // namespace

Result<Record> record_from_json(const json::object& object) {
  const std::string schema = printable(get_string(object, "schema").value_or(""));
  if (schema != kRecordSchema) {
    if (schema.starts_with("spark-stage-bench/")) {
      return fail(Errc::Invalid,
                  "the record has the schema " + schema + ", this program knows " + kRecordSchema,
                  "read it with the spark-stage that wrote it, or measure again");
    }
    return fail(Errc::Invalid, "it is no record of spark-stage bench",
                "give the folder or record.json of a run");
  }
  Record record;
  read_head(object, record);
  each_object(object, "paths", [&](const json::object& path) { record.paths.push_back(path_of(path)); });
  each_object(object, "scenarios",
              [&](const json::object& one) { record.scenarios.push_back(scenario_of(one)); });
  each_object(object, "cells", [&](const json::object& cell) { record.cells.push_back(cell_of(cell)); });
  return record;
}

}  // namespace spark::bench
