#include "cli/format/namespace_formatter.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/text.hpp"
#include "cli/client/bounded_call.hpp"
#include "nvmetcp/reservations/libnvme_reservations.hpp"

namespace spark::cli {
namespace {

using nvmetcp::Hold;
using nvmetcp::ReservationState;

constexpr Duration kLookDeadline{60'000};
constexpr Duration kMkfs{30 * 60'000};                // many terabytes, over a slow wire
constexpr Duration kMake = kMkfs + Duration(60'000);  // and the steps before and after it

std::string name_of(const FormatRequest& request) {
  return "namespace " + std::to_string(request.nsid) + " of " + printable(request.subsystem);
}

tl::unexpected<Error> held_elsewhere(const FormatRequest& request, const ReservationState& holding) {
  if (holding.cloned_id) {
    return fail(Errc::Refused,
                "another machine with this host's own host ID " + holding.holder +
                    " holds the reservation of " + name_of(request),
                "one of the two is a copy of the other: on the copy `sudo spark-stage host new-identity`");
  }
  return fail(Errc::Refused,
              "the host with host ID " + holding.holder + " holds the reservation of " + name_of(request),
              "nothing was written; `spark-stage volumes down` there gives it back");
}

// Nobody else's; and there is one where the volume could not be mounted without.
Result<Hold> check_reservation(const FormatRequest& request, const ReservationState& holding) {
  if (holding.hold == Hold::Theirs) return held_elsewhere(request, holding);
  if (holding.hold != Hold::Unsupported || !request.must_reserve) return holding.hold;
  const bool xfs = request.filesystem.type == "xfs";
  return fail(Errc::Refused,
              name_of(request) + " offers no reservation, and " +
                  (xfs ? "xfs has no multi-mount protection: nothing would keep a second writer out"
                       : "the volume asks for one (`fence: reservation`)"),
              xfs ? "make an ext4, or switch reservations on at the target (nvmet: resv_enable)"
                  : "switch reservations on at the target (nvmet: resv_enable), or use `fence: auto`");
}

Result<ReservationState> ask(const FormatRequest& request, nvmetcp::ReservationCommands& commands) {
  return request.may_reserve ? nvmetcp::look_at_reservation(commands, request.us) : ReservationState{};
}

using Steps = Result<Hold> (*)(const FormatRequest&, nvmetcp::ReservationCommands&, const FormatDevice&);

// In a child of `parent`: the end of the command ends its work, and mkfs dies with this process.
Result<Hold> in_this_process(const FormatRequest& request, Steps steps, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) return fail(Errc::Cancelled, "the command has ended");
  auto commands = nvmetcp::LibnvmeReservations::open(request.device, request.nsid);
  if (!commands) return commands.take_error();
  const UnfinishedFormat& unfinished = request.unfinished;
  const BlankDevice blank{request.device, request.device_number,
                          unfinished.is_there() ? Leftovers::Ours : Leftovers::None};
  const auto make = [&]() -> Result<> {
    const auto made = make_filesystem(
        blank, request.filesystem, [&] { return unfinished.begin(); }, kMkfs);
    if (made) unfinished.end();
    return made;
  };
  // A complete file system means that the interrupted attempt had finished. With its note, a later attempt
  // would mistake another host's data for its own remains.
  const auto check = [&]() -> Result<> {
    auto found = check_blank(blank);
    if (!found && found.error().kind == Errc::Refused) unfinished.end();
    return found;
  };
  const FormatDevice device{check, make};
  return steps(request, *commands, device);
}

class BoundedFormatter final : public NamespaceFormatter {
 public:
  Result<Hold> look(const FormatRequest& request) override {
    return call(request, kLookDeadline, look_before_format);
  }
  Result<Hold> make(const FormatRequest& request) override {
    return call(request, kMake, format_under_reservation);
  }

 private:
  static Result<Hold> call(const FormatRequest& request, Duration deadline, Steps steps) {
    const pid_t parent = ::getpid();
    auto hold = call_bounded(deadline, [&] { return in_this_process(request, steps, parent); });
    if (hold) return hold;
    Error& error = hold.error();
    if (error.hint.empty()) error.hint = "`spark-stage status` shows whether the target answers";
    return fail_with(std::move(error), "formatting " + name_of(request));
  }
};

}  // namespace

Result<Hold> look_before_format(const FormatRequest& request, nvmetcp::ReservationCommands& commands,
                                const FormatDevice& device) {
  const auto holding = ask(request, commands);
  if (!holding) return holding.take_error();
  const auto hold = check_reservation(request, *holding);
  if (!hold) return hold;
  if (auto blank = device.check(); !blank) return blank.take_error();
  return hold;
}

Result<Hold> format_under_reservation(const FormatRequest& request, nvmetcp::ReservationCommands& commands,
                                      const FormatDevice& device) {
  const auto before = look_before_format(request, commands, device);
  if (!before) return before;
  if (*before == Hold::Free) {
    const auto now = nvmetcp::hold_reservation(commands, request.us);
    if (!now) return now.take_error();
    if (now->hold != Hold::Ours) return held_elsewhere(request, *now);
  }
  const auto made = device.make();
  if (made) return *before == Hold::Unsupported ? Hold::Unsupported : Hold::Ours;
  Error error = made.error();
  if (*before == Hold::Free) {
    const auto given = nvmetcp::release_reservation(commands, request.us);
    if (!given) error.what += "; and the reservation was not given back: " + given.error().what;
  }
  return fail(std::move(error));
}

std::unique_ptr<NamespaceFormatter> make_bounded_formatter() {
  return std::make_unique<BoundedFormatter>();
}

}  // namespace spark::cli
