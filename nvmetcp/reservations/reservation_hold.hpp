// Taking, keeping, taking over and giving back the write-exclusive reservation of a namespace. The
// commands are behind an interface; their use is decided here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "nvmetcp/reservations/reservation.hpp"

namespace spark::nvmetcp {

// The commands of one namespace. Each may block while the target is silent: workers only. Refused: the target
// says that another host's reservation, or another key, is in the way.
class ReservationCommands {
 public:
  virtual ~ReservationCommands() = default;
  // None: the namespace offers no write-exclusive reservations (its RESCAP).
  virtual Result<std::optional<ReservationReport>> report() = 0;
  virtual Result<> register_key(std::uint64_t key) = 0;
  // Registers this host ID with another key, whichever it has now; the reservation stays. Only for a host ID
  // that is registered: for another one, targets differ (Linux's registers it).
  virtual Result<> replace_key(std::uint64_t key) = 0;
  virtual Result<> unregister_key(std::uint64_t key) = 0;
  virtual Result<> acquire(std::uint64_t key) = 0;
  // Takes it from the host registered with `other`. Commands of that host that the target has accepted may
  // still complete.
  virtual Result<> preempt(std::uint64_t key, std::uint64_t other) = 0;
  virtual Result<> release(std::uint64_t key) = 0;
};

enum class Hold {
  Unsupported,  // the namespace offers none
  Free,         // no host holds it
  Ours,
  Theirs,
};

struct ReservationState {
  Hold hold = Hold::Unsupported;
  std::string holder;       // host ID; with Theirs alone
  bool cloned_id = false;   // Theirs, under this host's own ID: two machines have it, or the key has changed
  bool former_key = false;  // Ours by the key of an earlier release, which a copy of this machine has as well
  bool restarted = false;   // Free, and the target has no registrations: it was restarted
};

Result<ReservationState> look_at_reservation(ReservationCommands& commands, const LocalRegistrant& us);

// Makes it ours if it is free. Theirs is an answer, not an error.
Result<ReservationState> hold_reservation(ReservationCommands& commands, const LocalRegistrant& us);

// Makes it ours, regardless of its holder and of the key that this host ID has registered.
Result<ReservationState> take_reservation(ReservationCommands& commands, const LocalRegistrant& us);

// For a mounted volume: looks, and puts our present key in place of the former one. A reservation that the
// target forgot is not made again: a worker whose answer is lost would hide that it was gone.
Result<ReservationState> keep_reservation(ReservationCommands& commands, const LocalRegistrant& us);

// Gives it back, if it is ours.
Result<Change> release_reservation(ReservationCommands& commands, const LocalRegistrant& us);

}  // namespace spark::nvmetcp
