// Serves peers, and keeps the offers of adopted folders, in processes that the daemon starts and supervises.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <set>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/network/addresses.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "daemon/workers/model_json.hpp"
#include "daemon/workers/priority.hpp"
#include "daemon/workers/unmounted_folder.hpp"
#include "daemon/workers/verbs/fleet.hpp"
#include "daemon/workers/verbs/neighbours.hpp"
#include "daemon/workers/verbs/open_cache.hpp"
#include "daemon/workers/verbs/protocol.hpp"
#include "daemon/workers/verbs/verbs.hpp"
#include "daemon/workers/wire.hpp"
#include "fleet/adopted/adoptions.hpp"
#include "fleet/adopted/offer_file.hpp"
#include "fleet/adopted/verify_folder.hpp"
#include "fleet/serve/server.hpp"
#include "fleet/transport/key.hpp"

namespace spark::workers {
namespace {

constexpr std::chrono::seconds kLook{1}, kAskEvery{5};
constexpr Bytes kUnknownLink = 1'250'000'000;  // bytes per second: 10 Gbit/s
constexpr std::chrono::seconds kEnding{5};     // of the threads
constexpr int kIoOfProcess = 1, kIdleClass = 3 << 13;

Bytes upload_of(const json::object& fleet, Bytes link) {
  const double percent = get_double(fleet, "upload_percent").value_or(0);
  if (percent <= 0) return get_count(fleet, "upload_bytes");
  return static_cast<Bytes>(static_cast<double>(link == 0 ? kUnknownLink : link) * percent / 100);
}

// Set by SIGTERM too: a thread that hangs in the kernel keeps the addresses of a process that is killed.
StopFlag stop_serving{false};
static_assert(StopFlag::is_always_lock_free);

// Of the first address that an interface has now.
std::string interface_served(const FleetMembers& members) {
  for (const fleet::Endpoint& own : members.listen)
    if (std::string interface = interface_of(own.address); !interface.empty()) return interface;
  return "";
}

json::object report(const fleet::Server& server, const FleetMembers& members, Neighbours& neighbours,
                    json::array peers) {
  json::object all = server.report();
  for (json::value& client : all["clients"].as_array()) {
    const std::string address(client.at("address").as_string());
    const std::string name = neighbours.name_of(address);
    client.as_object()["name"] = name.empty() ? address : name;  // a node of a job has no name here
  }
  const std::string interface = interface_served(members);
  const Bytes link = link_rate(interface);
  std::string listen;
  for (const fleet::Endpoint& own : members.listen)
    listen += (listen.empty() ? "" : ", ") + fleet::to_string(own);
  all["listen"] = listen;
  all["interface"] = or_null(interface);
  all["link_bytes_per_second"] = or_null(link);
  all["limited"] = server.is_limited();
  all["peers"] = std::move(peers);
  return all;
}

json::object shown(const fleet::Adoption& one) {
  const bool is_offered = one.state() == fleet::AdoptionState::Offered;
  json::object shown{{"name", printable(one.folder().dataset)},
                     {"state", fleet::to_string(one.state())},
                     {"reason", is_offered ? json::value(nullptr) : json::value(one.reason())}};
  if (!is_offered) return shown;
  shown["bytes"] = one.summary().bytes;
  shown["files"] = one.summary().files;
  shown["hash"] = one.summary().hash;
  return shown;
}

// "adopted"?: [see adopted_to_json…]
std::vector<fleet::AdoptedFolder> adopted_folders_of(const json::object& request) {
  std::vector<fleet::AdoptedFolder> folders;
  for (const json::object& one : objects_in(request, "adopted")) {
    folders.push_back({get_text(one, "dataset"), get_text(one, "path"), get_strings(one, "exclude"),
                       links_from_string(get_text(one, "links")), model_of(one)});
  }
  return folders;
}

}  // namespace

// {"cache", "fleet": see fleet.hpp, "folders": names of exchanged datasets in plain folders, "adopted"?: see
// adopted_folders_of} → {} once the key file has another key, so that the daemon starts it again with that
// one; else only an error. Each progress is the object `fleet` of `status --json`.
Result<json::object> serve_peers_verb(const json::object& request, const ProgressLine& progress) {
  const json::object* object = get_object(request, "fleet");
  const auto cache = cache_config_of(request);
  if (!cache) return cache.take_error();
  const auto members = fleet_members_of(object == nullptr ? json::object{} : *object);
  if (!members) return members.take_error();
  ::syscall(SYS_ioprio_set, kIoOfProcess, 0, kIdleClass);  // inherited by each thread that this one starts
  const std::filesystem::path boards = boards_in(cache->state_dir);
  fleet::NameService names(addresses_behind);
  // Peers that are refused in the first moments would be counted as hosts that do not belong here.
  Neighbours neighbours(*members, names, std::chrono::milliseconds(500));
  const std::string interface = interface_served(*members);
  fleet::ServerSettings settings{members->listen,
                                 cache->path,
                                 cache->state_dir,
                                 boards,
                                 members->self,
                                 kVersion,
                                 upload_of(*object, link_rate(interface)),
                                 interface,
                                 link_rate(interface)};
  for (std::string& folder : get_strings(request, "folders")) settings.folders.insert(std::move(folder));
  settings.adopted = adopted_folders_of(request);
  std::set<std::string> adopted;
  for (const fleet::AdoptedFolder& folder : settings.adopted) adopted.insert(folder.dataset);
  fleet::forget_others(settings.state_dir, adopted);
  fleet::Server server(std::move(settings), members->security, [&](const std::string& address) {
    return neighbours.has(address) || is_noted_node(boards, address);
  });
  fleet::KeyWatch key(members->key_file, members->security->key());
  ::signal(SIGTERM, [](int /*signal*/) { stop_serving = true; });
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (auto listening = server.listen(); !listening) return listening.take_error();
  progress(report(server, *members, neighbours, {}));  // peers are served before any of them was asked
  StopFlag& stop = stop_serving;
  const auto look = [&] {
    for (; !stop; std::this_thread::sleep_for(kLook)) server.look();
  };
  const auto watch_key = [&] {
    for (; !stop; std::this_thread::sleep_for(kLook))
      if (key.is_replaced()) stop = true;
  };
  const auto ask = [&] {
    json::array peers, offered;
    for (auto ask_at = std::chrono::steady_clock::now(); !stop; std::this_thread::sleep_for(kLook)) {
      const auto now = std::chrono::steady_clock::now();
      json::array then = std::exchange(offered, server.offered());
      if (now < ask_at && then == offered) continue;
      if (now >= ask_at) {
        ask_at = now + kAskEvery;
        peers = neighbours.ask();
        if (stop) break;  // the next process notes other ones
        note_peers(boards, neighbours.found(), peers);
      }
      progress(report(server, *members, neighbours, peers));
    }
  };
  std::atomic<int> running{0};
  const auto start = [&](auto work) {
    ++running;
    auto thread = start_thread([&running, work] {
      work();
      --running;
    });
    if (!thread.joinable()) --running;
    return thread;
  };
  // Only the first one waits for the cache's drive, which may not keep an old key in use.
  std::array threads{start(look), start(watch_key), start(ask)};
  auto served = server.run(stop);
  stop = true;
  const auto until = std::chrono::steady_clock::now() + kEnding;
  while (running > 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const bool hangs = !served && served.error().kind == Errc::TimedOut;
  if (hangs || running > 0) end_with(json::object{});
  for (auto& thread : threads)
    if (thread.joinable()) thread.join();
  return empty_answer(std::move(served));
}

// {"cache", "fleet"} → {"peers": see Neighbours::About::Datasets}
Result<json::object> ask_peers_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const json::object* object = get_object(request, "fleet");
  const auto members = fleet_members_of(object == nullptr ? json::object{} : *object);
  if (!members) return members.take_error();
  fleet::NameService names(addresses_behind);
  return json::object{{"peers", Neighbours(*members, names).ask(Neighbours::About::Datasets)}};
}

// {"state_dir", "adopted": see adopted_folders_of} → only an error. Each progress is {"adopted": [{"name",
// "state": "changing" | "hashing" | "offered" | "failed", "reason", "bytes"?, "files"?, "hash"?}…]}.
Result<json::object> adopt_folders_verb(const json::object& request, const ProgressLine& progress) {
  const SystemClock clock;
  // Reading for other hosts yields to all that runs here.
  if (auto set = set_priority(::getpid(), Priority::Idle); !set) return set.take_error();
  const auto unmounted = [](const std::filesystem::path& path) { return unmounted_on_the_way(path); };
  fleet::Adoptions adoptions(adopted_folders_of(request), get_text(request, "state_dir"), clock, unmounted);
  json::array told;
  const auto report = [&] {
    json::array all;
    for (const fleet::Adoption& one : adoptions.all()) all.push_back(shown(one));
    if (all != told) progress({{"adopted", all}});
    told = std::move(all);
  };
  report();
  for (;; std::this_thread::sleep_for(kLook)) adoptions.look(report, kNeverStopped);
}

// {"cache", "adopted": [one, see adopted_folders_of], "sha256"} → {"dataset", "bytes", "files", "seconds",
// "sha256_files"}
Result<json::object> verify_adopted_verb(const json::object& request, const ProgressLine& progress) {
  const auto cache = cache_config_of(request);
  if (!cache) return cache.take_error();
  const auto folders = adopted_folders_of(request);
  if (folders.size() != 1) return fail(Errc::Invalid, "verify-adopted takes one folder");
  // As the adoption itself: any member of the group may ask for it.
  if (auto set = set_priority(::getpid(), Priority::Idle); !set) return set.take_error();
  const staging::ProgressSink sink = [&](const staging::CopyProgress& now) { progress(to_json(now)); };
  const bool sha256 = get_bool(request, "sha256").value_or(false);
  const auto verified = fleet::verify_folder(folders.front(), cache->state_dir, sha256, sink, kNeverStopped);
  if (!verified) return verified.take_error();
  return json::object{{"dataset", folders.front().dataset},
                      {"bytes", verified->summary.bytes},
                      {"files", verified->summary.files},
                      {"seconds", verified->seconds},
                      {"sha256_files", verified->sha256_files}};
}

}  // namespace spark::workers
