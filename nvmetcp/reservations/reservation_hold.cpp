#include "nvmetcp/reservations/reservation_hold.hpp"

#include <algorithm>
#include <optional>

namespace spark::nvmetcp {
namespace {

const Registrant* holder_in(const ReservationReport& report) {
  const auto& all = report.registrants;
  const auto found = std::ranges::find_if(all, [](const Registrant& one) { return one.holds; });
  return found == all.end() ? nullptr : &*found;
}

// The key registered for this host ID, by any machine; none: not registered.
std::optional<std::uint64_t> registered_key(const ReservationReport& report, const LocalRegistrant& us) {
  const auto found = std::ranges::find(report.registrants, us.host_id, &Registrant::host_id);
  return found == report.registrants.end() ? std::nullopt : std::optional(found->key);
}

bool is_ours(std::uint64_t key, const LocalRegistrant& us) {
  return key == us.key || (us.former_key != 0 && key == us.former_key);
}

ReservationState holding_in(const ReservationReport& report, const LocalRegistrant& us) {
  ReservationState holding;
  holding.hold = Hold::Free;
  if (const Registrant* holder = holder_in(report)) {
    const bool is_our_id = holder->host_id == us.host_id;
    holding.hold = is_our_id && is_ours(holder->key, us) ? Hold::Ours : Hold::Theirs;
    holding.holder = holding.hold == Hold::Ours ? "" : holder->host_id;
    holding.cloned_id = holding.hold == Hold::Theirs && is_our_id;
    holding.former_key = holding.hold == Hold::Ours && holder->key != us.key;
  }
  holding.restarted = report.registrants.empty() && report.generation == 0;
  return holding;
}

// Another machine's key under our host ID stays, and the target refuses ours, unless a person takes the
// volume.
enum class OtherKey { Kept, Replaced };

Result<> make_registered(ReservationCommands& commands, const ReservationReport& report,
                         const LocalRegistrant& us, OtherKey other) {
  const auto key = registered_key(report, us);
  if (!key) return commands.register_key(us.key);
  if (*key == us.key) return {};
  if (is_ours(*key, us) || other == OtherKey::Replaced) return commands.replace_key(us.key);
  return commands.register_key(us.key);
}

// The result. Refused by the target: another host was faster, and the next report names it.
Result<ReservationState> outcome(ReservationCommands& commands, const LocalRegistrant& us,
                                 const Result<>& asked) {
  if (!asked && asked.error().kind != Errc::Refused) return asked.take_error();
  auto now = look_at_reservation(commands, us);
  if (now && !asked && now->hold != Hold::Theirs && now->hold != Hold::Ours) return asked.take_error();
  return now;
}

}  // namespace

Result<ReservationState> look_at_reservation(ReservationCommands& commands, const LocalRegistrant& us) {
  const auto report = commands.report();
  if (!report) return report.take_error();
  return *report ? holding_in(**report, us) : ReservationState{};
}

Result<ReservationState> hold_reservation(ReservationCommands& commands, const LocalRegistrant& us) {
  const auto report = commands.report();
  if (!report) return report.take_error();
  if (!*report) return ReservationState{};
  if (auto now = holding_in(**report, us); now.hold != Hold::Free) return now;
  auto done = make_registered(commands, **report, us, OtherKey::Kept);
  if (done) done = commands.acquire(us.key);
  return outcome(commands, us, done);
}

Result<ReservationState> take_reservation(ReservationCommands& commands, const LocalRegistrant& us) {
  const auto report = commands.report();
  if (!report) return report.take_error();
  if (!*report) return ReservationState{};
  if (auto now = holding_in(**report, us); now.hold == Hold::Ours && !now.former_key) return now;
  auto done = make_registered(commands, **report, us, OtherKey::Replaced);
  const Registrant* holder = holder_in(**report);
  if (done && holder == nullptr) done = commands.acquire(us.key);
  if (done && holder != nullptr && holder->host_id != us.host_id)
    done = commands.preempt(us.key, holder->key);
  return outcome(commands, us, done);
}

Result<ReservationState> keep_reservation(ReservationCommands& commands, const LocalRegistrant& us) {
  auto now = look_at_reservation(commands, us);
  if (now && now->former_key) return outcome(commands, us, commands.replace_key(us.key));
  return now;
}

Result<Change> release_reservation(ReservationCommands& commands, const LocalRegistrant& us) {
  const auto report = commands.report();
  if (!report) return report.take_error();
  const auto key = *report ? registered_key(**report, us) : std::nullopt;
  if (!key || !is_ours(*key, us)) return Change::AlreadyThere;
  if (holding_in(**report, us).hold == Hold::Ours) {
    if (auto released = commands.release(*key); !released) return released.take_error();
  }
  if (auto gone = commands.unregister_key(*key); !gone) return gone.take_error();
  return Change::Done;
}

}  // namespace spark::nvmetcp
