// The client for another host of the fleet.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fleet/protocol/request.hpp"
#include "fleet/transport/channel.hpp"
#include "fleet/transport/current_security.hpp"
#include "fleet/transport/http.hpp"

namespace spark::fleet {

struct PeerAddress {
  std::string name;
  std::vector<Endpoint> endpoints;  // tried in this order, after the one that answered last
  bool is_silent = false;           // it did not answer recently: do not wait for its first answer
};

// Thread-safe; connections are kept for the next request.
class Peer {
 public:
  // `security` may be shared by all peers, which then learn of a new key together.
  Peer(PeerAddress address, std::shared_ptr<CurrentSecurity> security)
      : address_(std::move(address)), security_(std::move(security)) {}
  Peer(PeerAddress address, std::shared_ptr<Security> security)
      : Peer(std::move(address), std::make_shared<CurrentSecurity>(std::move(security))) {}

  const std::string& name() const { return address_.name; }
  bool is_silent() const { return address_.is_silent; }
  std::string endpoint() const;  // the one that answered last; empty: none

  // Stores the answer's body in `into`, which must be large enough. TimedOut beyond the limits.
  Result<AnswerHead> get(const PeerRequest& request, std::span<char> into, const TimeLimits& limits);
  // The same into a new file, which gets its name only when it is complete.
  Result<> get_file(const PeerRequest& request, const std::filesystem::path& path, Bytes most,
                    const TimeLimits& limits);
  // Cancelled: `interrupt` is set; null means never.
  Result<std::string> get_text(const PeerRequest& request, Bytes most, const TimeLimits& limits,
                               const Interrupt* interrupt = nullptr);

 private:
  struct Connection {
    std::unique_ptr<Channel> channel;
    std::string buffered;
  };
  PeerAddress address_;
  std::shared_ptr<CurrentSecurity> security_;
  mutable std::mutex mutex_;
  std::vector<Connection> idle_;
  std::size_t good_ = 0;  // index in the endpoints
  bool has_answered_ = false;

  Result<std::unique_ptr<Channel>> open_channel(const Endpoint& endpoint, std::chrono::milliseconds patience,
                                                const Interrupt* interrupt);
  Result<Connection> connect(std::chrono::milliseconds patience, const Interrupt* interrupt);
  template <class Take>
  Result<AnswerHead> ask(const PeerRequest& request, const Take& take, const TimeLimits& limits,
                         const Interrupt* interrupt = nullptr);
};

}  // namespace spark::fleet
