#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/access/named_path.hpp"
#include "base/kernel/mount_table.hpp"
#include "base/text.hpp"
#include "daemon/mounts/filesystems/superblock.hpp"
#include "daemon/workers/missing_source.hpp"
#include "daemon/workers/model_json.hpp"
#include "daemon/workers/verbs/fleet.hpp"
#include "daemon/workers/verbs/hold_volume.hpp"
#include "daemon/workers/verbs/open_cache.hpp"
#include "daemon/workers/verbs/verbs.hpp"
#include "daemon/workers/wire.hpp"
#include "fleet/copies/elsewhere.hpp"
#include "staging/cache/cache.hpp"
#include "staging/cache/folder/cache_folder.hpp"
#include "staging/cache/place/begun.hpp"
#include "staging/view/copy_viewer.hpp"

namespace spark::workers {
namespace {

// The source must lie on the volume's own mount: an unmounted mount point is an empty folder of the root
// disk. The returned descriptor keeps the host's mount from being unmounted and remounted while the source is
// read, and makes this worker appear among the users of the volume.
Result<UniqueFd> hold_mount(staging::Source& source, const json::object& request, const UniqueFd& host) {
  const std::string mount_point = get_text(request, "mount");
  if (mount_point.empty() || source.is_away) return UniqueFd();
  UniqueFd root(::openat(host.get(), mount_point.c_str() + 1, O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat at_root {};
  // Read after the open, so that it contains the opened mount.
  const auto table = mounts::read_mount_table(SystemRoot{});
  if (!table) return table.take_error();
  const mounts::Mount* mount = mounts::mounted_at(*table, mount_point);
  const bool is_held = is_checked_mount(mount, root, request) && ::fstat(root.get(), &at_root) == 0;
  auto named = is_held ? open_named(source.path, Links::Followed, Within{mount_point, at_root.st_dev})
                       : Result<NamedPath>(NamedPath{});
  if (!named) {
    if (named.error().hint.empty() && named.error().kind != Errc::NotFound)
      named.error().hint = "check the dataset's path in the config";
    return named.take_error();
  }
  if (!is_held || named->info.st_dev != at_root.st_dev) {
    return fail(
        Errc::Unavailable,
        printable(source.path.native()) + " is not on the volume mounted at " + printable(mount_point),
        "`spark-stage status` shows the volume");
  }
  source.device = at_root.st_dev;
  source.mount = mount_point;
  return root;
}

// A writer marks the superblock before any other write: while the superblock is unchanged since the mount,
// all data read is of one state.
Result<> check_unwritten(const std::string& device, std::uint64_t stamp) {
  auto now = mounts::probe_superblock(device);
  if (!now) {
    Error away = std::move(now.error());
    away.kind = Errc::Unavailable;  // the volume is away, so its staging waits for it
    away.number = 0;
    away.is_of_source = true;
    return fail(std::move(away));
  }
  if (now->stamp == stamp && !now->being_written) return {};
  return fail(Errc::Unavailable, "another host has begun to write the volume while it was read",
              "it is copied again from the volume's next state");
}

// "volume": {"device"?, "stamp", "doubtful", "generation"}; see staging::Source.
void read_volume(const json::object& request, staging::Source& source) {
  const json::object* volume = get_object(request, "volume");
  if (volume == nullptr) return;
  source.is_doubtful = get_bool(*volume, "doubtful").value_or(false);
  source.generation = get_count(*volume, "generation");
  const std::string device = get_text(*volume, "device");
  if (device.empty() || source.is_doubtful) return;
  const auto stamp = static_cast<std::uint64_t>(get_int(*volume, "stamp").value_or(0));
  source.state = "superblock " + std::to_string(stamp);
  source.within = source.path.lexically_relative(get_text(request, "mount"));
  source.is_still_so = [device, stamp] { return check_unwritten(device, stamp); };
}

tl::unexpected<Error> fail_with_next_step(const Error& error, const staging::Source& source) {
  const bool is_volume_path = source.dataset.find(':') != std::string::npos;
  return fail(with_next_step(error, source.path, is_volume_path ? PathFrom::Request : PathFrom::Config));
}

staging::ProgressSink sink_for(const ProgressLine& progress) {
  return [&progress](const staging::CopyProgress& now) { progress(to_json(now)); };
}

double rate(Bytes bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds : 0;
}

// A short line is not mixed with another thread's, so the names are the first ones.
json::array first_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8, kLongest = 100;
  json::array first;
  for (const std::string& name : names) {
    if (first.size() == kMost) break;
    first.emplace_back(name.size() > kLongest ? printable(name.substr(0, kLongest)) + "…" : name);
  }
  if (names.size() > kMost) first.emplace_back("and " + std::to_string(names.size() - kMost) + " more");
  return first;
}

json::object walk_to_json(const staging::Walked& walked) {
  const bool is_one_file =
      !walked.entries.empty() && walked.entries.front().type != staging::EntryType::Folder;
  return {{"walked", true},
          {"one_file", is_one_file},
          {"skipped", first_of(walked.skipped)},
          {"outside_links", walked.outside_links},
          {"warnings", first_of(walked.warnings)}};
}

json::object staged_to_json(const staging::Staged& staged) {
  const staging::CopyReport& report = staged.report;
  json::array evicted;
  for (const staging::Evicted& one : staged.evicted) {
    evicted.push_back(json::object{{"name", one.dataset}, {"bytes", one.bytes}});
  }
  const Bytes taken_over = report.resumed_bytes + report.unchanged_bytes;
  const bool cached = staged.served_from == staging::ServedFrom::Cache;
  json::object result{
      {"name", staged.dataset},
      {"state", "ready"},
      {"path", staged.path.native()},
      {"served_from", cached ? "cache" : "copied"},
      {"generation", staged.generation},
      {"bytes", report.bytes},
      {"files", report.files},
      {"seconds", report.seconds},
      {"bytes_per_second",
       cached ? 0 : rate(report.bytes - std::min(report.bytes, taken_over), report.seconds)},
      {"hash", report.hash},
      {"memfree_drop_bytes", report.memfree_drop_bytes},
      {"resumed_bytes", report.resumed_bytes},
      {"bytes_from",
       json::object{
           {"volume",
            cached ? 0 : report.bytes - std::min(report.bytes, taken_over + report.bytes_from_peers)},
           {"peers", report.bytes_from_peers}}},
      {"unchanged_bytes", report.unchanged_bytes},
      {"skipped", json::value_from(report.skipped)},
      {"outside_links", report.outside_links},
      {"copied_links", report.copied_links},
      {"warnings", json::value_from(report.warnings)},
      {"evicted", std::move(evicted)},
      {"held", staged.is_held},
      {"reserved", staged.is_reserved},
      {"blocked_by", json::value_from(staged.blocked_by)}};
  add_model(staged.model, result);
  return result;
}

}  // namespace

// {"cache", "knows_catalog"?, "dataset", "path", "mount", "mounted", "away"?, "at_peers"?: only other hosts
// have it, "volume"?, "origin"?, "definition"?, "accept_source"?, "exclude", "links", "model"?: {"name",
// "revision", "include", "check", "expect"}, "max_rate", "finish_in_ms"?, "prefetch", "only_cached", "task",
// "hold":
// {"id"}, "in_use":
// [{"dataset", "generation"}…], "prefetching": [NAME…], "view"?: number of its live view} → the API's
// object of `stage --json`; with "reserved" or "blocked_by" if it is not staged. The first progress means
// that the source is being examined; {"walked", "one_file", "skipped", "outside_links", "warnings"} what
// the walk found and left out; {"readable", "bytes_total", "files_total"} that a view may begin;
// {"no_view": why} that there can be none; {"view_failed": why, "whole"} that a file of it, or all of it,
// will not come, and with "again" that an earlier attempt has said so of a file.
Result<json::object> stage_verb(const json::object& request, const ProgressLine& progress) {
  staging::Source source;
  source.dataset = get_text(request, "dataset");
  source.path = get_text(request, "path");
  source.only_cached = get_bool(request, "only_cached").value_or(false);
  source.is_away = get_bool(request, "away").value_or(false);
  source.origin = get_text(request, "origin");
  source.definition = get_text(request, "definition");
  source.is_prefetch = get_bool(request, "prefetch").value_or(false);
  source.task = get_count(request, "task");
  if (const json::object* hold = get_object(request, "hold")) source.hold = get_text(*hold, "id");
  read_volume(request, source);
  source.answers_for = ::getppid();  // the daemon: it knows whether this copy resumes later
  source.exclude = get_strings(request, "exclude");
  source.prefetching = get_strings(request, "prefetching");
  for (const json::object& one : objects_in(request, "in_use"))
    source.in_use.push_back({get_text(one, "dataset"), get_count(one, "generation")});
  source.model = model_of(request);
  const auto open = open_cache_to_stage(request);
  if (!open) return open.take_error();
  const auto held = hold_mount(source, request, open->host);
  if (!held) return fail_with_next_step(held.error(), source);
  std::string warning;
  const auto exchange = exchange_of(request, source.dataset, warning);
  std::vector<std::string> from;
  if (get_bool(request, "at_peers").value_or(false)) {
    source.path = "peers:" + source.dataset;  // for messages
    if (!exchange) return fail(Errc::Unavailable, warning);
    auto found = fleet::find_elsewhere(source, *open->cache, *exchange);
    if (!found) return found.take_error();
    from = std::move(*found);
  }
  progress(to_json(staging::CopyProgress{}));
  source.walked = [&progress](const staging::Walked& walked) { progress(walk_to_json(walked)); };
  const json::object& settings = *get_object(request, "cache");
  staging::CopyOptions options;
  read_engine(settings, options);
  options.exclude = source.exclude;
  const bool accepts_source = get_bool(request, "accept_source").value_or(false);
  options.replaces = accepts_source ? staging::Replaces::Anything : staging::Replaces::SameSource;
  options.links = links_from_string(get_text(request, "links"));
  options.rate.most = get_count(request, "max_rate");
  if (const auto left = get_int(request, "finish_in_ms"))
    options.rate.finish_by = std::chrono::steady_clock::now() + Duration(*left);
  options.exchange = exchange.get();
  std::optional<staging::CopyViewer> viewer;
  const auto view = get_count(request, "view");
  if (view != 0 && !source.model && !source.is_doubtful) {
    const std::string state_dir = get_text(settings, "state_dir");
    const staging::CacheFolder folder(get_text(settings, "path"));
    staging::ViewReports reports;
    reports.begun = [&progress](Bytes bytes, std::uint64_t files) {
      progress({{"readable", true}, {"bytes_total", bytes}, {"files_total", files}});
    };
    constexpr std::size_t kLongest = 1000;  // a short line is not mixed with another thread's
    reports.none = [&progress](const std::string& why) { progress({{"no_view", why.substr(0, kLongest)}}); };
    reports.failed = [&progress](const std::string& why, bool is_whole) {
      progress({{"view_failed", why.substr(0, kLongest)}, {"whole", is_whole}});
    };
    reports.had_failed = [&progress](const std::string& why) {
      progress({{"view_failed", why.substr(0, kLongest)}, {"again", true}});
    };
    viewer.emplace(staging::view_place(SystemRoot{}, state_dir, staging::view_name(source.dataset, view)),
                   source.dataset, folder.partial(source.dataset) / "data", source.is_still_so,
                   std::move(reports));
    options.viewer = &*viewer;
    options.view = view;
  }
  auto staged = open->cache->stage(source, options, sink_for(progress), kNeverStopped);
  if (!staged) return fail_with_next_step(staged.error(), source);
  if (exchange) {
    exchange->published();
    for (std::string& said : exchange->warnings()) staged->report.warnings.push_back(std::move(said));
  }
  if (!warning.empty()) staged->report.warnings.push_back(std::move(warning));
  if (viewer && viewer->error())
    staged->report.warnings.push_back("it could not be read before it was complete: " +
                                      viewer->error()->message());
  json::object result = staged_to_json(*staged);
  if (source.elsewhere) result["from"] = json::array(from.begin(), from.end());
  if (exchange) result["read_because"] = exchange->read_because();
  return result;
}

// {"cache", "dataset", "sha256"} → {"dataset", "bytes", "files", "seconds", "sha256_files"}
Result<json::object> verify_verb(const json::object& request, const ProgressLine& progress) {
  const auto open = open_cache(request);
  if (!open) return open.take_error();
  const std::string dataset = get_text(request, "dataset");
  staging::CopyOptions options;
  options.sha256 = get_bool(request, "sha256").value_or(false);
  return open->cache->verify(dataset, options, sink_for(progress), kNeverStopped)
      .map([&](const staging::CopyReport& report) {
        return json::object{{"dataset", dataset},
                            {"bytes", report.bytes},
                            {"files", report.files},
                            {"seconds", report.seconds},
                            {"sha256_files", report.sha256_files}};
      });
}

// {"cache", "dataset"} → {"dataset", "freed_bytes"}
Result<json::object> evict_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto open = open_cache(request);
  if (!open) return open.take_error();
  const std::string dataset = get_text(request, "dataset");
  return open->cache->evict(dataset).map([&](Bytes freed) {
    return json::object{{"dataset", dataset}, {"freed_bytes", freed}};
  });
}

// {"cache", "knows_catalog"?} → {}. A dataset's failure is recorded in its row. Reports once, as progress,
// that the catalog is correct.
Result<json::object> recover_verb(const json::object& request, const ProgressLine& progress) {
  const auto open = open_cache_to_recover(request);
  if (!open) return open.take_error();
  const auto looked_over = [&] { progress({{"looked_over", true}}); };
  if (auto recovered = open->cache->recover(looked_over); !recovered) return recovered.take_error();
  const auto path = get_text(*get_object(request, "cache"), "path");
  const auto settled = staging::settle_in(path);
  // Copies of a full drive are served all the same.
  if (!settled && settled.error().kind != Errc::NoSpace) return settled.take_error();
  return json::object{};
}

}  // namespace spark::workers
