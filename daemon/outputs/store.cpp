#include "daemon/outputs/store.hpp"

#include <algorithm>
#include <limits>

#include "base/text.hpp"
#include "daemon/log.hpp"

namespace spark::outputs {
namespace {

constexpr std::int64_t kMostNodes = 10'000;

}  // namespace

bool StageOutRequest::is_same(const StageOutRequest& other) const {
  return source == other.source && volume == other.volume && path == other.path && keep == other.keep &&
         keep_every == other.keep_every && nodes == other.nodes && latest == other.latest &&
         max_rate == other.max_rate && asker.uid == other.asker.uid;
}

bool lacks_shards(const json::object& answer) {
  return get_string(answer, "state") == "waiting";
}

std::string missing_shards(const json::object& answer, unsigned nodes) {
  const json::array* hosts = get_array(answer, "hosts");
  std::vector<std::string> names;
  for (std::size_t i = 0; hosts != nullptr && i < hosts->size(); ++i) {
    if (const auto* name = (*hosts)[i].if_string(); name != nullptr)
      names.push_back(printable(std::string(name->data(), name->size())));
  }
  return "it is published when the shards of " + std::to_string(nodes) + " hosts are there; so far " +
         (names.empty() ? "another host publishes them" : "they are of " + join(names, ", "));
}

json::object to_json(const StageOutRequest& request) {
  return {{"id", request.id},
          {"source", request.source},
          {"volume", request.volume},
          {"path", request.path},
          {"keep", request.keep},
          {"max_rate", request.max_rate},
          {"keep_every", request.keep_every},
          {"spared", json::value_from(request.spared)},
          {"nodes", request.nodes},
          {"waits", request.waits},
          {"latest", request.latest},
          {"uid", request.asker.uid},
          {"holder", request.asker.holder}};
}

Result<StageOutRequest> request_from_json(const json::object& object) {
  StageOutRequest request;
  const auto uid = get_int(object, "uid");
  request.id = get_string(object, "id").value_or("");
  request.source = get_string(object, "source").value_or("");
  request.volume = get_string(object, "volume").value_or("");
  request.path = get_string(object, "path").value_or("");
  request.asker.holder = get_string(object, "holder").value_or("");
  const bool has_all = !request.id.empty() && request.source.starts_with('/') && !request.volume.empty() &&
                       !request.path.empty();
  // Without a user the copy would be made with root's rights.
  if (!has_all || !uid || *uid < 0 || *uid > std::numeric_limits<uid_t>::max())
    return fail(Errc::Invalid, "it is no record of a stage-out");
  request.asker.uid = static_cast<uid_t>(*uid);
  request.keep =
      static_cast<unsigned>(std::clamp<std::int64_t>(get_int(object, "keep").value_or(0), 0, 1 << 20));
  request.keep_every = static_cast<unsigned>(
      std::clamp<std::int64_t>(get_int(object, "keep_every").value_or(0), 0, 1'000'000'000));
  request.nodes =
      static_cast<unsigned>(std::clamp<std::int64_t>(get_int(object, "nodes").value_or(0), 0, kMostNodes));
  request.waits = get_bool(object, "waits").value_or(true);
  request.latest = get_string(object, "latest").value_or("");
  const json::array* spared = get_array(object, "spared");
  for (std::size_t i = 0; spared != nullptr && i < spared->size(); ++i) {
    if (const auto* name = (*spared)[i].if_string(); name != nullptr)
      request.spared.emplace_back(name->data(), name->size());
  }
  request.max_rate = static_cast<Bytes>(std::max<std::int64_t>(0, get_int(object, "max_rate").value_or(0)));
  return request;
}

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
  if (!gone) log::survived(gone.error());  // the next start finds it sent, and tries once more to forget it
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
    const std::string file = get_string(record, "file").value_or("");
    if (request && file_of(request->id) == file) {
      requests.push_back(std::move(*request));
    } else {
      log::survived({Errc::Failed, "what was recorded in " + printable(file) + " can't be understood", ""});
    }
  }
  co_return requests;
}

}  // namespace spark::outputs
