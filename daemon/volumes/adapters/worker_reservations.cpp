#include "daemon/volumes/adapters/worker_reservations.hpp"

#include "daemon/workers/messages.hpp"

namespace spark::volumes {
namespace {

// Three or four commands, each answered immediately by a healthy target.
constexpr Duration kReservation{15'000};

}  // namespace

asio::awaitable<Result<nvmetcp::ReservationState>> WorkerReservations::reservation(
    ReservationRequest wanted) {
  static constexpr const char* kActs[] = {"look", "hold", "take", "release"};
  json::object request{{"act", kActs[static_cast<std::size_t>(wanted.act)]},
                       {"device", wanted.device},
                       {"subsystem", wanted.of.subsystem},
                       {"nsid", wanted.of.nsid}};
  auto answer = co_await asker_.act("reservation", std::move(request), kReservation);
  co_return workers::message_of<nvmetcp::ReservationState>(std::move(answer));
}

}  // namespace spark::volumes
