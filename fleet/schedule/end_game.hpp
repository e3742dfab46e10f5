// Units that a slow owner has not begun, for a host whose own share is read. The hosts' views of each other
// are up to a second old, so a unit that its owner may begin soon is left to it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "fleet/protocol/owner.hpp"
#include "fleet/schedule/peer_view.hpp"

namespace spark::fleet {

// A host that had none of its own share to read for this time reads for slow owners.
inline constexpr std::chrono::milliseconds kIdle{2000};
// What an owner begins within this time at its pace is left to it: the others' claims reach it by then.
inline constexpr std::chrono::milliseconds kSoon{2000};

// Not thread-safe.
class EndGame {
 public:
  // As seen by this host. `owners` includes it, and not only it.
  struct View {
    NodeId self = 0;
    std::span<const std::uint64_t> waiting;
    std::span<const PeerView> peers;
    std::span<const NodeId> owners;
    const std::function<bool(std::uint64_t)>& is_free;  // neither had nor read by a peer
  };

  // In the order in which their owner reads them, apart from the order within one call.
  void added(std::span<const std::uint64_t> units);
  // This host reads a unit of its own share.
  void began();
  void ended() { --own_reads_; }
  // Whether find() would find nothing, whatever the view is.
  bool is_busy() const { return own_reads_ != 0; }
  // A unit that this host should read in its owner's place.
  std::optional<std::uint64_t> find(const View& view, SteadyTime now);

 private:
  // What an owner does while this host is idle.
  struct Owner {
    std::vector<std::uint64_t> left{};  // not begun
    std::uint64_t begun = 0;            // units, since paced_since_
    std::uint64_t begun_before = 0;     // in the kPaced before
    bool is_reading = false;            // one of its own share, now
    bool has_begun = false;             // something, in this time
  };
  std::map<std::uint64_t, std::uint64_t> added_;  // key: the last unit of a call; value: the call's number
  unsigned own_reads_ = 0;                        // under way
  std::optional<SteadyTime> idle_since_;
  SteadyTime looked_at_{}, paced_since_{};
  std::map<NodeId, Owner> owners_;    // since this host is idle
  std::vector<std::uint64_t> found_;  // by the last look, the next one last

  void look(const View& view, SteadyTime now);
  void choose(const View& view, SteadyTime now);
};

}  // namespace spark::fleet
