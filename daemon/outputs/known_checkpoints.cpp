#include "daemon/outputs/known_checkpoints.hpp"

#include <algorithm>
#include <utility>

#include "base/file.hpp"
#include "daemon/log.hpp"

namespace spark::outputs {
namespace {

// Empty if unknown.
std::string boot_id() {
  return read_line_file("/proc/sys/kernel/random/boot_id").value_or("");
}

}  // namespace

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
               published_from(get_object(*content, "published"))};
  Known noted = std::exchange(known_, recorded_);
  for (const auto& [name, changed] : noted.sent) known_.sent[name] = changed;
  if (noted.newest_published) known_.newest_published = std::move(noted.newest_published);
}

asio::awaitable<void> KnownCheckpoints::remember(const std::vector<LocalCheckpoint>& local,
                                                 const std::vector<PublishedCheckpoint>* published) {
  if (!has_loaded_) co_return;
  Changes flushed, sent;
  for (const LocalCheckpoint& one : local) {
    if (const auto known = known_.sent.find(one.name); known != known_.sent.end()) sent.insert(*known);
    if (!one.incomplete.empty()) {
      // It may be complete again: DeepSpeed empties `latest` before it writes it.
      const auto known = known_.flushed.find(one.name);
      if (known != known_.flushed.end() && known->second == one.changed_ns) flushed.insert(*known);
      continue;
    }
    flushed[one.name] = one.changed_ns;
    // Sent before this was recorded, or manually.
    if (published != nullptr && is_published(output_, one, *published))
      sent.emplace(one.name, one.changed_ns);
  }
  known_.flushed = std::move(flushed);
  known_.sent = std::move(sent);
  co_await save();
}

asio::awaitable<void> KnownCheckpoints::save() {
  if (!has_loaded_ || known_ == recorded_) co_return;
  Known saving = known_;
  json::object content{{"flushed", changes_to_json(saving.flushed)}, {"sent", changes_to_json(saving.sent)}};
  if (saving.newest_published) content["published"] = published_to_json();
  json::object record{{"file", file()}, {"content", std::move(content)}};
  const auto saved =
      co_await context_.runner.ask(subject(), "record", std::move(record), context_.timings.record);
  if (!saved) co_return log::survived(saved.error());
  recorded_ = std::move(saving);
}

json::object KnownCheckpoints::published_to_json() const {
  return {{"destination", output_.volume + ":" + output_.to},
          {"boot", boot_id()},
          {"name", known_.newest_published->name},
          {"mtime_ns", known_.newest_published->mtime_ns}};
}

// None if it was seen elsewhere, or before this host's boot.
std::optional<PublishedCheckpoint> KnownCheckpoints::published_from(const json::object* object) const {
  const bool is_valid = object != nullptr && !boot_id().empty() && get_string(*object, "boot") == boot_id() &&
                        get_string(*object, "destination") == output_.volume + ":" + output_.to;
  if (!is_valid) return std::nullopt;
  return PublishedCheckpoint{get_string(*object, "name").value_or(""),
                             get_int(*object, "mtime_ns").value_or(0)};
}

bool KnownCheckpoints::is_newest_known(const LocalCheckpoint& local) const {
  return known_.newest_published && local.mtime_ns >= known_.newest_published->mtime_ns;
}

void KnownCheckpoints::note_published(const std::vector<PublishedCheckpoint>& published) {
  known_.newest_published = published.empty() ? PublishedCheckpoint() : published.front();
}

void KnownCheckpoints::mark_sent(const std::string& checkpoint, std::int64_t changed_ns) {
  known_.sent[checkpoint] = changed_ns;
}

}  // namespace spark::outputs
