// The reservation of a volume's namespace, accessed by workers.
#pragma once

#include "daemon/volumes/adapters/asker.hpp"
#include "daemon/volumes/seams/reservations.hpp"

namespace spark::volumes {

class WorkerReservations final : public Reservations {
 public:
  explicit WorkerReservations(Asker& asker) : asker_(asker) {}

  asio::awaitable<Result<nvmetcp::ReservationState>> reservation(ReservationRequest request) override;

 private:
  Asker& asker_;
};

}  // namespace spark::volumes
