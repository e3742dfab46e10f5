#include "tests/histories/outputs/workers.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "base/file.hpp"
#include "base/text.hpp"
#include "daemon/workers/verbs/verbs.hpp"

namespace spark::histories {
namespace {

using workers::Verb;

struct VerbRow {
  std::string_view name;
  Verb run;
  bool uses_volume, changes_something;
};

constexpr std::array kVerbs = {
    VerbRow{"flush-source", workers::flush_source_verb, false, false},
    VerbRow{"stage-out", workers::stage_out_verb, true, true},
    VerbRow{"verify-output", workers::verify_output_verb, true, false},
    VerbRow{"scan-output", workers::scan_output_verb, false, false},
    VerbRow{"list-published", workers::list_published_verb, true, false},
    VerbRow{"prune-output", workers::prune_output_verb, true, true},
    VerbRow{"point-output", workers::point_output_verb, true, true},
    VerbRow{"announce-shards", workers::announce_shards_verb, true, true},
    VerbRow{"hold-source", workers::hold_source_verb, false, true},
    VerbRow{"release-held", workers::release_held_verb, false, true},
    VerbRow{"tidy-output", workers::tidy_output_verb, false, true},
    VerbRow{"recorded", workers::recorded_verb, false, false},
    VerbRow{"forget", workers::forget_verb, false, false},
    VerbRow{"record", workers::record_verb, false, false},
};

const VerbRow* find_verb(const std::string& name) {
  const auto found = std::ranges::find(kVerbs, name, &VerbRow::name);
  return found == kVerbs.end() ? nullptr : &*found;
}

constexpr int kKilled = 137;  // as libc.cpp ends a worker

using Progress = std::function<void(const json::object&)>;

// What a worker says before it deletes something, and once it has published. The progress of a copy is left
// out.
Progress told_by(const workers::Call& call) {
  return [&call](const json::object& line) {
    const bool is_told = line.contains("deletes") || line.contains("published");
    if (is_told && call.on_progress) call.on_progress(line);
  };
}

bool write_line(int channel, const json::object& line) {
  const std::string text = json::serialize(line) + "\n";
  return ::write(channel, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// In a child process, which never returns to the world: the exit status.
int answer_to(int channel, const VerbRow& verb, const json::object& request) {
  try {
    const Answer answer = verb.run(request, [&](const json::object& line) { write_line(channel, line); });
    const json::object line =
        answer ? json::object{{"result", *answer}} : json::object{{"error", to_json(answer.error())}};
    return write_line(channel, line) ? 0 : 1;
  } catch (...) {
    return 1;
  }
}

// A process of its own, which may be killed in the middle. `crash`: how it ended, if not so.
Answer run_in_child(const VerbRow& verb, const workers::Call& call, std::string& crash) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return fail_errno(errno, "making a pipe");
  const pid_t child = ::fork();
  if (child == 0) ::_exit(answer_to(ends[1], verb, call.request));
  ::close(ends[1]);
  const auto text = read_file("/proc/self/fd/" + std::to_string(ends[0]));
  ::close(ends[0]);
  int status = 0;
  (void)::waitpid(child, &status, 0);
  const bool is_killed = WIFEXITED(status) && WEXITSTATUS(status) == kKilled;
  if (status != 0 && !is_killed)
    crash = "the worker for " + std::string(verb.name) + " ended with wait status " + std::to_string(status);
  for (const std::string& one : split(text ? *text : "", '\n')) {
    const auto line = parse_json_object(one);
    if (!line) continue;
    if (const json::object* result = get_object(*line, "result")) return *result;
    if (const json::object* error = get_object(*line, "error")) return fail(error_from_json(*error));
    told_by(call)(*line);
  }
  return fail(Errc::Failed, "the worker for " + std::string(verb.name) + " ended without an answer",
              "its last words may be in `journalctl -u spark-staged`");
}

// The C library answers as on this host until the end of the scope.
class OnHost {
 public:
  explicit OnHost(Machine& machine) {
    libc().wall_ns = std::chrono::nanoseconds(machine.wall().time_since_epoch()).count();
    libc().host = machine.name();
    // As the kernel's: it moves with the clock.
    libc().boot_s = std::chrono::floor<std::chrono::seconds>(
                        (machine.wall() -
                         std::chrono::duration_cast<WallTime::duration>(machine.steady() - machine.booted))
                            .time_since_epoch())
                        .count();
    libc().on_flush_all = [&machine] { machine.durable = content_of(machine.job_folder()); };
    libc().calls = 0;
  }
  OnHost(const OnHost&) = delete;
  OnHost& operator=(const OnHost&) = delete;
  ~OnHost() {
    libc().wall_ns.reset();
    libc().boot_s.reset();
    libc().slept_ns = 0;
    libc().on_flush_all = nullptr;
    libc().fault = {};
    libc().interlude = nullptr;
  }
};

}  // namespace

HistoryRunner::Hooks Workers::hooks_for(Machine& machine) {
  return {[this, &machine](const workers::Call& call) { return perform(machine, call); },
          [this, &machine](const workers::Call& call) {
            const VerbRow* verb = find_verb(call.verb);
            return verb != nullptr && verb->uses_volume && scene_.volume.hangs &&
                   scene_.volume.is_away[machine.index];
          }};
}

Answer Workers::perform(Machine& machine, const workers::Call& call) {
  const VerbRow* verb = find_verb(call.verb);
  if (verb == nullptr) return fail(Errc::Invalid, "no worker verb '" + call.verb + "'");
  if (verb->uses_volume && !scene_.volume.is_reached_by(machine.index)) {
    return fail(Errc::Unavailable, "the volume is not mounted at " + scene_.volume.path.native(),
                "`spark-stage status` shows the volume");
  }
  if (!verb->changes_something) return perform_as(machine, call);
  return perform_watched(machine, call);
}

Answer Workers::perform_watched(Machine& machine, const workers::Call& call) {
  file_times().wait_for_tick();
  const Oracles::Before before = oracles_.before(machine);
  Answer answer = perform_as(machine, call);
  file_times().see(machine.job_folder().native());
  file_times().see(scene_.volume.path.native());
  scene_.tell(machine, call.verb + (answer ? "" : " fails: " + answer.error().message()));
  oracles_.after(machine, call, before, answer);
  return answer;
}

Answer Workers::perform_as(Machine& machine, const workers::Call& call) {
  const VerbRow& verb = *find_verb(call.verb);
  const OnHost on_host(machine);
  if (call.verb == "scan-output") machine.looked = scene_.now();
  if (machine.fate.verb != call.verb) return verb.run(call.request, told_by(call));
  WorkerFate fate = std::exchange(machine.fate, {});
  const bool is_killed = fate.fault.nth > 0 && fate.fault.error == 0 && !fate.interlude;
  scene_.tell(machine, "the worker of " + call.verb +
                           (fate.interlude ? " is slow"
                            : is_killed    ? " is killed"
                                           : " meets an error"));
  libc().fault = fate.fault;
  libc().fault.is_forked = is_killed;
  libc().interlude = std::move(fate.interlude);
  bool has_published = false;  // and said so
  workers::Call watched = call;
  watched.on_progress = [&](const json::object& line) {
    has_published = has_published || line.contains("published");
    if (call.on_progress) call.on_progress(line);
  };
  std::string crash;
  Answer answer =
      is_killed ? run_in_child(verb, watched, crash) : verb.run(watched.request, told_by(watched));
  if (call.verb == "stage-out" && !answer && !has_published) machine.answer_lost = scene_.now();
  if (!crash.empty()) scene_.broken("worker-crashed", crash);
  return answer;
}

}  // namespace spark::histories
