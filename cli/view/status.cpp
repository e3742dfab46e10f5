#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/view/progress_view.hpp"
#include "cli/view/screens.hpp"
#include "cli/view/table.hpp"
#include "cli/view/text.hpp"

namespace spark::cli {
namespace {

constexpr std::size_t kVolumeColumn = 0, kMountColumn = 4, kDeviceColumn = 5;
constexpr std::size_t kWidestName = 24;  // of a subsystem: three of them on a line

struct StateWords {
  std::string_view state;
  Colour colour;
  std::string_view next_step;  // when the daemon gave no reason of its own
};

constexpr std::array kStates = {
    StateWords{"ready", Colour::Green, ""},
    StateWords{"waiting", Colour::Yellow, "the target was not reached yet; the daemon keeps trying"},
    StateWords{"connecting", Colour::Yellow, ""},
    StateWords{"mounting", Colour::Yellow, ""},
    StateWords{"recovering", Colour::Yellow, ""},
    StateWords{"leaving", Colour::Yellow, ""},
    StateWords{"stalled", Colour::Red,
               "the link is down and I/O waits for it; check the network and the target"},
    StateWords{"lost", Colour::Red, "its device is gone and reads of it fail; the daemon brings it back"},
    StateWords{"refused", Colour::Red, "an administrator has to act; see `journalctl -u spark-staged`"},
    StateWords{"down", Colour::Faint, ""},
};

const StateWords& words_of(std::string_view state) {
  static constexpr StateWords kUnknown{"", Colour::None, ""};
  const auto found =
      std::find_if(kStates.begin(), kStates.end(), [&](const auto& w) { return w.state == state; });
  return found == kStates.end() ? kUnknown : *found;
}

// The notes under a volume's row; empty: none.
std::string reason_of(const json::object& volume) {
  const std::string state = get_text(volume, "state");
  std::string reason = get_shown(volume, "reason");
  if (!reason.empty()) return reason;
  if (state == "down") {
    const json::object* down = get_object(volume, "down");
    const std::string by = down == nullptr ? "" : "taken down by " + cell_of(*down, "by") + "; ";
    return by + "bring it up with `spark-stage volumes up " + cell_of(volume, "name") + "`";
  }
  return std::string(words_of(state).next_step);
}

// Which state of the volume is mounted, if its writer publishes; empty otherwise.
std::string published_of(const json::object& volume, WallTime now) {
  const json::object* published = get_object(volume, "published");
  if (published == nullptr || cell_of(volume, "state") != "ready") return "";
  std::string words = "generation ";
  words += std::to_string(get_int(*published, "generation").value_or(0));
  words += ", published " + age_of(get_string(*published, "at"), now) + " ago by ";
  return words + cell_of(*published, "host");
}

void print_title(std::ostream& out, const Terminal& terminal, const std::string& title) {
  out << "\n" << coloured(title, Colour::Faint, terminal.colour) << "\n";
}

void print_volumes(std::ostream& out, const Terminal& terminal, const json::object& status, WallTime now) {
  Table table({"NAME", "STATE", "SINCE", "ACCESS", "MOUNT", "DEVICE"}, {kMountColumn, kDeviceColumn},
              {kVolumeColumn});
  for (const json::object& volume : objects_in(status, "volumes")) {
    const std::string state = cell_of(volume, "state");
    table.add({{cell_of(volume, "name")},
               {state, words_of(state).colour},
               {age_of(get_string(volume, "since"), now)},
               {cell_of(volume, "access")},
               {cell_of(volume, "mount")},
               {cell_of(volume, "device")}});
    const std::string reason = reason_of(volume);
    const std::string note = reason.empty() ? published_of(volume, now) : reason;
    if (!note.empty()) table.add_note(note);
    for (const std::string& warning : get_strings(volume, "warnings"))
      table.add_note("warning: " + printable(warning));
  }
  table.print(out, terminal);
}

// "rose: raid6-archive, scratch and 3 more": on a terminal no more names than fit into a line.
std::string offered_in_words(const std::string& target, const std::vector<std::string>& names,
                             const Terminal& terminal) {
  const auto words = [&](std::size_t shown) { return target + ": " + join_first(names, shown); };
  constexpr std::size_t kMostNames = 3;
  std::size_t shown = std::min(names.size(), kMostNames);
  while (terminal.out && shown > 1 && display_width(words(shown)) > terminal.columns) --shown;
  return words(shown);
}

// Subsystems that targets offer to this host and no volume uses: some names of each, a line a
// target.
void print_offers(std::ostream& out, const Terminal& terminal, const json::object& status) {
  bool has_title = false;
  for (const json::object& target : objects_in(status, "targets")) {
    std::vector<std::string> names;
    for (const json::object& subsystem : objects_in(target, "offered"))
      if (!get_bool(subsystem, "configured").value_or(true))
        names.push_back(shorten(cell_of(subsystem, "subsystem"), kWidestName));
    if (names.empty()) continue;
    if (!std::exchange(has_title, true)) print_title(out, terminal, "OFFERED, NOT CONFIGURED");
    out << offered_in_words(cell_of(target, "name"), names, terminal) << "\n  spark-stage discover "
        << cell_of(target, "address") << " --yaml\n";
  }
}

// A dataset that is being staged: a progress object of docs/api.md, with the jobs that want it.
void print_stage(std::ostream& out, const Terminal& terminal, const json::object& stage) {
  Progress progress = progress_from_json(stage);
  if (progress.dataset.empty()) progress.dataset = "-";
  if (progress.phase.empty()) progress.phase = "queued";
  std::string words = progress_in_words(progress, Eta(), {});
  const std::vector<std::string> ids = get_printable(stage, "jobs");
  std::vector<std::string> notes;
  if (!ids.empty()) notes.push_back((ids.size() == 1 ? "job " : "jobs ") + join(ids, ", "));
  if (const auto wanted_by = get_printable(stage, "wanted_by"); !wanted_by.empty())
    notes.push_back("for " + join(wanted_by, ", "));
  if (!notes.empty()) words += " (" + join(notes, "; ") + ")";
  out << sentence(words, terminal.columns, terminal.out);
}

// A line for each: "run7: step-1000 is on checkpoints:run7, written 5 min ago; 141 GB to send".
void print_outputs(std::ostream& out, const Terminal& terminal, const json::object& status, WallTime now) {
  const auto outputs = objects_in(status, "outputs");
  if (!outputs.empty()) print_title(out, terminal, "OUTPUTS");
  for (const json::object& output : outputs) {
    const std::string there = get_text(output, "latest_published");
    std::string words = cell_of(output, "name") + ": ";
    words += there.empty() ? "nothing is on " + cell_of(output, "destination") + " yet"
                           : printable(there) + " is on " + cell_of(output, "destination") + ", written " +
                                 age_of(get_string(output, "published_at"), now) + " ago";
    const Bytes left = get_count(output, "backlog_bytes");
    if (left > 0) words += "; " + format_bytes(left) + " to send";
    const auto why = get_string(output, left > 0 || get_string(output, "reason") ? "reason" : "unsent");
    if (why) words += "; " + printable(*why);
    out << sentence(words, terminal.columns, terminal.out);
  }
}

// "in memory: llama 135 GB, imagenet about 3.4 GB; …"; empty if no copy holds much.
std::string memory_in_words(const json::object& memory) {
  std::vector<std::string> held;
  for (const json::object& one : objects_in(memory, "datasets")) {
    const Bytes bytes = get_count(one, "bytes");
    if (bytes < kMiB) continue;
    const bool is_estimate = get_bool(one, "estimated").value_or(false);
    held.push_back(cell_of(one, "name") + (is_estimate ? " about " : " ") + format_bytes(bytes));
  }
  if (held.empty()) return "";
  const bool is_freed = get_string(memory, "page_cache") == "drop";
  return "in memory: " + join(held, ", ") +
         (is_freed ? "; freed once no program reads them" : "; `spark-stage drop` frees it");
}

void print_stages(std::ostream& out, const Terminal& terminal, const std::string& title,
                  const json::object& status, std::string_view key) {
  const auto stages = objects_in(status, key);
  if (!stages.empty()) print_title(out, terminal, title);
  for (const json::object& stage : stages) print_stage(out, terminal, stage);
}

void print_cache(std::ostream& out, const Terminal& terminal, const json::object& cache,
                 const json::object* memory) {
  print_title(out, terminal, "CACHE");
  out << cell_of(cache, "path") << ": " << format_bytes(get_count(cache, "used_bytes")) << " used, "
      << format_bytes(get_count(cache, "free_bytes")) << " free";
  if (const Bytes capacity = get_count(cache, "capacity_bytes"); capacity > 0)
    out << " of " << format_bytes(capacity);
  out << "\n";
  const auto tell = [&](const std::string& words) { out << sentence(words, terminal.columns, terminal.out); };
  if (const std::string words = memory == nullptr ? "" : memory_in_words(*memory); !words.empty())
    tell(words);
  if (const auto why = get_string(cache, "writable_because"))
    tell("jobs can change the staged copies: " + printable(*why));
  for (const std::string& warning : get_printable(cache, "warnings")) tell(warning);
}

}  // namespace

std::string volume_in_words(const json::object& volume) {
  const std::string reason = reason_of(volume);
  return cell_of(volume, "name") + ": " + cell_of(volume, "state") + (reason.empty() ? "" : " - " + reason);
}

void print_status(std::ostream& out, const Terminal& terminal, const json::object& status, WallTime now) {
  if (get_bool(status, "simulated").value_or(false))
    out << coloured("SIMULATED HOST", Colour::Yellow, terminal.colour) << "\n\n";
  if (const auto problem = get_string(status, "config_problem")) {
    // One line each in the text: every problem of the file.
    const std::string told =
        "an older configuration is in force: " + printable(join(split(*problem, '\n'), "; "));
    out << sentence(told, terminal.columns, terminal.out) << "\n";
  }
  const json::array* volumes = get_array(status, "volumes");
  if (volumes != nullptr && volumes->empty()) {
    out << "No volumes are configured - `spark-stage discover ADDRESS --yaml` prints a\n"
           "configuration to start from.\n";
  } else if (volumes != nullptr) {
    print_volumes(out, terminal, status, now);
  }
  print_offers(out, terminal, status);
  print_stages(out, terminal, "STAGING", status, "stages");
  print_stages(out, terminal, "STAGING OUT", status, "stage_outs");
  print_outputs(out, terminal, status, now);
  if (const json::object* cache = get_object(status, "cache"))
    print_cache(out, terminal, *cache, get_object(status, "memory"));
  if (const auto problem = get_string(status, "cache_problem")) {
    print_title(out, terminal, "CACHE");
    out << sentence("nothing can be staged: " + printable(*problem), terminal.columns, terminal.out);
  }
  if (const json::object* fleet = get_object(status, "fleet")) print_fleet(out, terminal, *fleet);
}

}  // namespace spark::cli
