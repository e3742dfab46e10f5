#include "daemon/outputs/known_checkpoints.hpp"

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
  has_loaded_ = true;
  const json::array* records = get_array(*answer, "records");
  for (std::size_t i = 0; records != nullptr && i < records->size(); ++i) {
    const json::object& record = (*records)[i].as_object();
    const json::object* content = get_object(record, "content");
    if (content == nullptr || get_string(record, "file") != file()) continue;
    recorded_ = {changes_from_json(get_object(*content, "flushed")),
                 changes_from_json(get_object(*content, "sent"))};
    changes_ = recorded_;
  }
}

asio::awaitable<void> KnownCheckpoints::remember(const std::vector<LocalCheckpoint>& local,
                                                 const std::vector<PublishedCheckpoint>* published) {
  ChangesByEvent now;
  for (const LocalCheckpoint& one : local) {
    if (const auto sent = changes_.sent.find(one.name); sent != changes_.sent.end()) now.sent.insert(*sent);
    if (!one.incomplete.empty()) continue;
    now.flushed[one.name] = one.changed_ns;
    // Sent before this was recorded, or manually.
    if (published != nullptr && is_published(output_, one, *published))
      now.sent.emplace(one.name, one.changed_ns);
  }
  changes_ = std::move(now);
  if (changes_ != recorded_) co_await save();
}

asio::awaitable<void> KnownCheckpoints::save() {
  ChangesByEvent saving = changes_;
  json::object content{{"flushed", changes_to_json(saving.flushed)}, {"sent", changes_to_json(saving.sent)}};
  json::object record{{"file", file()}, {"content", std::move(content)}};
  const auto saved =
      co_await context_.runner.ask(subject(), "record", std::move(record), context_.timings.record);
  if (!saved) co_return log::survived(saved.error());
  recorded_ = std::move(saving);
}

void KnownCheckpoints::mark_sent(const std::string& checkpoint, std::int64_t changed_ns) {
  changes_.sent[checkpoint] = changed_ns;
}

}  // namespace spark::outputs
