// The part of a set that a copy still has to get in an exchange and has not begun: large files, packs of
// small ones, and the files that are left to the copy engine. What readers wait for comes first.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "fleet/backlog/wanted_units.hpp"
#include "fleet/protocol/layout.hpp"
#include "fleet/protocol/owner.hpp"
#include "staging/copy/exchange.hpp"
#include "staging/copy/transfer/left_files.hpp"

namespace spark::fleet {

// Not thread-safe, except for needs() and left().
class Backlog {
 public:
  // Takes what is exchanged from the lists of the job, which outlives it, as does the rest.
  Backlog(staging::ExchangeJob& job, const Layout& layout, const std::vector<staging::Entry*>& entry_of);

  // Where a peer has published the set: each host begins with its share of the large files. It can send one
  // only once it is whole, and what all get at the same time only the publisher sends. `others` may stage the
  // set.
  void spread(NodeId self, std::span<const NodeId> others);

  // Nothing is left to begin, and no file is being opened or offered.
  bool is_empty() const { return large_.empty() && packs_.empty() && !opening_ && offering_ == 0; }

  // How many units and files are in progress decides whether more are begun.
  struct Busy {
    std::size_t units, files;
  };
  // The next large file to open, by its number; until opened() there is no other one. `for_readers`: only one
  // that a reader waits for.
  std::optional<std::uint64_t> take_file(const Busy& busy, bool for_readers);
  void opened() {
    opening_.reset();
    ++offering_;
  }
  // After opened(): its pieces are known to the lanes, or all of it is here. That may be hours later for one
  // that has changed its size.
  void offered() { --offering_; }
  // A reader waits for a file that is not opened while so many are.
  bool waits_for_room(std::size_t open) const { return !first_.empty() && open >= most_open_; }
  std::vector<std::uint64_t> take_packs(const Busy& busy);  // units, the first one last

  // By number of the small file. Only the lane that has its pack asks for it, and says that it got it.
  bool needs(std::uint64_t small) const { return needs_small_[small] != 0; }
  void got(std::uint64_t small);
  // Puts those that readers wait for before the others; returns how many they are.
  std::size_t put_wanted_first(std::span<std::uint64_t> small) const;

  staging::LeftFiles& left() { return left_; }

  bool has_readers() const { return viewer_ != nullptr; }
  std::optional<WantedUnit> take_wanted() {
    return has_readers() ? take_wanted_unit(*viewer_, layout_, entry_of_) : std::nullopt;
  }
  // Of a file that is not open. False if it is not exchanged, or `is_here`.
  bool bring_forward(const WantedUnit& wanted, bool is_here);
  bool take_pack(std::uint64_t unit);  // false if it is none that waits here

 private:
  const Layout& layout_;
  const std::vector<staging::Entry*>& entry_of_;
  staging::Viewer* viewer_;  // null: there is no live view
  staging::LeftFiles left_;
  std::size_t most_open_;                     // files, while readers wait for more
  std::vector<std::uint64_t> large_, packs_;  // files and units, the next one last
  std::optional<std::uint64_t> opening_{};    // a file
  std::size_t offering_ = 0;                  // files
  std::set<std::uint64_t> first_{};           // of large_, the last ones: readers wait for them
  // Index: the layout's small-file number. Not vector<bool>, in which two lanes would change bits of one
  // word.
  std::vector<char> needs_small_;
  std::set<std::uint64_t> wanted_small_{};  // of those; the same numbers
};

}  // namespace spark::fleet
