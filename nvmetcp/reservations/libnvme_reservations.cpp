#include "nvmetcp/reservations/libnvme_reservations.hpp"

#include <fcntl.h>
#include <libnvme.h>

#include <cerrno>
#include <cstring>

#include "base/text.hpp"

namespace spark::nvmetcp {
namespace {

constexpr std::size_t kBufferPage = 4096;
constexpr std::size_t kReportBytes = 4 * kBufferPage;  // 255 registrants
constexpr int kStatusMask = 0x7ff;  // code and code type, without "do not retry" and its like

PageBuffer make_buffer(std::size_t bytes) {
  PageBuffer buffer = make_page_buffer(bytes);
  if (buffer) std::memset(buffer.get(), 0, bytes);
  return buffer;
}

}  // namespace

// Of a command of libnvme, for this namespace. Its status may be in errno: no older one is taken for it.
template <class Args>
Args LibnvmeReservations::new_args() const {
  errno = 0;
  Args args{};
  args.args_size = sizeof args;
  args.fd = fd_.get();
  args.nsid = nsid_;
  return args;
}

Result<LibnvmeReservations> LibnvmeReservations::open(const std::string& device, std::uint32_t nsid) {
  UniqueFd fd(::open(device.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return fail_errno(errno, "opening " + printable(device));
  return LibnvmeReservations(std::move(fd), printable(device), nsid);
}

// libnvme: 0 done, above 0 the target's status, below 0 errno.
Result<> LibnvmeReservations::check(int status, const char* doing) const {
  if (status == 0) return {};
  const std::string what = std::string(doing) + " of " + device_ + ": ";
  // The kernel tells some versions of libnvme about a conflict by errno.
  if ((status > 0 && (status & kStatusMask) == NVME_SC_RESERVATION_CONFLICT) ||
      (status < 0 && errno == EBADE))
    return fail(Errc::Refused, what + "another host's reservation is in the way");
  if (status > 0) return fail(Errc::Failed, what + nvme_status_to_string(status, false));
  return fail(Errc::Unavailable, what + std::strerror(errno), "the target stopped answering");
}

Result<> LibnvmeReservations::read_capabilities() {
  const auto buffer = make_buffer(kBufferPage);
  if (!buffer) return fail(Errc::Failed, "identifying " + device_ + ": out of memory");
  auto* identity = static_cast<nvme_id_ns*>(buffer.get());
  errno = 0;
  auto asked = check(nvme_identify_ns(fd_.get(), nsid_, identity), "identifying the namespace");
  if (!asked) return asked;
  auto offered = parse_reservation_capabilities({static_cast<const std::byte*>(buffer.get()), kBufferPage});
  if (!offered) return fail_with(std::move(offered.error()), "identifying " + device_);
  capabilities_ = *offered;
  return {};
}

Result<std::optional<ReservationReport>> LibnvmeReservations::report() {
  if (auto asked = read_capabilities(); !asked) return asked.take_error();
  if ((capabilities_ & NVME_NS_RESCAP_WE) == 0) return std::nullopt;
  const auto buffer = make_buffer(kReportBytes);
  if (!buffer) return fail(Errc::Failed, "reading the reservation of " + device_ + ": out of memory");
  auto args = new_args<nvme_resv_report_args>();
  args.report = static_cast<nvme_resv_status*>(buffer.get());
  args.len = kReportBytes;
  args.eds = true;
  if (auto asked = check(nvme_resv_report(&args), "reading the reservation"); !asked)
    return asked.take_error();
  return parse_reservation_report({static_cast<const std::byte*>(buffer.get()), kReportBytes});
}

// A target that can keeps the reservation over its own restart.
Result<> LibnvmeReservations::register_key(std::uint64_t key) {
  auto args = new_args<nvme_resv_register_args>();
  args.nrkey = key;
  args.rrega = NVME_RESERVATION_RREGA_REGISTER_KEY;
  args.cptpl = (capabilities_ & NVME_NS_RESCAP_PTPL) != 0 ? NVME_RESERVATION_CPTPL_PERSIST
                                                          : NVME_RESERVATION_CPTPL_NO_CHANGE;
  return check(nvme_resv_register(&args), "registering for the reservation");
}

Result<> LibnvmeReservations::replace_key(std::uint64_t key) {
  auto args = new_args<nvme_resv_register_args>();
  args.nrkey = key;
  args.rrega = NVME_RESERVATION_RREGA_REPLACE_KEY;
  args.cptpl = NVME_RESERVATION_CPTPL_NO_CHANGE;
  args.iekey = true;
  return check(nvme_resv_register(&args), "replacing the key of the registration");
}

Result<> LibnvmeReservations::unregister_key(std::uint64_t key) {
  auto args = new_args<nvme_resv_register_args>();
  args.crkey = key;
  args.rrega = NVME_RESERVATION_RREGA_UNREGISTER_KEY;
  args.cptpl = NVME_RESERVATION_CPTPL_NO_CHANGE;
  return check(nvme_resv_register(&args), "giving up the registration");
}

Result<> LibnvmeReservations::acquire(std::uint64_t key) {
  auto args = new_args<nvme_resv_acquire_args>();
  args.crkey = key;
  args.rtype = NVME_RESERVATION_RTYPE_WE;
  args.racqa = NVME_RESERVATION_RACQA_ACQUIRE;
  return check(nvme_resv_acquire(&args), "taking the reservation");
}

Result<> LibnvmeReservations::preempt(std::uint64_t key, std::uint64_t other) {
  auto args = new_args<nvme_resv_acquire_args>();
  args.crkey = key;
  args.nrkey = other;
  args.rtype = NVME_RESERVATION_RTYPE_WE;
  // Not "and abort": a Linux target would wait for a frozen host's writes with its reservations locked, and
  // its clean-up of that host's controller does not know of the waiting host.
  args.racqa = NVME_RESERVATION_RACQA_PREEMPT;
  return check(nvme_resv_acquire(&args), "taking over the reservation");
}

Result<> LibnvmeReservations::release(std::uint64_t key) {
  auto args = new_args<nvme_resv_release_args>();
  args.crkey = key;
  args.rtype = NVME_RESERVATION_RTYPE_WE;
  args.rrela = NVME_RESERVATION_RRELA_RELEASE;
  return check(nvme_resv_release(&args), "giving back the reservation");
}

}  // namespace spark::nvmetcp
