#include "bench/demand/stored_demand.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "bench/record/record.hpp"
#include "bench/record/words.hpp"

namespace spark::bench {
namespace {

constexpr double kWaitingALot = 0.1;
constexpr const char* kSchema = "spark-stage-demand/1";

ReadOrder order_from(const std::string& word) {
  for (const ReadOrder order : {ReadOrder::Sequential, ReadOrder::Random}) {
    if (word == to_string(order)) return order;
  }
  return ReadOrder::Unknown;
}

}  // namespace

Demand StoredDemand::demand() const {
  return {reads.rate.value, cut_short(command, 40) + ", measured " + rfc3339(measured).substr(0, 10),
          reads.order, reads.mean_file, cautions()};
}

std::vector<std::string> StoredDemand::cautions() const {
  std::vector<std::string> cautions;
  if (reads.counted_at_storage && reads.may_lack_reads) {
    cautions.emplace_back(
        "the job maps its files or reads with io_uring, so only bytes from storage were counted: with a warm "
        "page cache it consumes more than was measured");
    if (!is_cache_known)
      cautions.emplace_back(
          "it is not known how much of the data the page cache had before the job began (too many files, or "
          "a file system that does not tell): if it had much, the job consumes more than was measured; "
          "measure it on a copy on a local drive, right after `spark-stage drop`");
  } else if (reads.may_lack_reads) {
    cautions.emplace_back(
        "the job also maps files or reads with io_uring: what it got that way from the page cache was not "
        "counted");
  }
  if (waiting_share > kWaitingALot) {
    cautions.push_back("processes of this host waited for storage " + percent_text(waiting_share) +
                       " of the time while the job was measured, so it may consume more: measure it from a "
                       "staged copy, on an idle host");
  }
  return cautions;
}

json::object to_json(const StoredDemand& demand) {
  const JobReads& reads = demand.reads;
  json::array staged;
  for (const std::string& variable : demand.staged) staged.emplace_back(printable(variable));
  return {{"schema", kSchema},
          {"measured", rfc3339(demand.measured)},
          {"command", printable(demand.command)},
          {"dataset", printable(demand.dataset)},
          {"staged", std::move(staged)},
          {"bytes_per_second", reads.rate.value},
          {"low_95", reads.rate.range.low},
          {"high_95", reads.rate.range.high},
          {"bytes", static_cast<double>(reads.bytes)},
          {"seconds", reads.seconds},
          {"files_seen", static_cast<double>(reads.files)},
          {"mean_file_bytes", static_cast<double>(reads.mean_file)},
          {"read_order", to_string(reads.order)},
          {"counted_at_storage", reads.counted_at_storage},
          {"may_lack_reads", reads.may_lack_reads},
          {"waiting_share", demand.waiting_share},
          {"page_cache_known", demand.is_cache_known}};
}

std::filesystem::path demand_file(const std::filesystem::path& runs) {
  return runs / "demand.json";
}

Result<> save_demand(const std::filesystem::path& runs, const StoredDemand& demand) {
  std::error_code error;
  std::filesystem::create_directories(runs, error);
  if (error) {
    return fail_errno(error.value(), "making the folder " + printable(runs.string()) + " for the demand",
                      "choose another place with --runs FOLDER");
  }
  return write_file_atomically(demand_file(runs), pretty(to_json(demand)) + "\n");
}

Result<std::optional<StoredDemand>> load_demand(const std::filesystem::path& runs) {
  const std::filesystem::path file = demand_file(runs);
  const std::string doing = "reading the measured demand in " + printable(file.string());
  const auto text = read_file(file);
  if (!text && text.error().kind == Errc::NotFound) return std::nullopt;
  if (!text) return fail_with(text.error(), doing);
  const auto object = parse_json_object(*text);
  if (!object) return fail_with(object.error(), doing);
  StoredDemand demand;
  demand.measured = parse_rfc3339(get_text(*object, "measured")).value_or(WallTime{});
  demand.command = get_shown(*object, "command");
  demand.dataset = get_shown(*object, "dataset");
  demand.staged = get_printable(*object, "staged");
  JobReads& reads = demand.reads;
  reads.rate = {read_amount(*object, "bytes_per_second"),
                {read_amount(*object, "low_95"), read_amount(*object, "high_95")}};
  reads.bytes = static_cast<Bytes>(read_amount(*object, "bytes"));
  reads.seconds = read_amount(*object, "seconds");
  reads.files = static_cast<std::uint64_t>(read_amount(*object, "files_seen"));
  reads.mean_file = static_cast<Bytes>(read_amount(*object, "mean_file_bytes"));
  reads.order = order_from(get_text(*object, "read_order"));
  reads.counted_at_storage = get_bool(*object, "counted_at_storage").value_or(false);
  reads.may_lack_reads = get_bool(*object, "may_lack_reads").value_or(reads.counted_at_storage);
  demand.waiting_share = read_amount(*object, "waiting_share");
  demand.is_cache_known = get_bool(*object, "page_cache_known").value_or(true);
  if (get_text(*object, "schema") != kSchema || reads.rate.value <= 0) {
    return fail(Errc::Invalid, doing + ": it is no measurement of a demand",
                "measure again: spark-stage bench demand -- COMMAND");
  }
  return std::optional(std::move(demand));
}

}  // namespace spark::bench
