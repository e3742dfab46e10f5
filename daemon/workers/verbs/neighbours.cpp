#include "daemon/workers/verbs/neighbours.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "base/text.hpp"
#include "base/threads.hpp"

namespace spark::workers {
namespace {

constexpr fleet::TimeLimits kAsking{std::chrono::milliseconds(1500), std::chrono::milliseconds(3000)};
constexpr Bytes kMostAboutNode = 4096, kMostDatasets = 2 * kMiB;
constexpr std::size_t kMostRows = 20'000;  // of all peers: the daemon's only thread compares them

json::value text_or_null(const json::object& object, std::string_view key) {
  const auto text = get_string(object, key);
  return text ? json::value(printable(*text)) : json::value(nullptr);
}

json::object about(fleet::Peer& peer) {
  const auto text = peer.get_text({}, kMostAboutNode, kAsking);
  const auto answer = text ? parse_json_object(*text) : text.take_error();
  const json::object said = answer ? *answer : json::object{};
  const std::string endpoint = peer.endpoint();
  const std::int64_t link = get_int(said, "link_bytes_per_second").value_or(0);
  return {{"name", peer.name()},
          {"answers", answer.has_value()},
          {"address", or_null(endpoint)},
          {"version", text_or_null(said, "version")},
          {"interface", text_or_null(said, "interface")},
          {"link_bytes_per_second", link > 0 ? json::value(link) : json::value(nullptr)},
          {"reason", answer ? json::value(nullptr) : json::value(answer.error().message())}};
}

void add_datasets(fleet::Peer& peer, json::object& one, std::size_t most) {
  fleet::PeerRequest request;
  request.kind = fleet::PeerRequest::Kind::Datasets;
  const auto text = peer.get_text(request, kMostDatasets, kAsking);
  const auto answer = text ? parse_json_object(*text) : text.take_error();
  const json::array* datasets = answer ? get_array(*answer, "datasets") : nullptr;
  one["datasets"] = datasets == nullptr ? json::array() : compared_rows(*datasets, most);
  if (datasets != nullptr && datasets->size() > most)
    one["reason"] = "it has more than " + std::to_string(most) + " datasets: the others are not compared";
  if (datasets != nullptr) return;
  one["answers"] = false;
  one["reason"] = answer ? "it sent no list of its datasets" : answer.error().message();
}

}  // namespace

json::array compared_rows(const json::array& datasets, std::size_t most) {
  constexpr std::size_t kLongestText = 255;
  json::array rows;
  for (const json::value& value : datasets) {
    if (!value.is_object()) continue;
    json::object row;
    for (const char* key : {"name", "hash", "generation", "bytes", "files"}) {
      const json::value* found = value.as_object().if_contains(key);
      const bool is_short =
          found != nullptr && found->is_string() && found->as_string().size() <= kLongestText;
      if (is_short || (found != nullptr && found->is_int64())) row[key] = *found;
    }
    if (rows.size() == most) break;
    rows.push_back(std::move(row));
  }
  return rows;
}

Bytes link_rate(const std::string& interface) {
  const auto text = read_line_file("/sys/class/net/" + interface + "/speed");
  const long megabits = text ? std::atol(text->c_str()) : 0;
  return megabits > 0 ? static_cast<Bytes>(megabits) * 1'000'000 / 8 : 0;
}

Neighbours::Neighbours(FleetMembers members, fleet::NameService& names, std::chrono::milliseconds limit)
    : members_(std::move(members)), names_(names) {
  look_up(limit);
}

void Neighbours::look_up(std::chrono::milliseconds limit) {
  auto found = addresses_of(members_, names_, limit);
  // Name services rotate the addresses of a name; the connections to the peers stay.
  const bool is_same = std::ranges::equal(found, found_, [](const auto& one, const auto& other) {
    return one.first == other.first && std::ranges::is_permutation(one.second, other.second);
  });
  if (is_same) return;
  found_ = std::move(found);
  FleetMembers all = members_;
  use_addresses(all, found_);
  peers_.clear();
  std::map<std::string, std::string> allowed;
  for (const fleet::PeerAddress& peer : all.peers) {
    peers_.push_back(std::make_unique<fleet::Peer>(peer, all.security));
    for (const fleet::Endpoint& endpoint : peer.endpoints) allowed[endpoint.address] = peer.name;
  }
  const std::scoped_lock lock(mutex_);
  allowed_ = std::move(allowed);
}

std::string Neighbours::name_of(const std::string& address) {
  const std::scoped_lock lock(mutex_);
  const auto found = allowed_.find(address);
  return found == allowed_.end() ? "" : found->second;
}

json::array Neighbours::ask(About what) {
  look_up(kResolving);
  std::vector<json::object> answers(peers_.size());
  std::atomic<std::size_t> next{0};
  const auto part = [&](std::size_t /*thread*/) {
    for (std::size_t i = next++; i < peers_.size(); i = next++) {
      answers[i] = about(*peers_[i]);
      if (what == About::Datasets && get_bool(answers[i], "answers").value_or(false))
        add_datasets(*peers_[i], answers[i], kMostRows / peers_.size());
    }
  };
  json::array all;
  if (peers_.empty() || !run_in_threads(peers_.size(), part)) return all;
  for (json::object& answer : answers) all.push_back(std::move(answer));
  return all;
}

}  // namespace spark::workers
