// Outputs of jobs, sent to a volume.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "daemon/workers/missing_source.hpp"
#include "daemon/workers/verbs/as_user.hpp"
#include "daemon/workers/verbs/hold_volume.hpp"
#include "daemon/workers/verbs/verbs.hpp"
#include "daemon/workers/wire.hpp"
#include "staging/checkpoints/checkpoint_name.hpp"
#include "staging/copy/copy.hpp"
#include "staging/files/quiet_source.hpp"
#include "staging/files/tree.hpp"
#include "staging/outputs/checkpoints.hpp"
#include "staging/outputs/destination_folder.hpp"
#include "staging/outputs/pointer.hpp"
#include "staging/outputs/published_copies.hpp"
#include "staging/outputs/published_with.hpp"
#include "staging/outputs/send_shard.hpp"

namespace spark::workers {
namespace {

staging::CopyOptions options_of(const json::object& request) {
  staging::CopyOptions options;
  read_engine(request, options);
  options.rate.most = get_count(request, "max_rate");
  options.needs_quiet_source = true;
  options.complete_state = get_int(request, "written");
  // Entries of an output's folder that are links are no checkpoints. A user may name one.
  options.refuses_linked_source = !get_text(request, "rule").empty();
  options.earlier.times = staging::FileTimes::Ignored;
  options.earlier.may_lack_its_name = true;
  options.rate.leaves_drive_to_others = !get_bool(request, "hurries").value_or(false);
  return options;
}

// The engine's progress describes a staging, which writes to the local drive.
json::object show_progress(staging::CopyProgress progress) {
  if (progress.bottleneck == "local drive") {
    progress.bottleneck = "volume";
  } else if (progress.bottleneck == "source") {
    progress.bottleneck = "local drive";
  }
  return to_json(progress);
}

double rate_of(const staging::CopyReport& report) {
  const Bytes kept = std::min(report.bytes, report.resumed_bytes + report.unchanged_bytes);
  const bool copied = !report.unchanged && report.seconds > 0;
  return copied ? static_cast<double>(report.bytes - kept) / report.seconds : 0;
}

json::object report_to_json(const staging::CopyReport& report, const std::filesystem::path& path) {
  return {{"state", "ready"},
          {"path", present_path(path).native()},  // it may be held_path() of the folder
          {"served_from", report.unchanged ? "unchanged" : "copied"},
          {"bytes", report.bytes},
          {"files", report.files},
          {"seconds", report.seconds},
          {"bytes_per_second", rate_of(report)},
          {"hash", report.hash},
          {"memfree_drop_bytes", report.memfree_drop_bytes},
          {"resumed_bytes", report.resumed_bytes},
          {"skipped", json::value_from(report.skipped)},
          {"warnings", json::value_from(report.warnings)}};
}

// A copy on a volume is read on other hosts, where such a link leads nowhere.
Result<> check_links(const std::filesystem::path& source) {
  const std::string broken = staging::totals_of(source).broken_link;
  if (broken.empty()) return {};
  return fail(Errc::Refused,
              "the symbolic link " + printable(broken) +
                  " leads to nothing, or out of the source: the copy would lack that file",
              "replace it by the file that it should name");
}

using Sent = Result<json::object>;

// A result with the state "failed": the daemon ends the request with this error, without a retry.
Sent final_error(const Error& error) {
  return json::object{{"state", "failed"}, {"error", to_json(error)}};
}

// As check_still_complete() compares it: of what a link leads to.
staging::TreeTotals state_of(const std::filesystem::path& source) {
  const auto tree = staging::open_tree(source);
  return tree ? staging::totals_of(tree->root()) : staging::TreeTotals();
}

// The copy on the volume may be the only whole one.
Error half_deleted(const std::string& source, const std::string& lost) {
  return {Errc::Refused,
          printable(source) + " has lost " + printable(lost) +
              " since it was sent, as in an interrupted deletion: the copy on the volume stays as it is",
          "delete the rest of it here; or, if it is right, delete the copy on the volume"};
}

// It may be there already, as after a restart of the daemon that had just published it: whatever has become
// of the source since.
std::optional<staging::CopyReport> sent_before(const json::object& request,
                                               const std::filesystem::path& path) {
  const auto accepted = get_int(request, "written");
  return accepted ? staging::published_in_state(path, *accepted) : std::nullopt;
}

Sent send_whole(const json::object& request, const std::filesystem::path& path,
                const staging::ProgressSink& sink, const ProgressLine& progress) {
  const bool is_output = !get_text(request, "rule").empty();  // which sends no older checkpoint again
  const auto unproven = is_output ? staging::remove_unfinished_copies(path.parent_path(), path.filename())
                                  : Result<std::vector<std::string>>(std::vector<std::string>());
  if (!unproven) return unproven.take_error();
  const auto lost =
      is_output ? staging::lost_file(path, get_text(request, "source")) : Result<std::string>("");
  if (!lost) return lost.take_error();
  if (!lost->empty()) {  // the job's rotation deletes it
    const auto there = sent_before(request, path);
    return there ? Sent(report_to_json(*there, path))
                 : final_error(half_deleted(get_text(request, "source"), *lost));
  }
  staging::CopyOptions options = options_of(request);
  // `stage-out extra.gguf VOLUME:models` is meant to go into models. A trainer may save either.
  if (!is_output) {
    const bool accepts_another = get_bool(request, "accept_source").value_or(false);
    if (!accepts_another) options.replaces = staging::Replaces::SameType;
    const auto other = staging::replaced_source(path, get_text(request, "source"), accepts_another);
    if (!other) return other.take_error();
    if (!other->empty())
      progress({{"deletes", "the copy of " + printable(*other)},
                {"because", "a copy of " + get_shown(request, "source") + " replaces it"}});
  }
  auto report = staging::copy(get_text(request, "source"), path, options, sink, kNeverStopped);
  const bool has_changed =
      !report && (report.error().kind == Errc::Mismatch || report.error().kind == Errc::NotFound);
  const auto there = has_changed ? sent_before(request, path) : std::nullopt;
  if (there) report = *there;
  if (report) {
    for (const std::string& sentence : *unproven) report->warnings.push_back(printable(sentence));
    return report_to_json(*report, path);
  }
  if (staging::was_taken_over(report.error())) return final_error(report.error());
  return report.take_error();
}

// Nothing on the volume tells which of the two happened, so it is not called a success.
Error replaced(const std::string& name, const std::string& newer) {
  return {Errc::Failed,
          printable(newer) + " is published, and this host's shard of " + printable(name) +
              ", sent before, was deleted: " + printable(newer) +
              " replaced it before all hosts had sent their shards, or it was published and is already "
              "deleted by `--keep`",
          "if you still need it, send it again on all hosts"};
}

// Only a publication deletes such shards, and it needs room. Which of them will still be completed, nobody
// here knows.
Error with_begun(Error error, const staging::ShardedCheckpoint& own) {
  if (error.kind != Errc::NoSpace) return error;
  std::string others;
  for (const std::string& name : names_in_folder(own.folder)) {
    if (!name.ends_with(staging::kShardsSuffix) || own.shards().filename() == name) continue;
    others += (others.empty() ? "" : ", ") + printable(name) + " (" +
              format_bytes(staging::totals_of(own.folder / name).bytes) + ")";
  }
  if (!others.empty())
    error.hint = "beside it are shards of checkpoints that not all hosts have sent: " + others +
                 "; delete those whose job is gone, or free space elsewhere";
  return error;
}

// This host's part of a checkpoint written by `nodes` hosts; it is published with the last part. The daemon
// sends "shard_sent_ns" of a result that was "waiting" with its next request.
Sent send_shard(const json::object& request, const std::filesystem::path& path, unsigned nodes,
                const staging::ProgressSink& sink, const ProgressLine& progress) {
  const staging::ShardedCheckpoint checkpoint{path.parent_path(), path.filename()};
  const staging::OwnShard own{get_text(request, "source"),
                              {host_name(), get_text(request, "marker"), get_text(request, "attempt")},
                              get_int(request, "shard_sent_ns").value_or(0),
                              [&](const std::string& name) {
                                progress({{"deletes", "the shards of " + printable(name)},
                                          {"because",
                                           "a later checkpoint is published, and some host never "
                                           "sent its shard of this one"}});
                              },
                              get_text(request, "rule").empty()};
  const auto sent = staging::send_shard(checkpoint, own, nodes, options_of(request), sink, kNeverStopped);
  if (!sent) return fail(with_begun(sent.error(), checkpoint));
  if (!sent->replaced_by.empty()) return final_error(replaced(path.filename(), sent->replaced_by));
  json::object answer = report_to_json(sent->report, path);
  json::array& warnings = answer["warnings"].as_array();
  for (const std::string& warning : sent->warnings) warnings.emplace_back(warning);
  if (!sent->joined.is_published) {
    answer["state"] = "waiting";
    answer["shard_sent_ns"] = sent->shard_sent_ns;
  }
  answer["hosts"] = json::value_from(sent->joined.hosts);
  if (!sent->joined.others.empty()) answer["other_attempts"] = json::value_from(sent->joined.others);
  return answer;
}

}  // namespace

// {"source", "uid", "on_drive"?} → {"written", "identity"?}: makes the file or folder durable, with the
// permissions of "uid", and answers the state of it that is (TreeTotals::written and ::identity). Without it,
// a power cut may leave files short, and the resumed copy would publish them. "on_drive": the "identity" of
// an earlier answer since the start of the host; what still has it is not flushed again. A source that can't
// be sent is left to "stage-out", which says why; its state is 0, that of nothing.
Result<json::object> flush_source_verb(const json::object& request, const ProgressLine& /*progress*/) {
  if (auto user = become_user(static_cast<uid_t>(get_int(request, "uid").value_or(0))); !user)
    return user.take_error();
  const std::filesystem::path source = get_text(request, "source");
  struct stat info {};
  const bool is_source =
      ::stat(source.c_str(), &info) == 0 && (S_ISDIR(info.st_mode) || S_ISREG(info.st_mode));
  if (!is_source) return json::object{{"written", 0}};
  const staging::TreeTotals before = state_of(source);
  const auto known = get_int(request, "on_drive");
  if (known && *known == before.identity && *known != 0)
    return json::object{{"written", before.written}, {"identity", before.identity}};
  if (auto flushed = flush_file_system(source); !flushed) return flushed.take_error();
  const staging::TreeTotals now = state_of(source);  // an NFS server sets its times when it gets the data
  if (now.written == before.written && now.identity == before.identity)
    return json::object{{"written", now.written}, {"identity", now.identity}};
  if (auto flushed = flush_file_system(source); !flushed) return flushed.take_error();
  return json::object{{"written", now.written}};
}

// {"source", "written", "root", "mount", "mounted", "path", "uid", "nodes", "marker", "attempt", "rule",
// "max_rate", "accept_source", "hurries", "shard_sent_ns", "threads", "depth", "chunk"} → the result of
// `stage-out --json`, and its "hosts" and "other_attempts"; or
// {"state": "waiting", "hosts", "shard_sent_ns"…} while shards of some of the "nodes" are missing; or
// {"state": "failed", "error"} (final_error). "hosts": those with a shard. "written": TreeTotals::written of
// the source when it was found complete, or the request was accepted: another state is not sent. "marker": a
// file that is the same in all shards of one attempt of the job; may be empty. "attempt": SameAttempt::text.
// "rule": of the output that it belongs to, which has a pointer to its highest checkpoint, or empty.
// "shard_sent_ns": of an earlier answer, or 0. "root": path of the volume; "mount": its mount point, where it
// must be mounted, empty on a simulated host; "path": below "root". Reads and writes with the permissions of
// "uid". Says {"published": true} once the copy is published: the rest may hang or fail. A pointer that can't
// be moved now is a warning, as the next look of the output moves it. Says {"deletes": TEXT, "because":
// SENTENCE} before it deletes older shards, or replaces a copy of another path.
Result<json::object> stage_out_verb(const json::object& request, const ProgressLine& progress) {
  if (!get_int(request, "written"))
    return fail(Errc::Invalid, "the state of " + get_shown(request, "source") + " was not recorded");
  const std::filesystem::path path = get_text(request, "path");
  const auto opened = open_destination(request, path.parent_path());
  if (!opened) return opened.take_error();
  if (auto links = check_links(get_text(request, "source")); !links) return links.take_error();
  const auto sink = [&](const staging::CopyProgress& now) { progress(show_progress(now)); };
  const auto nodes = static_cast<unsigned>(get_count(request, "nodes"));
  auto sent = nodes > 1 ? send_shard(request, opened->folder.path / path.filename(), nodes, sink, progress)
                        : send_whole(request, opened->folder.path / path.filename(), sink, progress);
  if (!sent || get_string(*sent, "state") != "ready") return sent;
  progress({{"published", true}});
  json::object answer = std::move(*sent);
  const auto rule = staging::completeness_named(get_text(request, "rule"));
  const auto moved = rule ? staging::point_at_highest(opened->folder.path, *rule) : Result<>();
  if (!moved) answer["warnings"].as_array().emplace_back(printable(moved.error().message()));
  return answer;
}

// {"root", "mount", "mounted", "path", "uid"?} → {"bytes", "files", "seconds", "sha256_files", "hash"}: the
// copy published there equals its manifest. With the rights of "uid", since the answer tells what is in the
// files; without, for root, of the copy's owner.
Result<json::object> verify_output_verb(const json::object& request, const ProgressLine& progress) {
  const auto held = hold_volume(request, false);
  if (!held) return held.take_error();
  const std::filesystem::path path =
      std::filesystem::path(get_text(request, "root")) / get_text(request, "path");
  const auto uid = user_of(request, path, *held);
  if (!uid) return fail(with_next_step(uid.error(), path, PathFrom::Request));
  if (auto user = become_user(*uid); !user) return user.take_error();
  const auto sink = [&](const staging::CopyProgress& now) { progress(show_progress(now)); };
  auto verified = staging::verify_published(path, options_of(request), sink, kNeverStopped);
  if (!verified) return fail(with_next_step(verified.error(), path, PathFrom::Request));
  return verified.map([&](const staging::CopyReport& report) {
    return json::object{{"bytes", report.bytes},
                        {"files", report.files},
                        {"seconds", report.seconds},
                        {"sha256_files", 0},
                        {"hash", report.hash}};
  });
}

// {"folder"} → {"records": [{"file", "content"}…]}: the JSON files in it. One that can't be read has "error"
// instead of "content": it is not the same as none.
Result<json::object> recorded_verb(const json::object& request, const ProgressLine& /*progress*/) {
  json::array records;
  std::error_code error;
  for (const std::filesystem::path& file : list_folder(get_text(request, "folder"), error)) {
    if (file.extension() != ".json") continue;
    const auto text = read_file(file);
    auto content = text ? parse_json_object(*text) : Result<json::object>(fail(text.error()));
    json::object record{{"file", file.native()}};
    if (content) {
      record["content"] = std::move(*content);
    } else {
      record["error"] = printable(content.error().message());
    }
    records.push_back(std::move(record));
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return fail_errno(error.value(), "reading " + get_shown(request, "folder"));
  return json::object{{"records", std::move(records)}};
}

// {"file"} → {}: removes a record written by "record".
Result<json::object> forget_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const std::filesystem::path file = get_text(request, "file");
  if (::unlink(file.c_str()) != 0 && errno != ENOENT)
    return fail_errno(errno, "removing " + printable(file.native()));
  return empty_answer(flush_folder(file.parent_path()));
}

}  // namespace spark::workers
