// The fields of a record's JSON, each listed once, in the order of the file: here, or beside a struct whose
// members have their names in JSON (SPARK_MESSAGE). The writer and the reader visit the same list. A field
// missing there is neither written nor read, so the number of each struct's members is checked.
#pragma once

#include <type_traits>
#include <variant>

#include "base/described.hpp"
#include "bench/record/record.hpp"

namespace spark::bench {

template <class T, class Struct>
concept Of = std::is_same_v<std::remove_const_t<T>, Struct>;

// visit_fields(record, v) calls v(key, field) for each field. v.object(key, more) nests an object.
// v.part(field, proof) merges an optional struct's fields into this object, which has it if it has the key
// `proof`. v.choice(key, field, values) stores an enum as its to_string() and reads an unknown word as the
// first value. v.derived(key, value) is written and never read.
template <class T>
requires Described<std::remove_const_t<T>>
void visit_fields(T& record, const auto& v) {
  boost::mp11::mp_for_each<described::Fields<std::remove_const_t<T>>>(
      [&](auto member) { v(member.name, record.*member.pointer); });
}

void visit_fields(Of<AskedFor> auto& asked, const auto& v) {
  static_assert(kFieldCount<AskedFor> == 13);
  v("dataset", asked.dataset);
  v("dataset_folder", asked.folder);
  v("dataset_bytes", asked.dataset_bytes);
  v("dataset_files", asked.dataset_files);
  v("epochs", asked.epochs);
  v("demand_bytes_per_second", asked.demand.bytes_per_second);
  v("demand_words", asked.demand.words);
  using enum ReadOrder;
  v.choice("read_order", asked.demand.order, {Unknown, Sequential, Random});
  v("mean_file_bytes", asked.demand.mean_file);
  v("demand_cautions", asked.demand.cautions);
  v("nodes", asked.nodes);
  v("cache_room_bytes", asked.cache_room);
  v("is_staged", asked.is_staged);
  v("target_memory_bytes", asked.target_memory);
  v("checkpoint_bytes", asked.checkpoint);
  v("fleet_hosts", asked.fleet_hosts);
  v("loads_model", asked.loads_model);
}

void visit_fields(Of<NicFacts> auto& nic, const auto& v) {
  static_assert(kFieldCount<NicFacts> == 3);
  if (v.kWrites && nic.name.empty()) return;
  v("name", nic.name);
  v("bytes_per_second", nic.bytes_per_second);
  v("mtu", nic.mtu);
}

void visit_fields(Of<StorageFacts> auto& storage, const auto& v) {
  static_assert(kFieldCount<StorageFacts> ==
                6);  // `origin` is valid only on this host during the measurement
  using enum PathKind;
  v.choice("kind", storage.kind, {Unknown, Local, RemoteBlock, Nas, Memory});
  v("address", storage.address);
  v("controllers", storage.controllers);
  v("settings", storage.settings);
  v("nic", storage.nic);
}

void visit_fields(Of<PathRecord> auto& path, const auto& v) {
  static_assert(kFieldCount<PathRecord> == 14);
  v("name", path.name);
  v("path", path.path);
  v("folder", path.folder);
  v.object("mount", [&](const auto& mount) {
    mount("size_bytes", path.size);
    mount("free_bytes", path.free);
    mount.part(path.mount, "type");
  });
  v("storage", path.storage);
  v.derived("read_only", !path.read_only_reason.empty());
  v("read_only_reason", path.read_only_reason);
  v("unusable", path.unusable);
  v("files", path.files);
  v("small_files", path.small_files);
  v("small_files_bytes", path.small_bytes);
  v("at_once", path.at_once);
  v("notes", path.notes);
}

void visit_fields(Of<ScenarioRecord> auto& scenario, const auto& v) {
  static_assert(kFieldCount<ScenarioRecord> == 6);
  v("id", scenario.id);
  v("title", scenario.title);
  v("shape", scenario.shape);
  v.choice("cache", scenario.cache, {Cache::Direct, Cache::Cold, Cache::Warm});
  v("writes", scenario.writes);
  v.either("headline", scenario.counts_ios, "ios_per_second", "bytes_per_second");
}

void visit_fields(Of<Cell> auto& cell, const auto& v) {
  static_assert(kFieldCount<Cell> == 19);
  v("path", cell.path);
  v("scenario", cell.scenario);
  v("round", cell.round);
  v("order", cell.order);
  v("at_s", cell.at_s);
  v.derived("discarded", cell.round == 0);
  v.choice("status", cell.status, {CellStatus::NotMeasured, CellStatus::Valid, CellStatus::Invalid});
  v("reasons", cell.reasons);
  v("cautions", cell.cautions);
  v("command", cell.command);
  v("raw_file", cell.raw_file);
  v("bytes", cell.bytes);
  v("ios", cell.ios);
  v("opens", cell.opens);
  v("seconds", cell.seconds);
  v.derived("bytes_per_second", cell.seconds > 0 ? static_cast<double>(cell.bytes) / cell.seconds : 0.0);
  v("fio_cpu_seconds", cell.cpu_seconds);
  v("origin", cell.origin);
  v("latency_ns_bins", cell.bins);
  v("host_cpu", cell.cpu);
  v("free_memory_bytes", cell.memory);
}

void visit_fields(Of<Record> auto& record, const auto& v) {
  static_assert(kFieldCount<Record> == 20);
  v("run_id", record.run_id);
  v("tool_version", record.tool_version);
  v("started", record.started);
  v("seconds", record.seconds);
  v("interrupted", record.interrupted);
  v("hosts", record.hosts);
  v.text("seed", record.seed);  // JSON numbers are exact only up to 2^53
  v("size_bytes", record.size);
  v("runtime_s", record.runtime);
  v("rounds", record.rounds);
  v("max_rounds", record.max_rounds);
  v("rate_limit", record.rate_limit);
  v("asked", record.asked);
  v("host", record.host);
  v("idle_cpu", record.idle_cpu);
  v("fio", record.fio);
  v("paths", record.paths);
  v("scenarios", record.scenarios);
  v("cells", record.cells);
  v("warnings", record.warnings);
}

template <class T>
concept Listed = requires(T& record, const std::monostate& v) {
  visit_fields(record, v);
};

}  // namespace spark::bench
