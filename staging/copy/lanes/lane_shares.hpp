// How a run's lanes are shared by pieces and by the units that readers wait for.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "staging/copy/lanes/piece_limit.hpp"
#include "staging/manifest/units.hpp"

namespace spark::staging {

// wanted() and moved() are guarded by the user, the others are called from any thread.
class LaneShares {
 public:
  // `limit`: none means as many pieces as lanes.
  LaneShares(const PieceLimit* limit, std::size_t lanes, bool has_readers)
      : limit_(limit), lanes_(lanes), has_readers_(has_readers) {}

  // Whether units are copied before their pieces. A single lane copies whole pieces.
  bool has_units() const { return has_readers_ && limit_ != nullptr && lanes_ > 1 && limit_->is_slow(); }

  // Neither kind gets all lanes: none waits for the end of the other.
  std::uint64_t most_units() const { return lanes_ - (lanes_ + 3) / 4; }
  std::uint64_t most_pieces() const {
    if (limit_ == nullptr) return lanes_;
    if (!has_units()) return limit_->most();
    return std::min({limit_->most(), most_units(), is_waited_for() ? kPiecesBesideUnits : lanes_});
  }
  std::size_t chunk_of_piece(std::size_t usual) const {
    return is_waited_for() && has_units() ? std::min<std::size_t>(usual, kChunkBesideUnits) : usual;
  }

  void wanted() { requests_left_ = kRequestsAfterUnit; }  // a unit
  void moved() {                                          // a request has ended
    if (requests_left_ > 0) --requests_left_;
  }

 private:
  // While readers wait at a slow source, little is under way before a unit: so many pieces, in such chunks.
  // The source's rate is reached all the same, as one piece is read while the other is written.
  static constexpr std::uint64_t kPiecesBesideUnits = 2;
  static constexpr Bytes kChunkBesideUnits = kViewUnit / 2;
  static constexpr unsigned kRequestsAfterUnit = 512;  // for so long, more units are expected

  const PieceLimit* limit_;
  std::uint64_t lanes_;
  bool has_readers_;
  std::atomic<unsigned> requests_left_{0};

  bool is_waited_for() const { return requests_left_ > 0; }
};

}  // namespace spark::staging
