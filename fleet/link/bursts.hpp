// The bursts of one measurement: its connections move bytes, each in a thread, and their sums are taken.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "base/clock.hpp"
#include "fleet/link/measure.hpp"
#include "staging/files/io/throttle.hpp"

namespace spark::fleet {

// Sums over the bursts.
struct Moved {
  double seconds = 0, bytes = 0;           // while the bursts were at their rate
  std::chrono::nanoseconds all{};          // that the bursts took
  std::chrono::nanoseconds with_pauses{};  // in all
  Bytes own_card = 0, peer_card = 0;       // that the cards moved meanwhile
  std::chrono::nanoseconds own{}, peer{};  // the time of those, by each host's clock
  Load own_load, peer_load;                // without the time of threads
};

// What one connection did.
struct Share {
  bool has_run = false;
  std::chrono::nanoseconds busy{}, peer_before{};
  std::optional<Error> error;
};

class Bursts {
 public:
  // `control`: one more connection, which describes the peer's end; null: none.
  Bursts(Way way, const MeasureLimits& limits, std::vector<LinkConnection>& connections,
         LinkConnection* control)
      : way_(way),
        limits_(limits),
        throttle_(way == Way::To ? limits.rate : 0),
        connections_(connections),
        control_(control) {}

  // `shares`: one for each connection.
  Result<> run(std::vector<Share>& shares);
  const Moved& moved() const { return moved_; }  // after run()

 private:
  struct Ends {
    LinkEnd own, peer;
  };
  // One thread: opens and closes the bursts, and returns after the last one.
  void conduct();
  void one();
  // One thread for each connection.
  void use(LinkConnection& connection, Share& share);
  Result<> transfer(LinkConnection& connection, Bytes& block);
  // Waits for a burst after `seen`, 0 at first; false: there is none.
  bool join(unsigned& seen);
  void leave();
  // Whether `bytes` more may be moved in this burst: then they are booked.
  bool book(Bytes bytes);
  // No burst follows, and nobody waits.
  void end();
  Ends look();
  void add(const Ends& before, const Ends& after);
  Bytes moved_by_all() const;
  bool is_spent() const { return booked_ >= limits_.bytes / kBursts; }
  bool await(SteadyTime until);  // false: the bytes of the burst were booked first

  static constexpr Bytes kBursts = 4;  // that share the bytes
  const Way way_;
  const MeasureLimits limits_;
  staging::Throttle throttle_;
  std::vector<LinkConnection>& connections_;
  LinkConnection* control_;
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned number_ = 0;   // of the burst
  std::size_t busy_ = 0;  // connections in a burst
  bool is_over_ = false;
  std::atomic<bool> is_open_{false};
  std::atomic<Bytes> booked_{0};  // in this burst
  Bytes all_ = 0;                 // booked in the bursts before
  Moved moved_;
};

}  // namespace spark::fleet
