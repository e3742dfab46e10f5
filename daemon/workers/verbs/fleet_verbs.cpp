// Serving peers, in a process that the daemon starts and supervises.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>

#include "base/text.hpp"
#include "base/version.hpp"
#include "daemon/workers/verbs/fleet.hpp"
#include "daemon/workers/verbs/open_cache.hpp"
#include "daemon/workers/verbs/verbs.hpp"
#include "fleet/serve/server.hpp"

namespace spark::workers {
namespace {

constexpr std::chrono::seconds kLook{1}, kAskEvery{5};
constexpr std::chrono::milliseconds kAskPatience{1500};
constexpr Bytes kUnknownLink = 1'250'000'000;  // bytes per second: 10 Gbit/s
constexpr int kIoOfProcess = 1, kIdleClass = 3 << 13;

// Set by the daemon's signals: while a dataset is leased here, the fabric belongs to its job.
std::atomic<bool> g_is_limited{false};

void obey_limit() {
  ::signal(SIGUSR1, [](int) { g_is_limited = true; });
  ::signal(SIGUSR2, [](int) { g_is_limited = false; });
}

// Bytes per second; 0: the kernel does not know.
Bytes link_rate(const std::string& interface) {
  const auto text = read_line_file("/sys/class/net/" + interface + "/speed");
  const long megabits = text ? std::atol(text->c_str()) : 0;
  return megabits > 0 ? static_cast<Bytes>(megabits) * 1'000'000 / 8 : 0;
}

Bytes upload_of(const json::object& fleet, const fleet::Endpoint& listen) {
  const double percent = get_double(fleet, "upload_percent").value_or(0);
  if (percent <= 0) return static_cast<Bytes>(get_int(fleet, "upload_bytes").value_or(0));
  const Bytes link = link_rate(fleet::interface_of(listen.address));
  return static_cast<Bytes>(static_cast<double>(link == 0 ? kUnknownLink : link) * percent / 100);
}

// The hosts that may ask, and how they answer.
class Neighbours {
 public:
  explicit Neighbours(const FleetMembers& members) {
    for (const fleet::PeerAddress& peer : members.peers) {
      addresses_.push_back(peer);
      peers_.push_back(std::make_unique<fleet::Peer>(peer, members.security));
    }
    resolve();
  }

  bool has(const std::string& address) const {
    const std::scoped_lock lock(mutex_);
    return allowed_.contains(address);
  }

  json::array ask() {
    resolve();
    json::array all;
    for (const auto& peer : peers_) {
      const auto text = peer->get_text({}, 4096, kAskPatience);
      const auto answer = text ? parse_json_object(*text) : text.take_error();
      json::object one{{"name", peer->name()}, {"answers", answer.has_value()}};
      const std::string endpoint = peer->endpoint();
      one["address"] = endpoint.empty() ? json::value(nullptr) : json::value(endpoint);
      one["version"] = answer ? json::value(printable(get_string(*answer, "version").value_or(""))) : nullptr;
      one["reason"] = answer ? json::value(nullptr) : json::value(answer.error().message());
      all.push_back(std::move(one));
    }
    return all;
  }

 private:
  std::vector<fleet::PeerAddress> addresses_;
  std::vector<std::unique_ptr<fleet::Peer>> peers_;
  mutable std::mutex mutex_;
  std::set<std::string> allowed_;

  void resolve() {
    std::set<std::string> all;
    for (const fleet::PeerAddress& peer : addresses_) {
      for (const fleet::Endpoint& endpoint : peer.endpoints) {
        const auto found = fleet::resolve(endpoint.address);
        if (found) all.insert(found->begin(), found->end());
      }
    }
    const std::scoped_lock lock(mutex_);
    allowed_ = std::move(all);
  }
};

json::object report(const fleet::Server& server, const FleetMembers& members, json::array peers) {
  const std::string interface = fleet::interface_of(members.listen.address);
  const Bytes link = link_rate(interface);
  return {{"listen", fleet::to_string(members.listen)},
          {"interface", interface.empty() ? json::value(nullptr) : json::value(interface)},
          {"link_bytes_per_second", link == 0 ? json::value(nullptr) : json::value(link)},
          {"served_bytes", server.counts().bytes.load()},
          {"served_units", server.counts().units.load()},
          {"connections", server.counts().connections.load()},
          {"refused", server.counts().refused.load()},
          {"limited", g_is_limited.load()},
          {"peers", std::move(peers)}};
}

}  // namespace

// {"cache", "fleet": see fleet.hpp} → only an error. Each progress is the object `fleet` of `status --json`.
Result<json::object> serve_peers_verb(const json::object& request, const ProgressLine& progress) {
  const json::object* object = get_object(request, "fleet");
  const auto cache = cache_config_of(request);
  if (!cache) return cache.take_error();
  const auto members = fleet_members_of(object == nullptr ? json::object{} : *object);
  if (!members) return members.take_error();
  obey_limit();
  ::syscall(SYS_ioprio_set, kIoOfProcess, 0, kIdleClass);  // inherited by each thread that this one starts
  Neighbours neighbours(*members);
  fleet::ServerSettings settings{members->listen,
                                 cache->path,
                                 cache->state_dir,
                                 boards_in(cache->state_dir),
                                 members->self,
                                 kVersion,
                                 upload_of(*object, members->listen)};
  fleet::Server server(
      std::move(settings), members->security,
      [&](const std::string& /*identity*/, const std::string& address) { return neighbours.has(address); });
  StopFlag stop{false};
  auto looking = start_thread([&] {
    for (auto ask_at = std::chrono::steady_clock::now(); !stop; std::this_thread::sleep_for(kLook)) {
      server.limit(g_is_limited);
      server.look();
      const auto now = std::chrono::steady_clock::now();
      if (now < ask_at) continue;
      ask_at = now + kAskEvery;
      progress(report(server, *members, neighbours.ask()));
    }
  });
  auto served = server.run(stop);
  stop = true;
  if (looking.joinable()) looking.join();
  if (!served) return served.take_error();
  return json::object{};
}

}  // namespace spark::workers
