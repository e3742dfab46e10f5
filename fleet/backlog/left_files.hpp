// Files that the copy engine copies, not the exchange: after it, and at once what a reader waits for.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "staging/copy/exchange.hpp"
#include "staging/copy/lanes/piece_limit.hpp"

namespace spark::fleet {

// Thread-safe.
class LeftFiles {
 public:
  explicit LeftFiles(staging::ExchangeJob& job) : job_(job) {}

  void add(staging::Entry* entry);
  // A reader waits for this unit of the view. No effect if the file is not one of them.
  void want(staging::Entry* entry, std::uint64_t unit);
  // Copies those that readers wait for. `limit` is of the whole run.
  Result<> copy_wanted(const staging::PieceLimit& limit);
  bool is_copying() const;
  void hand_over();  // gives the others back to the job

 private:
  staging::ExchangeJob& job_;
  mutable std::mutex mutex_;  // guards everything below
  std::set<staging::Entry*> waiting_{}, copying_{};
  std::deque<staging::Entry*> first_{};  // of those that wait
  std::map<const staging::Entry*, std::deque<std::uint64_t>> wanted_{};

  Result<> copy(staging::Entry& entry, const staging::PieceLimit& limit);
  std::optional<std::uint64_t> take_wanted(const staging::Entry& entry);
};

}  // namespace spark::fleet
