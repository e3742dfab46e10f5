// A host with the fleet's key that answers each request with one byte now and then.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fleet/fetch/peer.hpp"
#include "fleet/transport/http.hpp"
#include "tests/support/local_port.hpp"

namespace spark::fleet::test {

class SlowHost {
 public:
  explicit SlowHost(const std::string& key) : security_(Security::make(key, "nqn.slow").value()) {
    serving_ = std::thread([this] { run(); });
  }
  ~SlowHost() {
    stop_ = true;
    serving_.join();
  }
  PeerAddress address() const { return {"slow", {at_}}; }
  bool is_answering() const { return is_answering_; }  // an answer has begun

 private:
  std::shared_ptr<Security> security_;
  Endpoint at_{"127.0.0.1", spark::test::LocalPort().portal.port};
  UniqueFd listening_ = listen_on(at_).value();
  std::atomic<bool> stop_{false};
  std::atomic<bool> is_answering_{false};
  std::thread serving_;

  void run() {
    std::vector<std::thread> answers;
    while (!stop_) {
      pollfd poll{listening_.get(), POLLIN, 0};
      if (::poll(&poll, 1, 50) <= 0) continue;
      const auto socket = std::make_shared<UniqueFd>(
          ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      answers.emplace_back([this, socket] {
        auto channel = Channel::accept(security_, std::move(*socket), std::chrono::milliseconds(5000));
        if (channel) answer(**channel);
      });
    }
    for (std::thread& one : answers) one.join();
  }

  void answer(Channel& channel) {
    std::string buffered;
    const auto request = read_request(channel, buffered);
    if (!request || !*request) return;
    AnswerHead head;
    head.length = 1 << 20;
    for (Result<> sent = channel.write_all(to_text(head)); sent && !stop_;) {
      sent = channel.flush();
      is_answering_ = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      if (sent) sent = channel.write_all("x");
    }
  }
};

}  // namespace spark::fleet::test
