#include <array>
#include <map>
#include <string_view>

#include "daemon/metrics/families.hpp"

namespace spark::metrics {
namespace {

constexpr std::array kDatasetStates = {"absent",   "queued", "copying", "stalled",
                                       "flushing", "ready",  "failed",  "evicting"};

double number(std::uint64_t count) {
  return static_cast<double>(count);
}

Family counter(const char* name, const char* help, double value) {
  return {name, help, Kind::Counter, {{{}, value}}};
}

// A number from the cache's object, if it is known.
Family of_cache(const char* name, const char* help, const json::value& cache, std::string_view key) {
  Family family{name, help, Kind::Gauge, {}};
  const json::object* object = cache.if_object();
  if (object == nullptr) return family;
  if (const auto value = get_double(*object, key)) family.samples.push_back({{}, *value});
  return family;
}

Family datasets_by_state(const std::optional<json::object>& list) {
  Family family{
      "spark_stage_datasets", "Datasets of the configuration and the cache, by state.", Kind::Gauge, {}};
  const json::array* rows = list ? get_array(*list, "datasets") : nullptr;
  if (rows == nullptr) return family;
  std::map<std::string, double> count;
  for (const json::value& row : *rows) ++count[get_text(row.as_object(), "state")];
  for (const char* state : kDatasetStates) family.samples.push_back({{{"state", state}}, count[state]});
  return family;
}

void add_cache(Page& page, const DatasetFacts& facts) {
  const json::value& cache = facts.cache;
  page.push_back({"spark_stage_cache_up",
                  "1 if the cache's catalog could be read, else 0 and no other figure of the cache.",
                  Kind::Gauge,
                  {{{}, cache.is_object() ? 1.0 : 0.0}}});
  page.push_back(of_cache("spark_stage_cache_capacity_bytes", "Space that the cache may use on its disk.",
                          cache, "capacity_bytes"));
  page.push_back(of_cache("spark_stage_cache_used_bytes", "Space that staged datasets use on the disk.",
                          cache, "used_bytes"));
  page.push_back(of_cache("spark_stage_cache_free_bytes", "Space for further datasets without an eviction.",
                          cache, "free_bytes"));
  page.push_back(
      of_cache("spark_stage_cache_used_inodes", "Inodes of staged datasets.", cache, "used_inodes"));
  page.push_back(of_cache("spark_stage_cache_free_inodes",
                          "Inodes that may still be used; absent where the file system has no fixed number.",
                          cache, "free_inodes"));
  const auto& totals = facts.totals;
  page.push_back({"spark_stage_cache_evictions_total",
                  "Datasets evicted, to make room for another or by request.",
                  Kind::Counter,
                  {{{{"reason", "room"}}, number(totals.evicted_for_room)},
                   {{{"reason", "request"}}, number(totals.evicted_by_request)}}});
  page.push_back({"spark_stage_cache_evicted_bytes_total",
                  "Bytes freed by evictions.",
                  Kind::Counter,
                  {{{{"reason", "room"}}, number(totals.evicted_for_room_bytes)},
                   {{{"reason", "request"}}, number(totals.evicted_by_request_bytes)}}});
  page.push_back({"spark_stage_cache_verifications_total",
                  "Staged datasets that were read back, on request or by the scrub, by result.",
                  Kind::Counter,
                  {{{{"result", "good"}}, number(totals.found_good)},
                   {{{"result", "damaged"}}, number(totals.found_damaged)},
                   {{{"result", "unreadable"}}, number(totals.not_readable)}}});
}

}  // namespace

void add_datasets(Page& page, const DatasetFacts& facts) {
  const auto& totals = facts.totals;
  page.push_back(datasets_by_state(facts.list));
  page.push_back({"spark_stage_stagings_total",
                  "Stagings that ended, by result; several requests for one dataset at a time are one.",
                  Kind::Counter,
                  {{{{"result", "copied"}}, number(totals.copied)},
                   {{{"result", "cached"}}, number(totals.from_cache)},
                   {{{"result", "failed"}}, number(totals.failed)},
                   {{{"result", "cancelled"}}, number(totals.cancelled)}}});
  page.push_back(counter("spark_stage_staging_copied_bytes_total", "Bytes that stagings copied to the cache.",
                         number(totals.copied_bytes)));
  page.push_back(counter("spark_stage_staging_peer_bytes_total",
                         "The part of those bytes that came from other hosts instead of the source.",
                         number(totals.peer_bytes)));
  page.push_back(counter("spark_stage_staging_copied_seconds_total",
                         "Time that copying stagings took, until durable and published.",
                         totals.copied_seconds));
  page.push_back(counter("spark_stage_staging_stalls_total",
                         "Times that a staging had to wait for its source to come back.",
                         number(totals.stalls)));
  add_cache(page, facts);
  page.push_back(
      {"spark_stage_leases", "Leases on datasets that hold now.", Kind::Gauge, {{{}, number(facts.leases)}}});
}

}  // namespace spark::metrics
