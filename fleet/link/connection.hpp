// A connection to a peer that moves bytes without a meaning, to measure the link.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "fleet/link/end.hpp"
#include "fleet/protocol/request.hpp"
#include "fleet/transport/channel.hpp"
#include "fleet/transport/http.hpp"

namespace spark::fleet {

enum class Way { From, To };  // the peer

// Used by one thread at a time, apart from moved().
class LinkConnection {
 public:
  // The errors of Channel::connect. `silence` is the peer's longest, in each request.
  static Result<LinkConnection> open(const std::shared_ptr<Security>& security, const Endpoint& peer,
                                     std::chrono::milliseconds patience, std::chrono::milliseconds silence);

  // The peer's end. Unsupported: its version can't be measured.
  Result<LinkEnd> end();
  Result<> receive(Bytes bytes);
  Result<> send(Bytes bytes);

  // That have crossed the link this way, by the kernel's count: unlike calls of read and write, it knows no
  // buffers. Any thread may ask.
  Bytes moved(Way way) const;
  std::string local_address() const { return channel_->local_address(); }

 private:
  LinkConnection(std::unique_ptr<Channel> channel, std::chrono::milliseconds silence);
  Result<AnswerHead> ask(const PeerRequest& request, std::string_view body);

  std::unique_ptr<Channel> channel_;
  std::chrono::milliseconds silence_;
  std::string buffered_;
};

}  // namespace spark::fleet
