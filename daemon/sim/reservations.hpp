// A namespace's reservation as kept by a target (write exclusive), in memory, and the commands of one host.
// Answers like Linux's target (drivers/nvme/target/pr.c): one registration for each host ID, and a command
// with another key than the registered one conflicts.
#pragma once

#include <algorithm>
#include <vector>

#include "nvmetcp/reservations/reservation_hold.hpp"

namespace spark::sim {

struct KeptReservations {
  bool offers = true;
  nvmetcp::ReservationReport state;
  std::vector<std::string> commands;  // in order

  nvmetcp::Registrant* find(const std::string& host_id) {
    auto& all = state.registrants;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](auto& one) { return one.host_id == host_id; });
    return found == all.end() ? nullptr : &*found;
  }
  nvmetcp::Registrant* holder() {
    auto& all = state.registrants;
    const auto found = std::find_if(all.begin(), all.end(), [](auto& one) { return one.holds; });
    return found == all.end() ? nullptr : &*found;
  }
  // A target that does not persist reservations.
  void restart() { state = {}; }
};

class SimulatedReservations final : public nvmetcp::ReservationCommands {
 public:
  SimulatedReservations(KeptReservations& space, std::string host_id)
      : space_(space), host_id_(std::move(host_id)) {}

  Result<std::optional<nvmetcp::ReservationReport>> report() override {
    return space_.offers ? std::optional(space_.state) : std::nullopt;
  }
  Result<> register_key(std::uint64_t key) override {
    space_.commands.emplace_back("register");
    if (const nvmetcp::Registrant* known = space_.find(host_id_); known != nullptr && known->key != key)
      return conflict();
    if (space_.find(host_id_) == nullptr) space_.state.registrants.push_back({host_id_, key, false});
    ++space_.state.generation;
    return {};
  }
  Result<> replace_key(std::uint64_t key) override {
    space_.commands.emplace_back("replace");
    nvmetcp::Registrant* us = space_.find(host_id_);
    if (us == nullptr) return conflict();
    us->key = key;
    ++space_.state.generation;
    return {};
  }
  Result<> unregister_key(std::uint64_t key) override {
    space_.commands.emplace_back("unregister");
    if (!is_registered_with(key)) return conflict();
    std::erase_if(space_.state.registrants, [&](auto& one) { return one.host_id == host_id_; });
    ++space_.state.generation;
    return {};
  }
  Result<> acquire(std::uint64_t key) override {
    space_.commands.emplace_back("acquire");
    nvmetcp::Registrant* us = space_.find(host_id_);
    if (!is_registered_with(key) || (space_.holder() != nullptr && space_.holder() != us)) return conflict();
    us->holds = true;
    return {};
  }
  Result<> preempt(std::uint64_t key, std::uint64_t other) override {
    space_.commands.emplace_back("preempt");
    if (!is_registered_with(key)) return conflict();
    std::erase_if(space_.state.registrants,
                  [&](auto& one) { return one.key == other && one.host_id != host_id_; });
    ++space_.state.generation;
    space_.find(host_id_)->holds = true;
    return {};
  }
  Result<> release(std::uint64_t key) override {
    space_.commands.emplace_back("release");
    if (!is_registered_with(key)) return conflict();
    space_.find(host_id_)->holds = false;
    return {};
  }

 private:
  bool is_registered_with(std::uint64_t key) {
    const nvmetcp::Registrant* us = space_.find(host_id_);
    return us != nullptr && us->key == key;
  }
  static tl::unexpected<Error> conflict() {
    return fail(Errc::Refused, "another host's reservation is in the way");
  }
  KeptReservations& space_;
  std::string host_id_;
};

}  // namespace spark::sim
