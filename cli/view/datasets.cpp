#include <algorithm>

#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/view/screens.hpp"
#include "cli/view/table.hpp"
#include "cli/view/text.hpp"

namespace spark::cli {
namespace {

constexpr std::size_t kNameColumn = 0, kPathColumn = 5;

Colour colour_of(const std::string& state) {
  if (state == "ready") return Colour::Green;
  if (state == "absent") return Colour::Faint;
  return state == "failed" || state == "stalled" ? Colour::Red : Colour::Yellow;
}

// "lease 3ee4d2ad: pid 4242 (python), ends in 1 h 30 min"; `wanted_by`: holders that wait for the dataset.
std::string lease_in_words(const json::object& lease, const json::array* wanted_by, WallTime now) {
  std::string words = "lease " + printable(get_string(lease, "id").value_or("?"));
  const auto holder = get_string(lease, "holder");
  if (holder) words += ": " + printable(*holder);
  if (holder && wanted_by != nullptr &&
      std::ranges::find(*wanted_by, json::value(*holder)) != wanted_by->end())
    words += ", waits for it";
  const auto expires = get_string(lease, "expires");
  return expires ? words + ", ends in " + time_until(expires, now) : words;
}

// Notes on a complete copy; empty: none.
std::string doubt_in_words(const json::object& dataset) {
  if (get_bool(dataset, "doubtful").value_or(false))
    return "copied while another host wrote its volume: served only with --allow-dirty";
  if (!get_bool(dataset, "outdated").value_or(false)) return "";
  const std::uint64_t copied = get_count(dataset, "source_generation");
  std::string words = "copied ";
  words += copied == 0 ? "before the first generation" : "at generation " + std::to_string(copied);
  words += ", its volume is at " + std::to_string(get_count(dataset, "volume_generation"));
  return words + ": staging it again copies the changes";
}

// "120 GB of it came from peers, 22 GB from its source"; empty: nothing came from peers.
std::string origin_in_words(const json::object& dataset) {
  const json::object* from = get_object(dataset, "bytes_from");
  const Bytes peers = from == nullptr ? 0 : get_count(*from, "peers");
  if (peers == 0) return "";
  return format_bytes(peers) + " of it came from peers, " + format_bytes(get_count(*from, "volume")) +
         " from its source";
}

}  // namespace

void print_datasets(std::ostream& out, const Terminal& terminal, const json::object& answer, WallTime now) {
  const auto datasets = objects_in(answer, "datasets");
  if (datasets.empty()) {
    out << "Nothing is staged - `spark-stage stage DATASET` puts a dataset here.\n";
    return;
  }
  Table table({"DATASET", "STATE", "SIZE", "FILES", "USED", "PATH"}, {kNameColumn, kPathColumn});
  for (const json::object& dataset : datasets) {
    const std::string state = printable(get_string(dataset, "state").value_or("-"));
    const bool is_here = get_text(dataset, "path") != "";
    const std::string used = age_of(get_string(dataset, "last_used"), now);
    table.add({{printable(get_string(dataset, "name").value_or("-"))},
               {state, colour_of(state)},
               {is_here ? format_bytes(get_count(dataset, "bytes")) : "-"},
               {is_here ? format_count(get_count(dataset, "files")) : "-"},
               {used == "-" ? used : used + " ago"},
               {is_here ? printable(*get_string(dataset, "path")) : "-"}});
    if (const auto reason = get_string(dataset, "reason")) table.add_note(printable(*reason));
    if (dataset.contains("bytes_here"))
      table.add_note(format_bytes(get_count(dataset, "bytes_here")) +
                     " of it is here, reads of the rest wait");
    if (const json::object* live = get_object(dataset, "live"))
      table.add_note("a newer state is live: " + format_bytes(get_count(*live, "bytes_here")) + " of " +
                     format_bytes(get_count(*live, "bytes")) + " is here, in " +
                     printable(get_text(*live, "path")));
    if (const std::string doubt = doubt_in_words(dataset); !doubt.empty()) table.add_note(doubt);
    if (const std::string origin = origin_in_words(dataset); !origin.empty()) table.add_note(origin);
    for (const json::object& lease : objects_in(dataset, "leases"))
      table.add_note(lease_in_words(lease, get_array(dataset, "wanted_by"), now));
  }
  table.print(out, terminal);
}

std::string staged_in_words(const json::object& dataset) {
  std::string words =
      format_bytes(get_count(dataset, "bytes")) + ", " + counted(get_count(dataset, "files"), "file");
  if (get_string(dataset, "state") == "live")
    return words + ", live: " + format_bytes(get_count(dataset, "bytes_here")) +
           " of it is here, and reads of the rest wait";
  if (get_string(dataset, "served_from") == "cache") return words + ", was in the cache already";
  const double seconds = std::max(0.0, get_double(dataset, "seconds").value_or(0));
  words += ", copied in " + format_duration(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                std::chrono::duration<double>(seconds)));
  const double rate = get_double(dataset, "bytes_per_second").value_or(0);
  if (rate > 0) words += " (" + format_rate(rate) + ")";
  if (const Bytes resumed = get_count(dataset, "resumed_bytes"); resumed > 0) {
    words += ", " + format_bytes(resumed) + " of it taken over from an earlier attempt";
  }
  return words;
}

std::string skipped_in_words(const std::vector<std::string>& skipped) {
  constexpr std::size_t kNamed = 10;
  const bool are_more = !skipped.empty() && skipped.back().ends_with(" more");  // see WalkNotes
  std::vector<std::string> named = skipped;
  if (named.size() > kNamed) {
    named.resize(kNamed);
    named.emplace_back("…");
  }
  return "skipped " + std::to_string(skipped.size()) + (are_more ? " or more" : "") +
         " that are neither file, folder nor symlink: " + join(named, ", ");
}

}  // namespace spark::cli
