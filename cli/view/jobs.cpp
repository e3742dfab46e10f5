#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/view/progress.hpp"
#include "cli/view/screens.hpp"
#include "cli/view/table.hpp"
#include "cli/view/text.hpp"

namespace spark::cli {
namespace {

constexpr std::size_t kSubjectColumn = 2, kHolderColumn = 3;
constexpr std::size_t kMostEnded = 10;  // shown; --json has all that the daemon keeps

bool is_running(const json::object& job) {
  return get_string(job, "state") == "running";
}

Colour colour_of_job(const std::string& state) {
  if (state == "done") return Colour::Green;
  return state == "failed" || state == "stalled" ? Colour::Red : Colour::Yellow;
}

void add_running(Table& table, const json::object& job) {
  const json::object* now = get_object(job, "progress");
  const Progress progress = now == nullptr ? Progress() : progress_from_json(*now);
  const auto left = told_left(progress);
  const std::string state = progress.phase.empty() ? "running" : printable(progress.phase);
  table.add({{cell_of(job, "id")},
             {cell_of(job, "verb")},
             {cell_of(job, "subject")},
             {cell_of(job, "holder")},
             {state, colour_of_job(state)},
             {progress.bytes_total == 0 ? "-" : percent_done(progress)},
             {left ? format_left(*left) + " left" : "-"}});
  if (!progress.reason.empty()) table.add_note(printable(progress.reason));
}

void add_ended(Table& table, const json::object& job, WallTime now) {
  const json::object* error = get_object(job, "error");
  const bool is_cancelled = error != nullptr && get_string(*error, "kind") == "cancelled";
  const std::string state = is_cancelled ? "cancelled" : cell_of(job, "state");
  const std::string age = age_of(get_string(job, "ended"), now);
  table.add({{cell_of(job, "id")},
             {cell_of(job, "verb")},
             {cell_of(job, "subject")},
             {cell_of(job, "holder")},
             {state, colour_of_job(state)},
             {"-"},
             {age == "-" ? age : age + " ago"}});
  if (error != nullptr && !is_cancelled) table.add_note(cell_of(*error, "what"));
}

}  // namespace

void print_jobs(std::ostream& out, const Terminal& terminal, const json::object& answer, WallTime now) {
  std::vector<const json::object*> running, ended;
  for (const json::object& job : objects_in(answer, "jobs"))
    (is_running(job) ? running : ended).push_back(&job);
  if (running.empty() && ended.empty()) {
    out << "No jobs - the daemon has had nothing to do since it started.\n";
    return;
  }
  Table table({"JOB", "VERB", "DATASETS", "FOR", "STATE", "DONE", "TIME"}, {kSubjectColumn, kHolderColumn});
  for (const json::object* job : running) add_running(table, *job);
  std::ranges::reverse(ended);
  if (ended.size() > kMostEnded) ended.resize(kMostEnded);
  for (const json::object* job : ended) add_ended(table, *job, now);
  table.print(out, terminal);
}

}  // namespace spark::cli
