#include "daemon/workers/verbs/protocol.hpp"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <iostream>
#include <string>
#include <string_view>

#include "base/file.hpp"
#include "base/threads.hpp"
#include "daemon/workers/verbs/verbs.hpp"

namespace spark::workers {
namespace {

struct VerbRow {
  std::string_view name;
  Verb run;
};

constexpr std::array kVerbs = {
    VerbRow{"discover", discover_verb},
    VerbRow{"watch-discovery", watch_discovery_verb},
    VerbRow{"read-discovery", read_discovery_verb},
    VerbRow{"resolve", resolve_verb},
    VerbRow{"connect", connect_verb},
    VerbRow{"timers", timers_verb},
    VerbRow{"rescan", rescan_verb},
    VerbRow{"disconnect", disconnect_verb},
    VerbRow{"superblock", superblock_verb},
    VerbRow{"mount", mount_verb},
    VerbRow{"unmount", unmount_verb},
    VerbRow{"users", users_verb},
    VerbRow{"guard", guard_verb},
    VerbRow{"remove-guards", remove_guards_verb},
    VerbRow{"probe", probe_verb},
    VerbRow{"mounted-state", mounted_state_verb},
    VerbRow{"record", record_verb},
    VerbRow{"plan", plan_verb},
    VerbRow{"stage", stage_verb},
    VerbRow{"verify", verify_verb},
    VerbRow{"evict", evict_verb},
    VerbRow{"recover", recover_verb},
    VerbRow{"catalog", catalog_verb},
    VerbRow{"move-cache", move_cache_verb},
    VerbRow{"reset-cache", reset_cache_verb},
    VerbRow{"watch-memory", watch_memory_verb},
    VerbRow{"drop-memory", drop_memory_verb},
    VerbRow{"serve-peers", serve_peers_verb},
    VerbRow{"ask-peers", ask_peers_verb},
    VerbRow{"adopt-folders", adopt_folders_verb},
    VerbRow{"verify-adopted", verify_adopted_verb},
    VerbRow{"serve-view", serve_view_verb},
    VerbRow{"show-copy", show_copy_verb},
    VerbRow{"drop-pages", drop_pages_verb},
    VerbRow{"end-view", end_view_verb},
    VerbRow{"find-views", find_views_verb},
    VerbRow{"flush-source", flush_source_verb},
    VerbRow{"stage-out", stage_out_verb},
    VerbRow{"verify-output", verify_output_verb},
    VerbRow{"scan-output", scan_output_verb},
    VerbRow{"list-published", list_published_verb},
    VerbRow{"prune-output", prune_output_verb},
    VerbRow{"point-output", point_output_verb},
    VerbRow{"announce-shards", announce_shards_verb},
    VerbRow{"hold-source", hold_source_verb},
    VerbRow{"release-held", release_held_verb},
    VerbRow{"tidy-output", tidy_output_verb},
    VerbRow{"recorded", recorded_verb},
    VerbRow{"forget", forget_verb},
    VerbRow{"lease", lease_verb},
    VerbRow{"jobs-here", jobs_here_verb},
    VerbRow{"user", user_verb},
    VerbRow{"reservation", reservation_verb},
    VerbRow{"smart", smart_verb},
    VerbRow{"flush", flush_verb},
    VerbRow{"stop-writing", stop_writing_verb},
    VerbRow{"publish", publish_verb},
    VerbRow{"make-writable", make_writable_verb},
};

void write_line(const json::object& line) {
  const std::string text = json::serialize(line) + "\n";
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) return;  // the daemon, and with it the reader of this answer, is gone
    if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

Result<json::object> answer(const std::string& name, std::string_view text) {
  for (const VerbRow& verb : kVerbs) {
    if (verb.name != name) continue;
    auto request = parse_json_object(text);
    if (!request) return request.take_error();
    return no_throw([&] {
      return verb.run(*request, [](const json::object& progress) { write_line({{"progress", progress}}); });
    });
  }
  return fail(Errc::Invalid, "no worker verb '" + name + "'", "workers are started by spark-staged itself");
}

void write_answer(const Result<json::object>& result) {
  if (result) {
    write_line({{"result", *result}});
  } else {
    write_line({{"error", to_json(result.error())}});
  }
}

void serve() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto call = parse_json_object(line);
    const json::object* request = call ? get_object(*call, "request") : nullptr;
    if (request == nullptr) {
      write_answer(fail(Errc::Invalid, "worker: a line that is no request"));
    } else {
      write_answer(answer(get_string(*call, "verb").value_or(""), json::serialize(*request)));
    }
  }
}

}  // namespace

int worker_main(const std::string& verb) {
  ::signal(SIGPIPE, SIG_IGN);
  if (verb == "serve") {
    serve();
    return 0;
  }
  // Not /dev/stdin, which is missing in a container that has the /dev of a host without udev.
  const auto text = read_file("/proc/self/fd/0");
  if (text) {
    write_answer(answer(verb, *text));
  } else {
    write_answer(fail(text.error()));
  }
  return 0;
}

}  // namespace spark::workers
