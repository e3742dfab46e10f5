// A host with the fleet's key whose answers a test chooses.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fleet/fetch/peer.hpp"
#include "fleet/protocol/request.hpp"
#include "fleet/transport/http.hpp"
#include "tests/support/local_port.hpp"

namespace spark::fleet::test {

class FakeHost {
 public:
  // Serves one connection until the other side closes it, which it does before the test ends this host, or
  // until `stop`. Called from several threads.
  using Serve = std::function<void(Channel&, const std::atomic<bool>& stop)>;
  FakeHost(const std::string& key, Serve serve)
      : security_(Security::make(key, "nqn.fake").value()), serve_(std::move(serve)) {
    serving_ = std::thread([this] { run(); });
  }
  ~FakeHost() {
    stop_ = true;
    serving_.join();
  }
  PeerAddress address() const { return {"fake", {at_}}; }

 private:
  std::shared_ptr<Security> security_;
  Serve serve_;
  Endpoint at_{"127.0.0.1", spark::test::LocalPort().portal.port};
  UniqueFd listening_ = listen_on(at_).value();
  std::atomic<bool> stop_{false};
  std::thread serving_;

  void run() {
    std::vector<std::thread> connections;
    while (!stop_) {
      pollfd poll{listening_.get(), POLLIN, 0};
      if (::poll(&poll, 1, 50) <= 0) continue;
      const auto socket = std::make_shared<UniqueFd>(
          ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      connections.emplace_back([this, socket] {
        const auto channel = Channel::accept(security_, std::move(*socket), std::chrono::minutes(1));
        if (channel) serve_(**channel, stop_);
      });
    }
    for (std::thread& one : connections) one.join();
  }
};

using Answer = std::function<std::string(const PeerRequest&)>;

inline FakeHost::Serve answering(Answer answer) {
  return [answer = std::move(answer)](Channel& channel, const std::atomic<bool>&) {
    for (std::string buffered;;) {
      const auto head = read_request(channel, buffered);
      const auto request = head && *head ? parse_target((*head)->target) : std::nullopt;
      if (!request) return;
      const std::string body = answer(*request);
      AnswerHead answered;
      answered.length = body.size();
      if (!channel.write_all(to_text(answered)) || !channel.write_all(body) || !channel.flush()) return;
    }
  };
}

// Answers with one byte now and then. `has_begun` outlives the host.
inline FakeHost::Serve answering_byte_by_byte(std::atomic<bool>& has_begun) {
  return [&has_begun](Channel& channel, const std::atomic<bool>& stop) {
    std::string buffered;
    const auto request = read_request(channel, buffered);
    if (!request || !*request) return;
    AnswerHead head;
    head.length = 1 << 20;
    for (Result<> sent = channel.write_all(to_text(head)); sent && !stop;) {
      sent = channel.flush();
      has_begun = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      if (sent) sent = channel.write_all("x");
    }
  };
}

}  // namespace spark::fleet::test
