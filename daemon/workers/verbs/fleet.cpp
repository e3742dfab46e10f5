#include "daemon/workers/verbs/fleet.hpp"

#include <sys/stat.h>

#include <ctime>

#include "base/file.hpp"
#include "base/text.hpp"
#include "daemon/workers/verbs/open_cache.hpp"
#include "fleet/transport/key.hpp"
#include "nvmetcp/host_identity.hpp"
#include "staging/cache/cache_folder.hpp"

namespace spark::workers {
namespace {

constexpr char kSilentFile[] = "silent";
constexpr std::chrono::seconds kSilentFor{15};

// A host without NVMe has no NQN: systemd's machine ID is used instead.
std::string host_name() {
  const auto identity = nvmetcp::read_host_identity(SystemRoot{});
  if (identity) return identity->nqn;
  return "machine:" + read_line_file("/etc/machine-id").value_or("unknown");
}

fleet::Endpoint endpoint_from(const json::object& object) {
  return {get_string(object, "address").value_or(""),
          static_cast<std::uint16_t>(get_int(object, "port").value_or(0))};
}

}  // namespace

Result<FleetMembers> fleet_members_of(const json::object& object) {
  FleetMembers members;
  if (const json::object* listen = get_object(object, "listen")) members.listen = endpoint_from(*listen);
  auto key = fleet::read_key(get_string(object, "key_file").value_or(""));
  if (!key) return key.take_error();
  const std::string name = host_name();
  auto security = fleet::Security::make(*key, name);
  if (!security) return security.take_error();
  members.security = std::move(*security);
  members.self = fleet::node_id(name, fleet::to_string(members.listen));
  const json::array* peers = get_array(object, "peers");
  for (std::size_t i = 0; peers != nullptr && i < peers->size(); ++i) {
    const json::object& one = (*peers)[i].as_object();
    fleet::PeerAddress peer{get_string(one, "name").value_or(""), {}};
    bool is_self = false;
    for (const json::value& endpoint : *get_array(one, "endpoints")) {
      peer.endpoints.push_back(endpoint_from(endpoint.as_object()));
      is_self = is_self || fleet::to_string(peer.endpoints.back()) == fleet::to_string(members.listen);
    }
    if (!is_self) members.peers.push_back(std::move(peer));
  }
  return members;
}

std::filesystem::path boards_in(const std::filesystem::path& state_dir) {
  return state_dir / "fleet";
}

void note_silent(const std::filesystem::path& boards, const json::array& peers) {
  std::string names;
  for (const json::value& peer : peers)
    if (!get_bool(peer.as_object(), "answers").value_or(false))
      names += get_string(peer.as_object(), "name").value_or("") + "\n";
  std::error_code ignored;
  std::filesystem::create_directories(boards, ignored);
  (void)write_file_atomically(boards / kSilentFile, names);  // on a failure, stagings wait for silent peers
}

std::set<std::string> silent_peers(const std::filesystem::path& boards) {
  struct stat info {};
  const auto path = boards / kSilentFile;
  if (::stat(path.c_str(), &info) != 0 || ::time(nullptr) - info.st_mtim.tv_sec > kSilentFor.count())
    return {};
  const auto names = split(read_file(path).value_or(""), '\n');
  return {names.begin(), names.end()};
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
  settings.boards = boards_in(cache->state_dir);
  settings.data = staging::CacheFolder(cache->path).partial(dataset) / "data";
  const auto silent = silent_peers(settings.boards);
  for (fleet::PeerAddress& peer : members->peers) {
    peer.is_silent = silent.contains(peer.name);
    settings.peers.push_back(std::make_unique<fleet::Peer>(std::move(peer), members->security));
  }
  return std::make_unique<fleet::PeerExchange>(std::move(settings));
}

}  // namespace spark::workers
