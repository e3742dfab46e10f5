// What a copy still has to get in an exchange and has not begun: large files, packs of small ones, and the
// files that are left to the copy engine. Files that readers wait for come first.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "fleet/backlog/wanted_units.hpp"
#include "fleet/protocol/layout.hpp"
#include "staging/copy/exchange.hpp"

namespace spark::fleet {

// Not thread-safe, except for needs().
class Backlog {
 public:
  // Takes what is exchanged from the lists of the job, which outlives it, as does the rest.
  Backlog(staging::ExchangeJob& job, const Layout& layout, const std::vector<staging::Entry*>& entry_of);

  // Nothing is left to begin, and no file is being opened.
  bool is_empty() const { return large_.empty() && packs_.empty() && !opening_; }

  // How many units and files are in progress decides whether more are begun.
  struct Busy {
    std::size_t units, files;
  };
  // The next large file to open, by its number; until opened() there is no other one. `for_readers`: only one
  // that a reader waits for.
  std::optional<std::uint64_t> take_file(const Busy& busy, bool for_readers);
  void opened() { opening_.reset(); }
  std::vector<std::uint64_t> take_packs(const Busy& busy);  // units, the first one last

  // By number of the small file. Only the lane that has its pack asks for it, and says that it got it.
  bool needs(std::uint64_t small) const { return needs_small_[small] != 0; }
  void got(std::uint64_t small) { needs_small_[small] = 0; }

  // The copy engine copies it after the exchange.
  void leave(staging::Entry* entry) { left_.push_back(entry); }
  // The next one of those for which a reader waits: it is copied now.
  std::optional<staging::Entry*> take_left();
  void hand_over();  // gives the rest back to the job

  bool has_readers() const { return wanted_.has_readers(); }
  std::optional<WantedUnit> take_wanted() { return wanted_.take(); }
  // Of a file that is not open. False if it is not exchanged, or `is_here`.
  bool bring_forward(const WantedUnit& wanted, bool is_here);
  bool take_pack(std::uint64_t unit);  // false if it is none that waits here

 private:
  staging::ExchangeJob& job_;
  const Layout& layout_;
  const std::vector<staging::Entry*>& entry_of_;
  WantedUnits wanted_;
  std::vector<std::uint64_t> large_, packs_;  // files and units, the next one last
  std::optional<std::uint64_t> opening_{};    // a file
  std::set<std::uint64_t> first_{};           // of large_, the last ones: readers wait for them
  // Index: the layout's small-file number. Not vector<bool>, in which two lanes would change bits of one
  // word.
  std::vector<char> needs_small_;
  std::vector<staging::Entry*> left_{}, left_first_{};
};

}  // namespace spark::fleet
