#include "daemon/fleet/peer_service.hpp"

#include "base/text.hpp"
#include "daemon/fleet/compare.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"
#include "daemon/workers/model_json.hpp"
#include "daemon/workers/wire.hpp"

namespace spark::fleet {
namespace {

namespace asio = boost::asio;

constexpr Duration kLongestRetry{30'000}, kAsking{30'000};
constexpr std::size_t kMostTold = 64;  // any program can connect

constexpr char kNewer[] =
    "its ref names a newer revision, which is not offered: `journalctl -u spark-staged` has the reason";

// Null if peers do not get that dataset.
const json::object* offer_of(const json::object& served, const std::string& name) {
  for (const json::object& offer : objects_in(served, "offered"))
    if (get_text(offer, "name") == name) return &offer;
  return nullptr;
}

}  // namespace

PeerService::PeerService(asio::any_io_executor executor, workers::Runner& runner, std::string state_dir)
    : runner_(runner),
      state_dir_(std::move(state_dir)),
      asks_(executor, kAsking),
      server_(executor, runner,
              {"serve-peers", "the fleet", "peers are not served", kLongestRetry, [this] { log_refused(); }}),
      adopter_(std::move(executor), runner,
               {"adopt-folders", "the adopted folders", "folders are not adopted", kLongestRetry,
                [this] { log_not_adopted(); }}) {}

void PeerService::apply(const config::Config& config) {
  json::object wanted, to_adopt;
  if (!config.fleet.listen.empty()) {
    wanted["cache"] = workers::to_json(config.cache, state_dir_);
    wanted["fleet"] = workers::to_json(config.fleet);
    listen_.clear();
    for (const nvmetcp::Portal& address : config.fleet.listen)
      listen_ += (listen_.empty() ? "" : ", ") + to_string(address);
    json::array folders;
    for (const auto& [name, dataset] : config.datasets)
      if (dataset.peers && dataset.volume.empty()) folders.emplace_back(name);
    wanted["folders"] = std::move(folders);
    json::array adopted;
    for (const auto& [name, dataset] : config.datasets)
      if (dataset.adopt) adopted.push_back(workers::adopted_to_json(dataset));
    if (!adopted.empty()) {
      wanted["adopted"] = std::move(adopted);
      to_adopt = {{"state_dir", state_dir_}, {"adopted", wanted["adopted"]}};
    }
  }
  if (server_.apply(std::move(wanted))) told_.clear();
  if (adopter_.apply(std::move(to_adopt))) why_not_.clear();
}

// Once for each host and reason.
void PeerService::log_refused() {
  for (const json::object& host : objects_in(server_.last(), "refused_hosts")) {
    if (told_.size() >= kMostTold) return;
    const std::string sentence = "the fleet refused " + get_string(host, "address").value_or("a host") +
                                 ": " + get_text(host, "reason");
    if (told_.insert(sentence).second) log::warning(sentence);
  }
}

// The reasons name files in folders that others may not list, so they are not in the status.
void PeerService::log_not_adopted() {
  for (const json::object& folder : objects_in(adopter_.last(), "adopted")) {
    const std::string name = get_text(folder, "name");
    const std::string why = get_text(folder, "state") == "failed" ? get_text(folder, "reason") : "";
    std::string& told = why_not_[name];
    if (!why.empty() && why != told) log::warning("dataset " + name + " is not adopted: " + why);
    told = why;
  }
}

// What is offered is told by the process that serves it; why another folder is not, by the one that reads it.
json::array PeerService::adopted() const {
  const auto known = objects_in(adopter_.last(), "adopted");
  json::array shown;
  for (const json::object& folder : objects_in(adopter_.request(), "adopted")) {
    const std::string name = get_shown(folder, "dataset");
    json::object one{{"name", name}, {"state", "changing"}, {"reason", "it has not been looked at yet"}};
    if (shown.size() < known.size()) one = known[shown.size()];
    if (const json::object* offer = offer_of(server_.last(), name)) {
      // A model's revision is offered until the newer one can be.
      const bool has_newer = folder.contains("model") && get_text(one, "state") == "failed";
      one = *offer;
      one["state"] = "offered";
      one["reason"] = has_newer ? json::value(kNewer) : json::value(nullptr);
    } else if (get_text(one, "state") == "offered") {
      one = {{"name", name}, {"state", "hashing"}, {"reason", "peers get it in a moment"}};
    }
    if (get_text(one, "state") == "failed") one["reason"] = "`journalctl -u spark-staged` has the reason";
    shown.push_back(std::move(one));
  }
  return shown;
}

asio::awaitable<Result<json::object>> PeerService::ask_peers() {
  workers::Call call{"ask-peers", "the fleet", server_.request(), kAsking};
  auto asked = co_await runner_.run(std::move(call));
  co_return asked;
}

asio::awaitable<Result<json::object>> PeerService::compare(json::array own) {
  if (server_.request().empty())
    co_return fail(Errc::Invalid, "there is no fleet in the configuration",
                   "docs/fleet.md says how to add one");
  workers::Joined::Ask ask = [this] { return ask_peers(); };
  const auto asked = co_await asks_.answer("peers", std::move(ask));
  if (!asked) co_return fail(asked.error());
  co_return compare_datasets(own, get_list(*asked, "peers"));
}

json::value PeerService::status() const {
  if (server_.request().empty()) return nullptr;
  const json::object& last = server_.last();
  const auto& error = server_.error();
  json::object status = last;
  status.erase("offered");  // see adopted()
  if (last.empty()) {
    status["listen"] = listen_;
    status["peers"] = json::array{};
  }
  status["serving"] = !last.empty();
  if (!adopter_.request().empty()) status["adopted"] = adopted();
  const auto trouble = get_string(last, "reason");
  status["reason"] = error          ? json::value(error->message())
                     : trouble      ? json::value(*trouble)
                     : last.empty() ? json::value("the process that serves peers is starting")
                                    : json::value(nullptr);
  return status;
}

}  // namespace spark::fleet
