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
  // Called from several threads.
  using Answer = std::function<std::string(const PeerRequest&)>;
  FakeHost(const std::string& key, Answer answer)
      : security_(Security::make(key, "nqn.fake").value()), answer_(std::move(answer)) {
    serving_ = std::thread([this] { run(); });
  }
  ~FakeHost() {
    stop_ = true;
    serving_.join();
  }
  PeerAddress address() const { return {"fake", {at_}}; }

 private:
  std::shared_ptr<Security> security_;
  Answer answer_;
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
      connections.emplace_back([this, socket] { serve(std::move(*socket)); });
    }
    for (std::thread& one : connections) one.join();
  }

  // Until the other side closes the connection, which it does before the test ends this host.
  void serve(UniqueFd socket) {
    const auto channel = Channel::accept(security_, std::move(socket), std::chrono::minutes(1));
    for (std::string buffered; channel;) {
      const auto head = read_request(**channel, buffered);
      const auto request = head && *head ? parse_target((*head)->target) : std::nullopt;
      if (!request) return;
      const std::string body = answer_(*request);
      AnswerHead answer;
      answer.length = body.size();
      if (!(*channel)->write_all(to_text(answer)) || !(*channel)->write_all(body) || !(*channel)->flush())
        return;
    }
  }
};

}  // namespace spark::fleet::test
