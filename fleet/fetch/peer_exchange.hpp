// This host's part in the exchange of a set between the hosts that stage it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "fleet/board/board.hpp"
#include "fleet/fetch/peer.hpp"
#include "fleet/fetch/presence.hpp"
#include "fleet/fetch/shared_walk.hpp"
#include "fleet/protocol/owner.hpp"
#include "staging/copy/exchange.hpp"

namespace spark::fleet {

struct ExchangeSettings {
  NodeId self = 0;
  std::filesystem::path boards;  // the folder of the boards
  std::filesystem::path data;    // the folder of the copy while it is being written
  std::vector<std::unique_ptr<Peer>> peers;
  bool is_source_away = false;  // see staging::Source::is_away
  bool is_slow = false;         // its staging has a limit or a low priority
};

class PeerExchange final : public staging::Exchange {
 public:
  explicit PeerExchange(ExchangeSettings settings);
  ~PeerExchange() override;  // withdraws a copy from peers if it is not published

  void begin(const staging::SetOrigin& origin) override;
  Result<staging::Walked> walk(const Walk& own) override;
  Result<> copy(staging::ExchangeJob& job) override;
  bool is_published_elsewhere(const std::string& hash) override;
  void published();  // the copy is published: peers can continue to read it

  // The bytes that copy() read from the source, by the reason: {"owner": 1000…}, without zeros.
  json::object read_because() const { return read_because_; }
  const std::vector<std::unique_ptr<Peer>>& peers() const { return settings_.peers; }
  const std::filesystem::path& boards() const { return settings_.boards; }
  // Sentences about peers that sent wrong data.
  std::vector<std::string> warnings() const;

 private:
  ExchangeSettings settings_;
  staging::SetOrigin origin_;
  std::string set_;  // the set's name, once its files are known
  std::unique_ptr<SharedWalk> walk_;
  std::unique_ptr<Presence> presence_;  // while the board exists
  json::object read_because_;
  std::vector<std::string> warnings_;

  SetState::Reads reads_if(bool has_source) const;
};

}  // namespace spark::fleet
