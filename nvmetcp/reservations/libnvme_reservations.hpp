// Reservation commands to this machine's namespaces, by libnvme.
#pragma once

#include <string>

#include "base/file.hpp"
#include "nvmetcp/reservations/reservation_hold.hpp"

namespace spark::nvmetcp {

class LibnvmeReservations final : public ReservationCommands {
 public:
  // `device`: a namespace's block device, "/dev/nvme3n1". Commands have the kernel's own time-out for I/O (30
  // s): past it the kernel resets the connection, so a shorter one would cost a slow target its link.
  static Result<LibnvmeReservations> open(const std::string& device, std::uint32_t nsid);

  Result<std::optional<ReservationReport>> report() override;
  Result<> register_key(std::uint64_t key) override;
  Result<> replace_key(std::uint64_t key) override;
  Result<> unregister_key(std::uint64_t key) override;
  Result<> acquire(std::uint64_t key) override;
  Result<> preempt(std::uint64_t key, std::uint64_t other) override;
  Result<> release(std::uint64_t key) override;

 private:
  LibnvmeReservations(UniqueFd fd, std::string device, std::uint32_t nsid)
      : fd_(std::move(fd)), device_(std::move(device)), nsid_(nsid) {}
  template <class Args>
  Args new_args() const;
  Result<> check(int status, const char* doing) const;
  Result<> read_capabilities();

  UniqueFd fd_;
  std::string device_;
  std::uint32_t nsid_;
  unsigned capabilities_ = 0;  // RESCAP, once report() has asked
};

}  // namespace spark::nvmetcp
