// What must hold ten minutes after the last fault.
#include "tests/histories/volumes/oracles.hpp"

namespace spark::histories {

using volumes::State;

bool Oracles::are_all_at_rest() {
  bool at_rest = true;
  each([&](const Facts& facts) {
    const State state = facts.volume.status().state;
    at_rest = at_rest && (state == State::Ready || state == State::Refused || state == State::Down);
  });
  return at_rest;
}

void Oracles::settled() {
  each([&](const Facts& facts) {
    const volumes::Status& status = facts.volume.status();
    const std::string is = facts.name() + " is " + to_string(status.state) +
                           (status.reason.empty() ? "" : ": " + status.reason) +
                           ", ten minutes after the last fault";
    if (facts.state.wish(facts.settings.name) == Wish::Unknown) return;
    if (facts.state.wish(facts.settings.name) == Wish::Down) {
      const bool is_refused = status.state == State::Refused && facts.top != nullptr && facts.top->by_hand;
      if (status.state != State::Down && !is_refused)
        cluster_.judge.broken("not-down", is + ", and an operator wants it down");
      return;
    }
    if (status.state == State::Ready) return;
    if (status.state != State::Refused) {
      const bool is_long_wait = facts.disk.fs.has_mmp && facts.disk.fs.mmp_interval > 59;
      const bool has_old_mount = status.reason.find("its file system is mounted at") != std::string::npos;
      const bool waits = status.reason.find("still waits in the kernel") != std::string::npos;
      cluster_.judge.broken(waits           ? "waits-for-an-old-device"
                            : is_long_wait  ? "never-mounted-for-long-mmp-wait"
                            : has_old_mount ? "old-mount-in-the-way"
                                            : "not-recovered",
                            is);
      return;
    }
    const std::string oracle = false_oracle_of(status.reason, facts);
    if (!oracle.empty()) cluster_.judge.broken(oracle, is);
    if (!is_judged(status.reason)) cluster_.judge.broken("unknown-reason", is);
  });
  for (HostState& state : cluster_.hosts) {
    if (!state.daemon) continue;
    for (const RequestPtr& one : state.daemon->requests()) {
      if (!one->result && !may_wait(state.host->index, *one))
        cluster_.judge.broken(without_end(*one), state.host->name + ": " + to_string(one->ask) + " " +
                                                     one->volume + " has not ended");
    }
  }
}

// A volume whose file system is recorded already needs no room.
void Oracles::settled_without_room() {
  each([&](const Facts& facts) {
    const volumes::Status& status = facts.volume.status();
    const auto& folder = facts.state.host->state;
    const auto pin = folder.pins.find(facts.settings.name);
    const bool is_pinned = pin != folder.pins.end() && pin->second.uuid == facts.disk.fs.uuid;
    const bool has_no_room = status.reason.find("No space left") != std::string::npos;
    if (folder.is_full && is_pinned && status.state != State::Ready && has_no_room)
      cluster_.judge.broken("not-up-without-room", facts.name() + " is " + to_string(status.state) + ": " +
                                                       status.reason +
                                                       ", and its file system is recorded already");
  });
}

}  // namespace spark::histories
