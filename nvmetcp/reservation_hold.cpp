#include "nvmetcp/reservation_hold.hpp"

#include <algorithm>
#include <optional>

namespace spark::nvmetcp {
namespace {

bool is_us(const Registrant& registrant, const Claimant& us) {
  return registrant.host_id == us.host_id && registrant.key == us.key;
}

const Registrant* holder_in(const ReservationReport& report) {
  const auto& all = report.registrants;
  const auto found = std::find_if(all.begin(), all.end(), [](const Registrant& one) { return one.holds; });
  return found == all.end() ? nullptr : &*found;
}

Holding holding_in(const ReservationReport& report, const Claimant& us) {
  Holding holding;
  holding.hold = Hold::Free;
  if (const Registrant* holder = holder_in(report)) {
    holding.hold = is_us(*holder, us) ? Hold::Ours : Hold::Theirs;
    holding.holder = is_us(*holder, us) ? "" : holder->host_id;
    holding.cloned_id = holding.hold == Hold::Theirs && holder->host_id == us.host_id;
  }
  holding.restarted = report.registrants.empty() && report.generation == 0;
  return holding;
}

bool is_registered(const ReservationReport& report, const Claimant& us) {
  return std::any_of(report.registrants.begin(), report.registrants.end(),
                     [&](const Registrant& one) { return is_us(one, us); });
}

// None: the namespace offers no reservations.
Result<std::optional<ReservationReport>> report_of(ReservationCommands& commands) {
  const auto offered = commands.offered();
  if (!offered) return tl::unexpected<Error>(offered.error());
  if (!*offered) return std::nullopt;
  auto report = commands.report();
  if (!report) return tl::unexpected<Error>(std::move(report.error()));
  return std::move(*report);
}

Result<> make_registered(ReservationCommands& commands, const ReservationReport& report, const Claimant& us) {
  if (is_registered(report, us)) return {};
  return commands.register_key(us.key);
}

// What it came to. Refused by the target: somebody was faster, and the next report tells who.
Result<Holding> outcome(ReservationCommands& commands, const Claimant& us, const Result<>& asked) {
  if (!asked && asked.error().kind != Errc::Refused) return tl::unexpected<Error>(asked.error());
  auto now = look_at_reservation(commands, us);
  if (now && !asked && now->hold != Hold::Theirs && now->hold != Hold::Ours)
    return tl::unexpected<Error>(asked.error());
  return now;
}

}  // namespace

Result<Holding> look_at_reservation(ReservationCommands& commands, const Claimant& us) {
  const auto report = report_of(commands);
  if (!report) return tl::unexpected<Error>(report.error());
  return *report ? holding_in(**report, us) : Holding{};
}

Result<Holding> hold_reservation(ReservationCommands& commands, const Claimant& us) {
  const auto report = report_of(commands);
  if (!report) return tl::unexpected<Error>(report.error());
  if (!*report) return Holding{};
  if (auto now = holding_in(**report, us); now.hold != Hold::Free) return now;
  auto done = make_registered(commands, **report, us);
  if (done) done = commands.acquire(us.key);
  return outcome(commands, us, done);
}

Result<Holding> take_reservation(ReservationCommands& commands, const Claimant& us) {
  const auto report = report_of(commands);
  if (!report) return tl::unexpected<Error>(report.error());
  if (!*report) return Holding{};
  if (auto now = holding_in(**report, us); now.hold == Hold::Ours) return now;
  const Registrant* holder = holder_in(**report);
  auto done = make_registered(commands, **report, us);
  if (done) done = holder == nullptr ? commands.acquire(us.key) : commands.preempt(us.key, holder->key);
  return outcome(commands, us, done);
}

Result<Holding> keep_reservation(ReservationCommands& commands, const Claimant& us) {
  auto now = look_at_reservation(commands, us);
  if (!now || now->hold != Hold::Free || !now->restarted) return now;
  return hold_reservation(commands, us);
}

Result<Change> release_reservation(ReservationCommands& commands, const Claimant& us) {
  const auto report = report_of(commands);
  if (!report) return tl::unexpected<Error>(report.error());
  if (!*report || !is_registered(**report, us)) return Change::AlreadyThere;
  if (holding_in(**report, us).hold == Hold::Ours) {
    if (auto released = commands.release(us.key); !released) return tl::unexpected<Error>(released.error());
  }
  if (auto gone = commands.unregister_key(us.key); !gone) return tl::unexpected<Error>(gone.error());
  return Change::Done;
}

}  // namespace spark::nvmetcp
