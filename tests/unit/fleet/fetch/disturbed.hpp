// A test's hooks in an exchange.
#pragma once

#include <functional>
#include <string>

#include "fleet/fetch/peer_exchange.hpp"
#include "fleet/protocol/set_id.hpp"
#include "staging/copy/exchange.hpp"

namespace spark::fleet::test {

// An exchange in which something happens after the walk, before the copy, and before each read.
struct Disturbed final : staging::Exchange {
  PeerExchange& inner;
  staging::SetOrigin origin;  // once begun
  std::string set;            // its name, before the copy
  std::function<void()> after_walk;
  std::function<void(staging::ExchangeJob&)> before_copy;
  std::function<void(const std::string& path, Bytes offset)> before_read;

  explicit Disturbed(PeerExchange& inner) : inner(inner) {}
  void begin(const staging::SetOrigin& begun) override {
    origin = begun;
    inner.begin(begun);
  }
  Result<staging::Walked> walk(const Walk& own) override {
    auto walked = inner.walk(own);
    if (after_walk) after_walk();
    return walked;
  }
  Result<> copy(staging::ExchangeJob& job) override {
    SetNaming naming(origin);
    for (const staging::Entry& entry : job.entries)
      if (staging::is_content(entry)) naming.add(entry);
    set = naming.id();
    if (before_copy) before_copy(job);
    if (before_read) job.context.before_read = before_read;
    return inner.copy(job);
  }
  bool is_published_elsewhere(const std::string& hash) override { return inner.is_published_elsewhere(hash); }
};

}  // namespace spark::fleet::test
