// Another host of the fleet, as this one asks it.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fleet/protocol/request.hpp"
#include "fleet/transport/channel.hpp"
#include "fleet/transport/http.hpp"

namespace spark::fleet {

struct PeerAddress {
  std::string name;
  std::vector<Endpoint> endpoints;  // tried in this order, the one that answered last first
  bool is_silent = false;           // it did not answer lately: nobody waits for its first answer
};

// Used by any thread: connections are kept for the next request.
class Peer {
 public:
  Peer(PeerAddress address, std::shared_ptr<Security> security)
      : address_(std::move(address)), security_(std::move(security)) {}

  const std::string& name() const { return address_.name; }
  bool is_silent() const { return address_.is_silent; }
  std::string endpoint() const;  // that answered last; empty: none

  // The answer's body goes to `into`, which has to be large enough. Silent for longer than `patience`:
  // TimedOut.
  Result<AnswerHead> get(const PeerRequest& request, std::span<char> into,
                         std::chrono::milliseconds patience);
  // The same to a file, made anew; without its name until it is whole.
  Result<> get_file(const PeerRequest& request, const std::filesystem::path& path, Bytes most,
                    std::chrono::milliseconds patience);
  Result<std::string> get_text(const PeerRequest& request, Bytes most, std::chrono::milliseconds patience);

 private:
  struct Connection {
    std::unique_ptr<Channel> channel;
    std::string buffered;
  };
  PeerAddress address_;
  std::shared_ptr<Security> security_;
  mutable std::mutex mutex_;
  std::vector<Connection> idle_;
  std::size_t good_ = 0;  // of the endpoints
  bool has_answered_ = false;

  Result<Connection> connect(std::chrono::milliseconds patience);
  template <class Take>
  Result<AnswerHead> ask(const PeerRequest& request, const Take& take, std::chrono::milliseconds patience);
};

}  // namespace spark::fleet
