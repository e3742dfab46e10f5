// What must hold when a request ends.
#include "tests/histories/volumes/oracles.hpp"

namespace spark::histories {
namespace {

using volumes::State;

constexpr Duration kNoticesUse{10'000}, kNoticesLink{15'000};  // a `down` waits for it

}  // namespace

// After a takeover the volume is writable here, or no other host has it.
void Oracles::take_ended(const Facts& facts, const Request& request) {
  if (!*request.result || request.has_overlapped) return;
  const Super* super = facts.reached.super.get();  // perhaps of another disk, which the target shows instead
  if (super != nullptr && super->is_writer()) return;
  const std::string holder = facts.disk.holder();
  if (!holder.empty() && holder != facts.state.host->driver.identity().id)
    cluster_.judge.broken("taken-and-not-writable",
                          facts.name() + " was taken over, and " + holder + " holds its reservation");
}

void Oracles::request_ended(std::size_t host, const Request& request) {
  if (request.ask == Ask::Take) {
    each([&](const Facts& facts) {
      if (facts.index == host && facts.settings.name == request.volume) take_ended(facts, request);
    });
  }
  if (request.ask != Ask::Down) return;
  each([&](const Facts& facts) {
    if (facts.index != host || facts.settings.name != request.volume) return;
    const bool is_reached = facts.is_reached() && facts.top != nullptr;
    if (*request.result) {
      // A person may mount it after the daemon's last look at the place.
      const auto down_for = cluster_.time.wall() - facts.volume.status().since;
      const bool is_made_since =
          facts.reached.by_hand && facts.volume.status().state == State::Down && is_reached &&
          cluster_.time.steady() - facts.reached.super->opened < down_for + Duration(1'000);
      if (is_reached && !is_made_since)
        cluster_.judge.broken(facts.reached.by_hand ? "down-left-a-mount-by-hand" : "down-left-a-mount",
                              facts.name() + " was taken down, and is still mounted");
      return;
    }
    const Errc kind = request.result->error().kind;
    if (request.result->error().what.find("Invalid argument") != std::string::npos) {
      cluster_.judge.broken("down-without-next-step",
                            facts.name() + ": " + request.result->error().message());
      return;
    }
    const bool is_full = facts.state.host->state.is_full;
    const bool is_good = is_reached && facts.reached.super->is_alive() &&
                         facts.state.host->driver.io(*facts.reached.super->head) == Io::Good;
    // They may have been closed since the unmount failed, and a mount over it removed.
    const auto says = [&](const char* words) {
      return request.result->error().what.find(words) != std::string::npos;
    };
    // Its device was gone, and the programs were left on a mount of it that is detached.
    const bool is_remounted =
        is_reached && cluster_.time.steady() - facts.reached.super->opened < kNoticesUse;
    const bool were_in_use = (says("in use") || says("hides volume") || says("is mounted at") ||
                              says("was mounted there meanwhile")) &&
                             (is_remounted || cluster_.time.steady() - facts.state.cleared < kNoticesUse);
    const bool is_in_the_way =
        were_in_use || facts.is_in_use() || (facts.top != nullptr && facts.top->by_hand);
    if (kind == Errc::Cancelled || request.has_overlapped || is_in_the_way || !is_good) return;
    // Its device failed meanwhile, and is back.
    if (kind == Errc::TimedOut || says("flushing ")) return;
    const bool is_new = cluster_.time.steady() - facts.state.host->driver.changed() < kNoticesLink;
    const bool was_cut_off = (says("no path to the target is live") && (is_new || !facts.has_own_path())) ||
                             (says("still waits in the kernel") && is_new);
    if (was_cut_off) return;
    const bool has_no_name = says("can't be looked up");
    cluster_.judge.broken(is_full       ? "down-refused-without-room"
                          : has_no_name ? "down-refused-without-dns"
                                        : "down-failed",
                          facts.name() + " was not taken down, and nothing was in the way: " +
                              request.result->error().message());
  });
}

}  // namespace spark::histories
