#include "daemon/outputs/watch/known_checkpoints.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "daemon/log.hpp"

namespace spark::outputs {

KnownCheckpoints::KnownCheckpoints(const Context& context, const config::Output& output)
    : context_(context), output_(output) {}

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
  const json::array* records = get_array(*answer, "records");
  const json::object* own = nullptr;
  for (std::size_t i = 0; records != nullptr && i < records->size(); ++i) {
    const json::object& record = (*records)[i].as_object();
    if (get_string(record, "file") == file()) own = &record;
  }
  const json::object* content = own == nullptr ? nullptr : get_object(*own, "content");
  if (own != nullptr && content == nullptr) {
    co_return log::survived(
        {Errc::Failed, subject() + ": reading " + file() + ": " + get_string(*own, "error").value_or(""),
         "delete it if it is damaged; local checkpoints from before the boot then no longer count"});
  }
  has_loaded_ = true;
  if (content == nullptr) co_return;
  recorded_ = {changes_from_json(get_object(*content, "flushed")),
               changes_from_json(get_object(*content, "sent")),
               changes_from_json(get_object(*content, "unproven"))};
  Known noted = std::exchange(known_, recorded_);
  for (const auto& [name, changed] : noted.sent) known_.sent[name] = changed;
}

void KnownCheckpoints::mark_remnants(std::vector<LocalCheckpoint>& local) const {
  for (LocalCheckpoint& one : local) {
    const auto known = since_.find(one.name);
    const bool has_lost = rule_of(output_) == "rename" && known != since_.end() &&
                          known->second.inode == one.inode && one.entries < known->second.entries;
    if (!has_lost || !one.incomplete.empty()) continue;
    one.incomplete =
        "it has lost files since it was complete, as in an interrupted deletion; if it is right, send it "
        "with "
        "`spark-stage stage-out " +
        printable((output_.path / one.name).native()) + " VOLUME:PATH`";
  }
}

// Of each checkpoint that is as it was recorded, its newest write instead of its newest change.
Changes KnownCheckpoints::converted(Changes recorded, const std::vector<LocalCheckpoint>& local) const {
  for (const LocalCheckpoint& one : local) {
    const auto known = recorded.find(one.name);
    if (known != recorded.end() && known->second == one.changed_ns) known->second = one.written;
  }
  return recorded;
}

asio::awaitable<void> KnownCheckpoints::remember(const std::vector<LocalCheckpoint>& local,
                                                 const std::vector<PublishedCheckpoint>* published) {
  auto before = std::exchange(since_, {});
  for (const LocalCheckpoint& one : local) {
    const auto known = before.find(one.name);
    const bool is_same = known != before.end() && known->second.written == one.written;
    Since& since = since_[one.name];
    // A save to the same name never looks unfinished beside a proof with a time in the future.
    const bool is_torn = known != before.end() && known->second.was_complete && one.is_proof_in_future;
    since = is_same
                ? known->second
                : Since{one.written, context_.clock.steady(), is_torn || (one.is_in_future && !has_looked_)};
    since.was_complete = one.incomplete.empty() || one.is_settling || is_torn;
    const bool is_same_folder = known != before.end() && known->second.inode == one.inode;
    since.entries =
        std::max(one.incomplete.empty() ? one.entries : 0, is_same_folder ? known->second.entries : 0);
    since.inode = one.inode;
  }
  has_looked_ = true;
  if (!has_loaded_) co_return;
  const auto has = [](const Changes& changes, const LocalCheckpoint& one) {
    const auto found = changes.find(one.name);
    return found != changes.end() && found->second == one.written;
  };
  const Known now{converted(known_.flushed, local), converted(known_.sent, local),
                  converted(known_.unproven, local)};
  Known next;
  for (const LocalCheckpoint& one : local) {
    if (const auto known = now.sent.find(one.name); known != now.sent.end()) next.sent.insert(*known);
    const bool was_flushed = has(now.flushed, one);
    const bool was_unproven = since_[one.name].is_unproven || has(now.unproven, one);
    if (!was_flushed && (one.is_unproven || was_unproven)) next.unproven[one.name] = one.written;
    // One that was flushed may be complete again: DeepSpeed empties `latest` before it writes it.
    if (!one.incomplete.empty() && !was_flushed) continue;
    next.flushed[one.name] = one.written;
    if (!one.incomplete.empty() || published == nullptr || !is_published(output_, one, *published)) continue;
    // Sent before this was recorded, or manually, or published by another host with this one's shard.
    const auto shard = shards_.find(one.name);
    next.sent.emplace(one.name, shard == shards_.end() ? one.written : shard->second);
    shards_.erase(one.name);
  }
  known_ = std::move(next);
  co_await save();
}

asio::awaitable<void> KnownCheckpoints::save() {
  if (!has_loaded_ || known_ == recorded_) co_return;
  Known saving = known_;
  json::object content{{"flushed", changes_to_json(saving.flushed)}, {"sent", changes_to_json(saving.sent)}};
  if (!saving.unproven.empty()) content["unproven"] = changes_to_json(saving.unproven);
  json::object record{{"file", file()}, {"content", std::move(content)}};
  const auto saved =
      co_await context_.runner.ask(subject(), "record", std::move(record), context_.timings.record);
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
  shards_.erase(checkpoint);
}

void KnownCheckpoints::mark_shard_sent(const std::string& checkpoint, std::int64_t written) {
  shards_[checkpoint] = written;
}

}  // namespace spark::outputs
