// A host of a fleet on the loopback interface, with its own cache and server.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <thread>

#include "base/clock.hpp"
#include "fleet/copies/elsewhere.hpp"
#include "fleet/fetch/peer_exchange.hpp"
#include "fleet/serve/server.hpp"
#include "fleet/transport/key.hpp"
#include "staging/cache/cache.hpp"
#include "staging/cache/folder/cache_folder.hpp"
#include "tests/support/local_port.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::fleet::test {

class FleetHost {
 public:
  FleetHost(const std::string& key, std::string name,
            std::chrono::milliseconds greeting = std::chrono::seconds(5),
            TimeLimits sending = {std::chrono::seconds(5), std::chrono::seconds(30)},
            std::vector<AdoptedFolder> adopted = {})
      : security_(Security::make(key, std::move(name)).value()),
        at_{"127.0.0.1", spark::test::LocalPort().portal.port},
        server_({{at_},
                 config_.path,
                 config_.state_dir,
                 boards(),
                 self(),
                 "1",
                 0,
                 "",
                 0,
                 greeting,
                 sending,
                 {"set"},
                 std::move(adopted)},
                security_, [](const std::string& /*address*/) { return true; }) {
    ::signal(SIGPIPE, SIG_IGN);  // as in each worker
    EXPECT_TRUE(cache()) << "no cache";
    EXPECT_TRUE(server_.listen());  // before the first client
    serving_ = std::thread([this] { EXPECT_TRUE(server_.run(stop_)); });
  }
  ~FleetHost() {
    stop_ = true;
    serving_.join();
  }

  NodeId self() const { return node_id("nqn", to_string(at_)); }
  PeerAddress address() const { return {"peer", {at_}}; }
  std::filesystem::path cache_path() const { return config_.path; }
  std::filesystem::path state_dir() const { return config_.state_dir; }
  std::filesystem::path boards() const { return config_.state_dir / "fleet"; }
  std::unique_ptr<staging::Cache> cache() {
    auto opened = staging::Cache::open(config_, clock_);
    return opened ? std::move(*opened) : nullptr;
  }
  std::filesystem::path manifest(std::uint64_t generation) const {  // of the dataset "set"
    return staging::CacheFolder(config_.path).place("set", generation).manifest();
  }
  Server& server() { return server_; }

  std::unique_ptr<PeerExchange> exchange(const std::vector<PeerAddress>& peers, bool is_source_away = false,
                                         bool is_slow = false) {
    ExchangeSettings settings;
    settings.is_slow = is_slow;
    settings.self = self();
    settings.boards = boards();
    settings.data = staging::CacheFolder(config_.path).partial("set") / "data";
    settings.is_source_away = is_source_away;
    for (const PeerAddress& peer : peers) settings.peers.push_back(std::make_unique<Peer>(peer, security_));
    return std::make_unique<PeerExchange>(std::move(settings));
  }

  Result<staging::Staged> stage(const staging::Source& source, const std::vector<PeerAddress>& peers) {
    staging::CopyOptions options;
    const auto with = exchange(peers, source.is_away);
    options.exchange = with.get();
    auto staged = cache()->stage(source, options, {}, stop_);
    if (staged) with->published();
    return staged;
  }

  // A dataset that has no source here.
  Result<staging::Staged> stage_elsewhere(staging::Source source, const std::vector<PeerAddress>& peers) {
    source.is_away = true;
    source.path = "peers:" + source.dataset;
    staging::CopyOptions options;
    const auto with = exchange(peers, true);
    const auto to = cache();
    options.exchange = with.get();
    if (auto found = find_elsewhere(source, *to, *with); !found) return found.take_error();
    auto staged = to->stage(source, options, {}, stop_);
    if (staged) with->published();
    return staged;
  }

 private:
  spark::test::TempFolder folder_;
  staging::CacheConfig config_{folder_ / "cache", folder_ / "state", 0, 0};
  SystemClock clock_;
  StopFlag stop_{false};
  std::shared_ptr<Security> security_;
  Endpoint at_;
  Server server_;
  std::thread serving_;
};

}  // namespace spark::fleet::test
