// The buffers that all connections of a server share.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "staging/files/io/direct_io.hpp"

namespace spark::fleet {

// Thread-safe. Outlives its loans.
class BufferPool {
 public:
  struct GiveBack {
    BufferPool* pool = nullptr;
    std::string client;
    void operator()(staging::IoBuffer* buffer) const { pool->give_back(buffer, client); }
  };
  using Loan = std::unique_ptr<staging::IoBuffer, GiveBack>;
  using Make = std::function<std::unique_ptr<staging::IoBuffer>()>;

  static constexpr std::size_t kMost = 4;  // times `most`: as many buffers as there may ever be

  // Makes each of `most` buffers when it is first needed, and keeps it.
  BufferPool(std::size_t most, Make make) : most_(most), make_(std::move(make)) { free_.reserve(most); }

  // Waits while the client has its share: the buffers, divided by the clients that have or await one, and at
  // least one. Slow clients that took all of them before do not keep it from another one, which gets an extra
  // buffer then, up to kMost times as many; beyond that it waits. Throws what `make` throws.
  Loan take(const std::string& client);
  // The buffer leaves the accounts: its holder may never return it. It is freed once it does.
  void write_off(const Loan& loan);
  std::size_t in_use() const;  // without those written off

 private:
  struct Client {
    std::size_t held = 0, waiting = 0;
  };

  const std::size_t most_;
  const Make make_;
  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::vector<std::unique_ptr<staging::IoBuffer>> free_;
  std::size_t made_ = 0;
  std::set<const staging::IoBuffer*> written_off_;
  std::map<std::string, Client> clients_;  // that have or await a buffer

  bool has_share(const Client& client) const;
  void forget_idle(const std::string& client);
  void give_back(staging::IoBuffer* buffer, const std::string& client);
};

}  // namespace spark::fleet
