#include <array>
#include <map>

#include "daemon/metrics/families.hpp"

namespace spark::metrics {
namespace {

constexpr std::array kDatasetStates = {"absent", "queued", "copying", "stalled", "flushing",
                                       "live",   "ready",  "failed",  "evicting"};

void add_dataset_states(Page& page, const std::optional<json::object>& list) {
  Family& family =
      gauge(page, "spark_stage_datasets", "Datasets of the configuration and the cache, by state.");
  if (!list) return;
  std::map<std::string, double> count;
  for (const json::object& row : objects_in(*list, "datasets")) ++count[get_text(row, "state")];
  for (const char* state : kDatasetStates) family.add({{"state", state}}, count[state]);
}

void add_cache(Page& page, const DatasetFacts& facts) {
  const json::object* cache = facts.cache.if_object();
  gauge(page, "spark_stage_cache_up",
        "1 if the cache's catalog could be read, else 0 and no other figure of the cache.")
      .add({}, cache != nullptr);
  const auto figure = [&](const char* name, const char* help, const char* key) {
    gauge(page, name, help).add({}, cache == nullptr ? std::nullopt : get_double(*cache, key));
  };
  figure("spark_stage_cache_capacity_bytes", "Space that the cache may use on its disk.", "capacity_bytes");
  figure("spark_stage_cache_used_bytes", "Space that staged datasets use on the disk.", "used_bytes");
  figure("spark_stage_cache_free_bytes", "Space for further datasets without an eviction.", "free_bytes");
  figure("spark_stage_cache_used_inodes", "Inodes of staged datasets.", "used_inodes");
  figure("spark_stage_cache_free_inodes",
         "Inodes that may still be used; absent where the file system has no fixed number.", "free_inodes");
  const auto& totals = facts.totals;
  counter(page, "spark_stage_cache_evictions_total",
          "Datasets evicted, to make room for another or by request.")
      .add({{"reason", "room"}}, totals.evicted_for_room)
      .add({{"reason", "request"}}, totals.evicted_by_request);
  counter(page, "spark_stage_cache_evicted_bytes_total", "Bytes freed by evictions.")
      .add({{"reason", "room"}}, totals.evicted_for_room_bytes)
      .add({{"reason", "request"}}, totals.evicted_by_request_bytes);
  counter(page, "spark_stage_cache_verifications_total",
          "Staged datasets that were read back, on request or by the scrub, by result.")
      .add({{"result", "good"}}, totals.found_good)
      .add({{"result", "damaged"}}, totals.found_damaged)
      .add({{"result", "unreadable"}}, totals.not_readable);
}

}  // namespace

void add_datasets(Page& page, const DatasetFacts& facts) {
  const auto& totals = facts.totals;
  add_dataset_states(page, facts.list);
  counter(page, "spark_stage_stagings_total",
          "Stagings that ended, by result; several requests for one dataset at a time are one.")
      .add({{"result", "copied"}}, totals.copied)
      .add({{"result", "cached"}}, totals.from_cache)
      .add({{"result", "failed"}}, totals.failed)
      .add({{"result", "cancelled"}}, totals.cancelled);
  counter(page, "spark_stage_staging_copied_bytes_total", "Bytes that stagings copied to the cache.")
      .add({}, totals.copied_bytes);
  counter(page, "spark_stage_staging_peer_bytes_total",
          "The part of those bytes that came from other hosts instead of the source.")
      .add({}, totals.peer_bytes);
  counter(page, "spark_stage_staging_copied_seconds_total",
          "Time that copying stagings took, until durable and published.")
      .add({}, totals.copied_seconds);
  counter(page, "spark_stage_staging_stalls_total",
          "Times that a staging had to wait for its source to come back.")
      .add({}, totals.stalls);
  add_cache(page, facts);
  gauge(page, "spark_stage_leases", "Leases on datasets that hold now.").add({}, facts.leases);
}

}  // namespace spark::metrics
