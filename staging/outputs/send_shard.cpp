#include "staging/outputs/send_shard.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/files/quiet_source.hpp"
#include "staging/files/times.hpp"
#include "staging/files/tree.hpp"
#include "staging/outputs/begun_join.hpp"
#include "staging/outputs/published_copies.hpp"
#include "staging/outputs/published_with.hpp"

namespace spark::staging {
namespace {

class SendShard {
 public:
  SendShard(const ShardedCheckpoint& checkpoint, const OwnShard& own, unsigned nodes)
      : checkpoint_(checkpoint), own_(own), nodes_(nodes) {}

  // Hosts copy their shards side by side, with a lock that excludes the one that joins them: it moves the
  // shards' files, gives the checkpoint its name and then its manifest, and deletes the shards. In between
  // a shard is incomplete, and the checkpoint seems to be someone else's. So both are looked at with the lock
  // alone, and only after a join that was interrupted there has been completed.
  Result<SentShard> go(CopyOptions options, const ProgressSink& progress, const StopFlag& stop) {
    if (auto is_folder = check_is_folder(); !is_folder) return is_folder.take_error();
    // No lock: without shards no join is in progress, and a published checkpoint gets none again.
    std::error_code error;
    if (!std::filesystem::exists(checkpoint_.shards(), error)) {
      const Comparing all{Reads::All, options, progress, stop};
      const auto published = is_published(all);
      if (!published) return published.take_error();
      if (*published) return without_copy({true, {}});
      if (auto may_send = check_other_files({}, all); !may_send) return may_send.take_error();
      auto newer = replaced_by();
      if (!newer) return newer.take_error();
      if (!newer->empty()) return replaced(std::move(*newer));
    }
    if (auto made = make_shards(checkpoint_, own_.attempt.host); !made) return made.take_error();
    auto lock = lock_shards(checkpoint_.shards(), Holders::Many);
    if (!lock) return lock.take_error();
    if (!*lock) return without_copy({});
    const auto begun = hosts_of_begun_join(checkpoint_);
    if (!begun) return begun.take_error();
    if (!begun->empty()) return complete_join(std::move(*lock), options, progress, stop);
    const Comparing now{has_shard(lock->path()) ? Reads::Small : Reads::All, options, progress, stop};
    const auto published = is_published(now);
    if (!published) return published.take_error();
    if (*published) return already_published(std::move(*lock));
    if (auto may_send = check_other_files(lock->path(), now); !may_send) return may_send.take_error();

    if (auto forgot = forget_other_attempt(lock->path(), own_.attempt.host, own_.attempt.text); !forgot)
      return forgot.take_error();
    options.earlier.replaced_in_two_steps = true;  // no program reads a shard before it is published
    auto report = copy(own_.source, lock->path() / own_.attempt.host, options, progress, stop);
    if (!report) return report.take_error();
    if (auto noted = note_attempt(lock->path(), own_.attempt.host, own_.attempt.text); !noted)
      return noted.take_error();
    const auto sent = server_time_of(Destination{lock->path(), own_.attempt.host}.manifest());
    ::unlink(sign_of(lock->path(), own_.attempt.host).c_str());
    *lock = {};
    auto joined = join_shards(checkpoint_, nodes_, own_.attempt);
    if (!joined) return joined.take_error();
    return SentShard{std::move(*report), std::move(*joined), {}, sent.value_or(0)};
  }

  // Called after a publication. If it fails, the next one deletes them.
  void remove_older(SentShard& sent) const {
    const auto removed =
        remove_older_shards(checkpoint_.folder, published_shards(sent.joined, own_), own_.on_removal);
    if (!removed) sent.warnings.push_back(printable(removed.error().message()));
  }

 private:
  const ShardedCheckpoint& checkpoint_;
  const OwnShard& own_;
  unsigned nodes_;

  Result<> check_is_folder() const {
    std::error_code error;
    if (!std::filesystem::is_regular_file(own_.source, error)) return {};
    return fail(Errc::Invalid,
                "sending " + printable(own_.source.native()) + " as one of " + std::to_string(nodes_) +
                    " hosts: it is a file, but a checkpoint of several hosts is a folder",
                "have each host save its files to a folder of that name; a checkpoint that one host saves is "
                "sent without `nodes` or `--nodes`");
  }

  // While it waits there for others, it is not in what is published, and is compared again and again.
  bool has_shard(const std::filesystem::path& shards) const {
    std::error_code error;
    return std::filesystem::exists(shards / own_.attempt.host, error);
  }

  // With everything of the state that is to be sent. What the source holds is looked at first: it may be the
  // rest of a rotation, or half of the next save, and all of that be there.
  Result<bool> is_published(const Comparing& comparing) const {
    auto published = is_published_with(checkpoint_, own_.source, comparing);
    if (!published) return published;
    if (auto is_same = check_state(comparing.options); !is_same) return is_same.take_error();
    return published;
  }

  // Also before a refusal: a source that has changed is the first thing to know.
  Result<> check_state(const CopyOptions& options) const {
    if (!options.complete_state) return {};
    const auto source = open_tree(own_.source);
    if (!source) return source.take_error();
    return check_still_complete(*source, *options.complete_state);
  }

  // Of one that is not published with what is here. `shards`: where another host may have begun it again; may
  // be empty.
  Result<> check_other_files(const std::filesystem::path& shards, const Comparing& compared) const {
    if (!own_.refuses_other_files || !own_.attempt.marker.empty()) return {};
    const auto earlier = earlier_copy({checkpoint_.folder, checkpoint_.name});
    if (!earlier) return fail(earlier.error());
    if (!*earlier) return {};
    const auto sent = shards.empty() ? Result<std::vector<PublishedCopy>>(std::vector<PublishedCopy>())
                                     : published_copies(shards);
    if (!sent) return {};  // one of them is being replaced
    const auto is_of_other = [&](const PublishedCopy& shard) { return shard.name != own_.attempt.host; };
    if (std::ranges::any_of(*sent, is_of_other)) return {};
    const Comparing all{Reads::All, compared.options, compared.progress, compared.stop};
    const auto has_all = compared.reads == Reads::All ? Result<bool>(false) : is_published(all);
    if (!has_all) return fail(has_all.error());
    if (*has_all) return {};  // the join of the shard finds it
    if (auto is_same = check_state(compared.options); !is_same) return is_same;
    return other_files_at(checkpoint_);
  }

  // Another host's copy may have been published, and the shards deleted, since they were looked at. If
  // another host has begun this checkpoint again, it may still be published.
  Result<std::string> replaced_by() const {
    if (own_.sent_ns == 0) return std::string();
    const auto begun = hosts_of_begun_join(checkpoint_);
    if (!begun) return begun.take_error();
    std::error_code error;
    if (!begun->empty() || std::filesystem::exists(checkpoint_.shards(), error) || error)
      return std::string();
    const auto copies = published_copies(checkpoint_.folder);
    if (!copies) return copies.take_error();
    std::string newer;
    for (const PublishedCopy& copy : *copies) {
      if (copy.name == checkpoint_.name) return std::string();
      const auto published = server_time_of(Destination{checkpoint_.folder, copy.name}.manifest());
      if (newer.empty() && published && *published >= own_.sent_ns) newer = copy.name;
    }
    return newer;
  }

  static SentShard replaced(std::string newer) {
    SentShard ended = without_copy({});
    ended.replaced_by = std::move(newer);
    return ended;
  }

  static SentShard without_copy(Joined joined) {
    SentShard nothing{{}, std::move(joined)};
    nothing.report.unchanged = true;
    return nothing;
  }

  // What this host has now may be newer than the shards that were joined.
  Result<SentShard> complete_join(LockedShards lock, const CopyOptions& options, const ProgressSink& progress,
                                  const StopFlag& stop) {
    lock = {};
    auto joined = join_shards(checkpoint_, nodes_, own_.attempt);
    if (!joined) return joined.take_error();
    if (!joined->is_published) return without_copy(std::move(*joined));
    return go(options, progress, stop);
  }

  SentShard already_published(LockedShards lock) {
    lock = {};
    SentShard sent = without_copy({true, {}});
    if (const auto removed = remove_published_shards(checkpoint_, own_.attempt); !removed)
      sent.warnings.push_back(printable(removed.error().message()));
    return sent;
  }
};

}  // namespace

PublishedShards published_shards(const Joined& joined, const OwnShard& own) {
  if (!joined.times.empty()) return {joined.times, true};
  struct stat info {};
  if (::stat(own.source.c_str(), &info) != 0) return {};
  return {{{own.attempt.host, nanoseconds(info.st_mtim)}}, false};
}

Result<SentShard> send_shard(const ShardedCheckpoint& checkpoint, const OwnShard& own, unsigned nodes,
                             const CopyOptions& options, const ProgressSink& progress, const StopFlag& stop) {
  SendShard sending(checkpoint, own, nodes);
  auto sent = sending.go(options, progress, stop);
  if (sent && sent->joined.is_published) sending.remove_older(*sent);
  return sent;
}

}  // namespace spark::staging
