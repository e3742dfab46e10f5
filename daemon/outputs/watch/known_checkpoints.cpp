#include "daemon/outputs/watch/known_checkpoints.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/text.hpp"
#include "daemon/log.hpp"
#include "staging/checkpoints/checkpoint_name.hpp"

namespace spark::outputs {
namespace {

std::optional<uid_t> user_in(const json::object& record) {
  const auto uid = get_int(record, "uid");
  const bool is_user = uid && *uid >= 0 && *uid < std::numeric_limits<uid_t>::max();
  return is_user ? std::optional(static_cast<uid_t>(*uid)) : std::nullopt;
}

}  // namespace

KnownCheckpoints::KnownCheckpoints(const Context& context, const config::Output& output)
    : context_(context), output_(output), saved_(context.executor) {}

std::string KnownCheckpoints::subject() const {
  return "output " + output_.name;
}

std::string KnownCheckpoints::file() const {
  return (context_.folder / "outputs" / (output_.name + ".json")).native();
}

asio::awaitable<void> KnownCheckpoints::load() {
  if (has_loaded_) co_return;
  json::object folder{{"folder", (context_.folder / "outputs").native()}};
  const auto answer =
      co_await context_.runner.ask(subject(), "recorded", std::move(folder), context_.timings.record);
  if (!answer) co_return log::survived(answer.error());
  const json::object* own = nullptr;
  for (const json::object& record : objects_in(*answer, "records")) {
    if (get_string(record, "file") == file()) own = &record;
  }
  const json::object* content = own == nullptr ? nullptr : get_object(*own, "content");
  if (own != nullptr && content == nullptr) {
    co_return log::survived(
        {Errc::Failed, subject() + ": reading " + file() + ": " + get_text(*own, "error"),
         "delete it if it is damaged; local checkpoints from before the boot then no longer count"});
  }
  has_loaded_ = true;
  if (content == nullptr) co_return;
  const auto states = [&](const char* key) { return staging::states_from_json(*content, key); };
  recorded_ = {states("flushed"),
               states("sent"),
               states("unproven"),
               states("shards"),
               whole_from_json(get_object(*content, "whole")),
               {get_text(*content, "mount"), user_in(*content)},
               get_text(*content, "path")};
  Known noted = std::exchange(known_, recorded_);
  for (const auto& [name, changed] : noted.sent) known_.sent[name] = changed;
  for (const auto& [name, changed] : noted.shards) known_.shards[name] = changed;
}

bool KnownCheckpoints::is_of_this_folder() const {
  return known_.path.empty() || known_.path == output_.path.native();
}

std::optional<uid_t> KnownCheckpoints::owner() const {
  return is_of_this_folder() ? known_.folder.owner : std::nullopt;
}

std::string KnownCheckpoints::unmounted(const Folder& now, const std::vector<LocalCheckpoint>& local) {
  const std::string& recorded = known_.folder.mount;
  const bool is_known = is_of_this_folder() && !recorded.empty() && !now.mount.empty();
  const bool is_any_gone = std::ranges::any_of(known_.flushed, [&](const auto& one) {
    return find_named(local, one.first) == nullptr && !was_sent(one.first, one.second);
  });
  if (is_known && is_any_gone && now.mount != recorded) return recorded;
  folder_ = now;
  return "";
}

bool KnownCheckpoints::was_sent(const std::string& name, std::int64_t written) const {
  const auto sent = known_.sent.find(name);
  return sent != known_.sent.end() && sent->second == written;
}

std::string KnownCheckpoints::unsent_above(const std::vector<PublishedCheckpoint>* published) const {
  if (!is_of_this_folder()) return "";
  for (const auto& [name, written] : known_.flushed) {
    if (published != nullptr && published->empty()) return name;
    if (was_sent(name, written)) continue;
    if (published == nullptr || staging::may_be_above(name, published->front().name)) return name;
  }
  return "";
}

void KnownCheckpoints::mark_remnants(std::vector<LocalCheckpoint>& local) const {
  for (LocalCheckpoint& one : local) {
    const WholeCheckpoint* whole = whole_of(one);
    if (!one.incomplete.empty() || whole == nullptr || !whole->has_lost_files(one)) continue;
    one.is_unproven = true;  // the job may have removed a file on purpose
    one.incomplete =
        "it has lost files since it was complete, as in an interrupted deletion; if it is right, send it "
        "with `spark-stage stage-out " +
        printable((output_.path / one.name).native()) + " VOLUME:PATH`";
  }
}

const WholeCheckpoint* KnownCheckpoints::whole_of(const LocalCheckpoint& one) const {
  const auto known = known_.whole.find(one.name);
  return known != known_.whole.end() && known->second.is_of(one) ? &known->second : nullptr;
}

std::map<std::string, WholeCheckpoint> KnownCheckpoints::whole_from_json(const json::object* object) {
  std::map<std::string, WholeCheckpoint> all;
  for (const auto& [name, value] : object == nullptr ? json::object() : *object)
    all[std::string(name)] = WholeCheckpoint::from_json(value);
  return all;
}

// Of each checkpoint that is as it was recorded, its newest write instead of its newest change.
Changes KnownCheckpoints::converted(Changes recorded, const std::vector<LocalCheckpoint>& local) const {
  for (const LocalCheckpoint& one : local) {
    const auto known = recorded.find(one.name);
    if (known != recorded.end() && known->second == one.changed_ns) known->second = one.written;
  }
  return recorded;
}

asio::awaitable<void> KnownCheckpoints::remember(SteadyTime begun, const std::vector<LocalCheckpoint>& local,
                                                 const std::vector<PublishedCheckpoint>* published) {
  const bool is_first = !looked_;
  if (!is_first && begun < *looked_) co_return;
  looked_ = begun;
  auto before = std::exchange(since_, {});
  for (const LocalCheckpoint& one : local) {
    const auto known = before.find(one.name);
    const bool is_same = known != before.end() && known->second.written == one.written;
    Since& since = since_[one.name];
    since =
        is_same ? known->second : Since{one.written, context_.clock.steady(), one.is_in_future && is_first};
  }
  if (!has_loaded_) co_return;
  const auto has = [](const Changes& changes, const LocalCheckpoint& one) {
    const auto found = changes.find(one.name);
    return found != changes.end() && found->second == one.written;
  };
  const Known now{converted(known_.flushed, local), converted(known_.sent, local),
                  converted(known_.unproven, local)};
  Known next;
  // Of several hosts also those of one that is not here at the moment: the job may delete it and save it
  // again, or do so after keep_local has deleted it. What is on the volume then is another state.
  const auto published_step =
      published != nullptr && !published->empty() ? staging::step_of(published->front().name) : std::nullopt;
  const auto keep_later = [&](const Changes& known, Changes& kept) {
    for (const auto& [name, written] : known) {
      const bool is_there = published != nullptr && find_named(*published, name) != nullptr;
      if (output_.nodes > 1 && (is_there || staging::step_of(name) >= published_step)) kept[name] = written;
    }
  };
  keep_later(known_.shards, next.shards);
  keep_later(now.sent, next.sent);
  for (const LocalCheckpoint& one : local) {
    if (const auto known = now.sent.find(one.name); known != now.sent.end()) next.sent.insert(*known);
    const WholeCheckpoint* whole = whole_of(one);
    if (whole != nullptr) next.whole[one.name] = *whole;
    if (one.incomplete.empty() && whole == nullptr) next.whole[one.name] = WholeCheckpoint::of(one);
    if (one.incomplete.empty() && whole != nullptr) next.whole[one.name].grow(one);
    const bool was_flushed = has(now.flushed, one);
    const bool was_unproven = since_[one.name].is_unproven || has(now.unproven, one);
    if (!was_flushed && (one.stays_unproven || was_unproven)) next.unproven[one.name] = one.written;
    // One that was flushed may be complete again: DeepSpeed empties `latest` before it writes it.
    if (!one.incomplete.empty() && !was_flushed) continue;
    next.flushed[one.name] = one.written;
    if (!one.incomplete.empty() || published == nullptr || !is_published(output_, one, *published)) continue;
    const auto shard = known_.shards.find(one.name);
    // Sent before this was recorded, or manually, or published by another host with this one's shard.
    const std::int64_t sent = output_.nodes > 1 ? one.written : find_named(*published, one.name)->written;
    next.sent.emplace(one.name, shard == known_.shards.end() ? sent : shard->second);
    next.shards.erase(one.name);
  }
  if (!next.flushed.empty()) next.folder = folder_;
  if (!next.flushed.empty()) next.path = output_.path.native();
  known_ = std::move(next);
  co_await save();
}

asio::awaitable<void> KnownCheckpoints::save() {
  // One at a time: the older of two would replace the newer.
  while (is_saving_) co_await saved_.wait();
  if (!has_loaded_ || known_ == recorded_) co_return;
  is_saving_ = true;
  Known saving = known_;
  json::object content{{"flushed", staging::states_to_json(saving.flushed)},
                       {"sent", staging::states_to_json(saving.sent)}};
  json::object wholes;
  if (!saving.shards.empty()) content["shards"] = staging::states_to_json(saving.shards);
  if (!saving.unproven.empty()) content["unproven"] = staging::states_to_json(saving.unproven);
  for (const auto& [name, whole] : saving.whole) wholes[name] = to_message(whole);
  if (!wholes.empty()) content["whole"] = std::move(wholes);
  if (!saving.folder.mount.empty()) content["mount"] = saving.folder.mount;
  if (saving.folder.owner) content["uid"] = *saving.folder.owner;
  if (!saving.path.empty()) content["path"] = saving.path;
  json::object record{{"file", file()}, {"content", std::move(content)}};
  const auto saved =
      co_await context_.runner.ask(subject(), "record", std::move(record), context_.timings.record);
  is_saving_ = false;
  saved_.notify();
  if (!saved) co_return log::survived(saved.error());
  recorded_ = std::move(saving);
}

Changes KnownCheckpoints::unchanged() const {
  Changes unchanged;
  for (const auto& [name, since] : since_) {
    if (context_.clock.steady() - since.time >= context_.timings.steady) unchanged[name] = since.written;
  }
  return unchanged;
}

void KnownCheckpoints::mark_sent(const std::string& checkpoint, std::int64_t written) {
  known_.sent[checkpoint] = written;
  known_.shards.erase(checkpoint);
}

void KnownCheckpoints::mark_shard_sent(const std::string& checkpoint, std::int64_t written) {
  known_.shards[checkpoint] = written;
}

}  // namespace spark::outputs
