#include "daemon/outputs/store.hpp"

#include "base/text.hpp"
#include "daemon/log.hpp"

namespace spark::outputs {
std::string Store::file_of(const std::string& id) const {
  return (context_.folder / (id + ".json")).native();
}

asio::awaitable<Result<>> Store::save(StageOutRequest request) {
  json::object record{{"file", file_of(request.id)}, {"content", to_json(request)}};
  const auto saved =
      co_await context_.runner.ask("stage-out", "record", std::move(record), context_.timings.record);
  if (saved) co_return Result<>{};
  co_return fail_with(saved.error(), "recording that " + printable(request.source) + " is to be sent");
}

asio::awaitable<void> Store::forget(std::string id) {
  json::object record{{"file", file_of(id)}};
  const auto gone =
      co_await context_.runner.ask("stage-out", "forget", std::move(record), context_.timings.record);
  if (!gone) log::survived(gone.error());  // the next start finds it sent, and retries to forget it
}

asio::awaitable<Result<std::vector<StageOutRequest>>> Store::load() {
  json::object folder{{"folder", context_.folder.native()}};
  const auto answer =
      co_await context_.runner.ask("stage-out", "recorded", std::move(folder), context_.timings.record);
  if (!answer) co_return fail(answer.error());
  std::vector<StageOutRequest> requests;
  const json::array* records = get_array(*answer, "records");
  for (std::size_t i = 0; records != nullptr && i < records->size(); ++i) {
    const json::object& record = (*records)[i].as_object();
    const json::object* content = get_object(record, "content");
    auto request = request_from_json(content == nullptr ? json::object{} : *content);
    const std::string file = get_text(record, "file");
    if (request && file_of(request->id) == file) {
      requests.push_back(std::move(*request));
    } else {
      const std::string reason = get_string(record, "error").value_or("it is no record of a stage-out");
      log::survived({Errc::Failed, "reading the record in " + printable(file) + ": " + reason, ""});
    }
  }
  co_return requests;
}

}  // namespace spark::outputs
