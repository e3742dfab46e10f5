#include "daemon/outputs/watch/known_checkpoints.hpp"

#include <algorithm>
#include <utility>

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

asio::awaitable<void> KnownCheckpoints::remember(const std::vector<LocalCheckpoint>& local,
                                                 const std::vector<PublishedCheckpoint>* published) {
  auto before = std::exchange(since_, {});
  for (const LocalCheckpoint& one : local) {
    const auto known = before.find(one.name);
    const bool is_same = known != before.end() && known->second.changed_ns == one.changed_ns;
    since_[one.name] = is_same
                           ? known->second
                           : Since{one.changed_ns, context_.clock.steady(), one.is_in_future && !has_looked_};
  }
  has_looked_ = true;
  if (!has_loaded_) co_return;
  const auto has = [](const Changes& changes, const LocalCheckpoint& one) {
    const auto found = changes.find(one.name);
    return found != changes.end() && found->second == one.changed_ns;
  };
  Changes flushed, sent, unproven;
  for (const LocalCheckpoint& one : local) {
    if (const auto known = known_.sent.find(one.name); known != known_.sent.end())
      sent[one.name] = known->second == one.changed_ns ? one.written_ns : known->second;
    const bool was_flushed = has(known_.flushed, one);
    const bool was_unproven = since_[one.name].is_unproven || has(known_.unproven, one);
    if (!was_flushed && (one.is_unproven || was_unproven)) unproven[one.name] = one.changed_ns;
    // One that was flushed may be complete again: DeepSpeed empties `latest` before it writes it.
    if (!one.incomplete.empty() && !was_flushed) continue;
    flushed[one.name] = one.changed_ns;
    if (!one.incomplete.empty()) continue;
    // Sent before this was recorded, or manually.
    if (published != nullptr && is_published(output_, one, *published))
      sent.emplace(one.name, one.written_ns);
  }
  known_.flushed = std::move(flushed);
  known_.sent = std::move(sent);
  known_.unproven = std::move(unproven);
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
    if (context_.clock.steady() - since.time >= context_.timings.steady) unchanged[name] = since.changed_ns;
  }
  return unchanged;
}

void KnownCheckpoints::mark_sent(const std::string& checkpoint, std::int64_t written_ns) {
  known_.sent[checkpoint] = written_ns;
}

}  // namespace spark::outputs
