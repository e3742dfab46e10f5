#include "daemon/workers/verbs/fleet.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "base/file.hpp"
#include "base/network/addresses.hpp"
#include "base/text.hpp"
#include "daemon/workers/verbs/open_cache.hpp"
#include "fleet/transport/key.hpp"
#include "nvmetcp/host_identity.hpp"
#include "staging/cache/folder/cache_folder.hpp"

namespace spark::workers {
namespace {

constexpr char kPeersFile[] = "peers", kNodesFile[] = "nodes";
constexpr std::size_t kMostNoted = 1024;
constexpr std::chrono::seconds kNotedFor{15};

// A host without NVMe has no NQN: systemd's machine ID is used instead.
std::string own_name() {
  const auto identity = nvmetcp::read_host_identity(SystemRoot{});
  if (identity) return identity->nqn;
  return "machine:" + read_line_file("/etc/machine-id").value_or("unknown");
}

fleet::Endpoint endpoint_from(const json::object& object) {
  return {get_text(object, "address"), static_cast<std::uint16_t>(get_int(object, "port").value_or(0))};
}

// Together with the NQN, it tells hosts apart that were cloned with one NQN, also if all listen on 0.0.0.0.
std::string address_of_self(const std::vector<fleet::Endpoint>& listen) {
  const std::string first = fleet::to_string(listen.front());
  if (!is_any_address(listen.front().address)) return first;
  std::string all = first;
  for (const std::string& address : own_addresses()) all += " " + address;
  return all;
}

// A host's own name leads to 127.0.1.1 on Debian and Ubuntu, which no interface has.
bool is_self(const FleetMembers& members, const fleet::Endpoint& endpoint, bool is_by_name) {
  const bool is_loopback = endpoint.address.starts_with("127.") || endpoint.address == "::1";
  const bool is_here = (is_by_name && is_loopback) || !interface_of(endpoint.address).empty();
  return std::ranges::any_of(members.listen, [&](const fleet::Endpoint& own) {
    return own.port == endpoint.port && (is_here || own.address == endpoint.address);
  });
}

std::set<std::string> addresses_to_listen(const FleetMembers& members) {
  std::set<std::string> all;
  for (const fleet::Endpoint& own : members.listen) all.insert(own.address);
  return all;
}

}  // namespace

Result<FleetMembers> fleet_members_of(const json::object& object) {
  FleetMembers members;
  for (const json::object& own : objects_in(object, "listen")) members.listen.push_back(endpoint_from(own));
  if (members.listen.empty()) return fail(Errc::Invalid, "the fleet has no address to listen on");
  members.key_file = get_text(object, "key_file");
  auto key = fleet::read_key(members.key_file);
  if (!key) return key.take_error();
  const std::string name = own_name();
  auto security = fleet::Security::make(*key, name);
  if (!security) return security.take_error();
  members.security = std::move(*security);
  members.self = fleet::node_id(name, address_of_self(members.listen));
  for (const json::object& one : objects_in(object, "peers")) {
    fleet::PeerAddress peer{get_text(one, "name"), {}};
    for (const json::object& endpoint : objects_in(one, "endpoints"))
      peer.endpoints.push_back(endpoint_from(endpoint));
    members.peers.push_back(std::move(peer));
  }
  if (const json::object* dns = get_object(object, "dns")) members.dns = endpoint_from(*dns);
  members.nodes = get_strings(object, "nodes");
  return members;
}

fleet::FoundNames addresses_of(const FleetMembers& members, fleet::NameService& names,
                               std::chrono::milliseconds limit, fleet::FoundNames known) {
  std::vector<std::string> unknown;
  const auto add = [&](const fleet::Endpoint& endpoint) {
    if (!known.contains(endpoint.address)) unknown.push_back(endpoint.address);
  };
  if (members.dns) add(*members.dns);
  for (const fleet::PeerAddress& peer : members.peers) std::ranges::for_each(peer.endpoints, add);
  known.merge(names.find(unknown, limit));
  for (const std::string& name : unknown) known.try_emplace(name);
  return known;
}

void use_addresses(FleetMembers& members, const fleet::FoundNames& found) {
  const auto addresses = [&](const std::string& name) {
    const auto there = found.find(name);
    return there == found.end() ? std::vector<std::string>() : there->second;
  };
  std::set<std::string> known = addresses_to_listen(members), own;
  for (fleet::PeerAddress& peer : members.peers) {
    for (const fleet::Endpoint& named : std::exchange(peer.endpoints, {}))
      for (const std::string& address : addresses(named.address)) {
        peer.endpoints.push_back({address, named.port});
        known.insert(address);
        if (is_self(members, peer.endpoints.back(), !fleet::is_address(named.address))) own.insert(peer.name);
      }
  }
  std::erase_if(members.peers, [&](const fleet::PeerAddress& peer) { return own.contains(peer.name); });
  if (!members.dns) return;
  for (const std::string& address : addresses(members.dns->address)) {
    if (!known.insert(address).second || !interface_of(address).empty()) continue;
    members.peers.push_back({address, {{address, members.dns->port}}});
  }
}

fleet::FoundNames add_nodes(FleetMembers& members, const std::vector<std::string>& nodes,
                            fleet::NameService& names) {
  std::set<std::string> known = addresses_to_listen(members);
  for (const fleet::PeerAddress& peer : members.peers) {
    known.insert(peer.name);
    for (const fleet::Endpoint& endpoint : peer.endpoints) known.insert(endpoint.address);
  }
  std::vector<std::string> unknown;
  for (const std::string& node : nodes)
    if (!known.contains(node)) unknown.push_back(node);
  auto found = names.find(unknown, kResolving);
  for (auto& [node, addresses] : found) {
    const bool is_known = std::ranges::any_of(addresses, [&](const std::string& address) {
      return known.contains(address) || !interface_of(address).empty();
    });
    fleet::PeerAddress peer{node, {}};
    for (const std::string& address : addresses)
      peer.endpoints.push_back({address, members.listen.front().port});
    std::ranges::sort(addresses);  // a name service may rotate them
    if (is_known || addresses.empty()) continue;
    known.insert(addresses.begin(), addresses.end());
    members.peers.push_back(std::move(peer));
  }
  return found;
}

std::filesystem::path boards_in(const std::filesystem::path& state_dir) {
  return state_dir / "fleet";
}

namespace {

// Without empty ones.
std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  for (const auto& line : split(read_file(path).value_or(""), '\n'))
    if (!line.empty()) lines.emplace_back(line);
  return lines;
}

bool is_fresh(const std::filesystem::path& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && ::time(nullptr) - info.st_mtim.tv_sec <= kNotedFor.count();
}

// A name, then its addresses.
std::string line_of(const std::string& name, const std::vector<std::string>& addresses) {
  std::string line = name;
  for (const std::string& address : addresses) line += " " + address;
  return line;
}

}  // namespace

void note_peers(const std::filesystem::path& boards, const fleet::FoundNames& found,
                const json::array& peers) {
  json::array silent;
  for (const json::value& peer : peers)
    if (!get_bool(peer.as_object(), "answers").value_or(false)) silent.push_back(peer.at("name"));
  const json::object notes{{"found", json::value_from(found)}, {"silent", std::move(silent)}};
  std::error_code ignored;
  std::filesystem::create_directories(boards, ignored);
  // On a failure, stagings ask the name service, and wait for silent peers.
  (void)write_file_atomically(boards / kPeersFile, json::serialize(notes));
}

PeerNotes noted_peers(const std::filesystem::path& boards) {
  const auto path = boards / kPeersFile;
  const auto noted = parse_json_object(is_fresh(path) ? read_file(path).value_or("") : "");
  PeerNotes notes;
  if (!noted) return notes;
  if (const json::object* found = get_object(*noted, "found"))
    for (const auto& [name, unused] : *found) notes.found[std::string(name)] = get_strings(*found, name);
  for (std::string& name : get_strings(*noted, "silent")) notes.silent.insert(std::move(name));
  return notes;
}

void note_nodes(const std::filesystem::path& boards, const fleet::FoundNames& nodes) {
  const auto noted = lines_of(boards / kNodesFile);
  std::string all, lines;
  for (const auto& [name, addresses] : nodes) {
    const std::string line = line_of(name, addresses);
    all += line + "\n";
    if (std::ranges::find(noted, line) == noted.end()) lines += line + "\n";
  }
  if (lines.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(boards, ignored);
  const int begin_again = noted.size() > kMostNoted ? O_TRUNC : 0;
  if (begin_again != 0) lines = std::move(all);
  const auto path = boards / kNodesFile;
  const UniqueFd file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | begin_again, 0600));
  // On a failure these hosts get nothing from this one.
  if (file) (void)!::write(file.get(), lines.data(), lines.size());
}

bool is_noted_node(const std::filesystem::path& boards, const std::string& address) {
  const auto noted = lines_of(boards / kNodesFile);
  return std::ranges::any_of(noted, [&](const std::string& line) {
    const auto words = split(line, ' ');
    return std::find(words.begin() + 1, words.end(), address) != words.end();
  });
}

std::unique_ptr<fleet::PeerExchange> exchange_of(const json::object& request, const std::string& dataset,
                                                 std::string& warning) {
  const json::object* object = get_object(request, "fleet");
  if (object == nullptr) return nullptr;
  const auto cache = cache_config_of(request);
  auto members = fleet_members_of(*object);
  if (!cache || !members) {
    warning = "nothing was exchanged with peers: " + (members ? cache.error() : members.error()).message();
    return nullptr;
  }
  fleet::ExchangeSettings settings;
  settings.self = members->self;
  settings.is_source_away = get_bool(request, "away").value_or(false);
  settings.is_slow = get_bool(*object, "slow").value_or(false);
  settings.boards = boards_in(cache->state_dir);
  settings.data = staging::CacheFolder(cache->path).partial(dataset) / "data";
  fleet::NameService names(addresses_behind);
  PeerNotes notes = noted_peers(settings.boards);
  use_addresses(*members, addresses_of(*members, names, kResolving, std::move(notes.found)));
  note_nodes(settings.boards, add_nodes(*members, members->nodes, names));
  const auto security = std::make_shared<fleet::CurrentSecurity>(members->security, members->key_file);
  for (fleet::PeerAddress& peer : members->peers) {
    peer.is_silent = notes.silent.contains(peer.name);
    settings.peers.push_back(std::make_unique<fleet::Peer>(std::move(peer), security));
  }
  return std::make_unique<fleet::PeerExchange>(std::move(settings));
}

}  // namespace spark::workers
