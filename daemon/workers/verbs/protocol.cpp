#include "daemon/workers/verbs/protocol.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

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

constexpr VerbRow kVerbs[] = {
    {"discover", discover_verb},
    {"watch-discovery", watch_discovery_verb},
    {"read-discovery", read_discovery_verb},
    {"resolve", resolve_verb},
    {"connect", connect_verb},
    {"timers", timers_verb},
    {"rescan", rescan_verb},
    {"disconnect", disconnect_verb},
    {"superblock", superblock_verb},
    {"mount", mount_verb},
    {"unmount", unmount_verb},
    {"users", users_verb},
    {"guard", guard_verb},
    {"remove-guards", remove_guards_verb},
    {"probe", probe_verb},
    {"mounted-state", mounted_state_verb},
    {"record", record_verb},
    {"plan", plan_verb},
    {"stage", stage_verb},
    {"verify", verify_verb},
    {"evict", evict_verb},
    {"recover", recover_verb},
    {"catalog", catalog_verb},
    {"move-cache", move_cache_verb},
    {"reset-cache", reset_cache_verb},
    {"watch-memory", watch_memory_verb},
    {"drop-memory", drop_memory_verb},
    {"serve-peers", serve_peers_verb},
    {"ask-peers", ask_peers_verb},
    {"adopt-folders", adopt_folders_verb},
    {"verify-adopted", verify_adopted_verb},
    {"serve-view", serve_view_verb},
    {"show-copy", show_copy_verb},
    {"drop-pages", drop_pages_verb},
    {"end-view", end_view_verb},
    {"find-views", find_views_verb},
    {"flush-source", flush_source_verb},
    {"stage-out", stage_out_verb},
    {"verify-output", verify_output_verb},
    {"scan-output", scan_output_verb},
    {"list-published", list_published_verb},
    {"prune-output", prune_output_verb},
    {"point-output", point_output_verb},
    {"announce-shards", announce_shards_verb},
    {"hold-source", hold_source_verb},
    {"release-held", release_held_verb},
    {"tidy-output", tidy_output_verb},
    {"recorded", recorded_verb},
    {"forget", forget_verb},
    {"lease", lease_verb},
    {"jobs-here", jobs_here_verb},
    {"user", user_verb},
    {"reservation", reservation_verb},
    {"smart", smart_verb},
    {"flush", flush_verb},
    {"stop-writing", stop_writing_verb},
    {"publish", publish_verb},
    {"make-writable", make_writable_verb},
};

void write_line(const json::object& line) {
  // It fails if the daemon, and with it the reader of this answer, is gone.
  (void)write_all(STDOUT_FILENO, json::serialize(line) + "\n");
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
      write_answer(answer(get_text(*call, "verb"), json::serialize(*request)));
    }
  }
}

}  // namespace

void end_with(const Result<json::object>& answer) {
  write_answer(answer);
  // A thread in the kernel keeps the open files of its process. Another one may still write its progress.
  if (::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO) < 0) ::close(STDOUT_FILENO);
  ::_exit(0);
}

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
