// The discovery service of a target, asked once or listened to.
#include <fcntl.h>
#include <libnvme.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/text.hpp"
#include "nvmetcp/connect/connect_errors.hpp"
#include "nvmetcp/connect/fabrics_options.hpp"
#include "nvmetcp/connect/libnvme_gateway.hpp"
#include "nvmetcp/connect/removal.hpp"
#include "nvmetcp/connect/temporary_discovery_controller.hpp"
#include "nvmetcp/discovery/discovery_log.hpp"
#include "nvmetcp/discovery/exclusions.hpp"
#include "nvmetcp/resolve.hpp"
#include "nvmetcp/sysfs/adoption.hpp"
#include "nvmetcp/sysfs/registry.hpp"
#include "nvmetcp/sysfs/sysfs.hpp"
#include "nvmetcp/validate.hpp"

namespace spark::nvmetcp {
namespace {

constexpr std::size_t kPage = 4096;

// Holds back the signals that ask a program to end, for the calling thread.
class DeferredSignals {
 public:
  DeferredSignals() {
    sigset_t asked;
    sigemptyset(&asked);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&asked, signal);
    pthread_sigmask(SIG_BLOCK, &asked, &before_);
  }
  ~DeferredSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  DeferredSignals(const DeferredSignals&) = delete;
  DeferredSignals& operator=(const DeferredSignals&) = delete;

 private:
  sigset_t before_{};
};

// Heard: the change that the target has told of last counts as known, so that it tells of the next.
enum class Event { Kept, Heard };

Result<> get_discovery_log(int fd, std::uint64_t offset, std::span<std::byte> into,
                           std::chrono::milliseconds timeout, Event event = Event::Kept) {
  // libnvme 1.3 lets some devices write more than was asked for, to the end of the page.
  const PageBuffer buffer = make_page_buffer(into.size());
  if (!buffer) return fail(Errc::Failed, "reading the discovery log: out of memory");
  nvme_get_log_args args{};
  args.lpo = offset;
  args.log = buffer.get();
  args.args_size = sizeof args;
  args.fd = fd;
  args.timeout = static_cast<__u32>(timeout.count());
  args.lid = NVME_LOG_LID_DISCOVER;
  args.len = static_cast<__u32>(into.size());
  args.nsid = NVME_NSID_NONE;
  args.rae = event == Event::Kept;
  errno = 0;
  const int status = nvme_get_log_page(fd, kPage, &args);
  if (status == 0) {
    std::memcpy(into.data(), buffer.get(), into.size());
    return {};
  }
  const std::string doing = "reading the discovery log: ";
  if (status < 0)
    return fail(Errc::Unavailable, doing + std::strerror(errno), "the target stopped answering");
  return fail(Errc::Failed, doing + nvme_status_to_string(status, false), "the target refused the command");
}

}  // namespace

Result<DiscoveryLog> LibnvmeGateway::read_log(const std::string& controller, const Portal& reached,
                                              bool hears_events) const {
  const auto path = root_ / ("dev/" + controller);
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening " + printable(path.native()));
  if (hears_events) {  // first: a change while the log is read is reported again
    std::array<std::byte, kDiscoveryHeaderBytes> header{};
    auto heard = get_discovery_log(fd.get(), 0, header, kLogReadDeadline, Event::Heard);
    if (!heard) return heard.take_error();
  }
  const DiscoveryLogReader reader = [&](std::uint64_t offset, std::span<std::byte> into) {
    return get_discovery_log(fd.get(), offset, into, kLogReadDeadline);
  };
  return read_discovery_log(reader, reached);
}

Result<DiscoveryLog> LibnvmeGateway::discover(const Portal& portal, const HostIdentity& host,
                                              const std::string& interface) {
  if (auto valid = validate(portal); !valid) return valid.take_error();
  const DeferredSignals until_the_controller_is_gone;
  auto addresses = resolve(portal);
  if (!addresses) return addresses.take_error();
  remove_abandoned();
  auto reached = prepare(*addresses, interface);
  if (!reached) return reached.take_error();
  const auto controller = create_discovery(*reached, host, interface, DiscoveryUse::Once);
  if (!controller) return controller.take_error();
  const TemporaryDiscoveryController question(root_, controller->name);
  auto log = read_log(controller->name, *reached, false);
  const auto removed = remove_discovery(controller->name);
  if (log && !removed) log->ignored.push_back("left behind: " + removed.error().message());
  if (!log) return fail_with(std::move(log.error()), "reading the discovery log of " + to_string(*reached));
  return log;
}

Result<MadeController> LibnvmeGateway::create_discovery(const Portal& reached, const HostIdentity& host,
                                                        const std::string& interface,
                                                        DiscoveryUse use) const {
  const FabricsOptions options = discovery_controller_options(reached, host, interface, use);
  if (auto known = check_supported(root_, options); !known) {
    return known.take_error();
  }
  auto controller = create_controller(root_, options);
  if (controller) {
    forget_earlier(root_, controller->name);  // a temporary connection has no owner
    return std::move(*controller);
  }
  ConnectAttempt attempt{kDiscoveryNqn, to_string(reached), host.nqn, {}, true};
  attempt.options.interface = interface;
  const RefusedConnect& refused = controller.error();
  return fail(explain_connect(refused.number, refused.kernel_log, attempt));
}

// A discovery subsystem may have an NQN of its own, which shows up in sysfs only.
Result<Change> LibnvmeGateway::remove_discovery(const std::string& controller) const {
  const auto own_nqn = read_line_file(root_ / ("sys/class/nvme/" + controller + "/subsysnqn"));
  return remove_controller(root_, controller, own_nqn.value_or(kDiscoveryNqn), CutOff{true, {}},
                           kRemovalDeadline);
}

// A failed removal is retried at the next request.
void LibnvmeGateway::remove_abandoned() const {
  for (const std::string& controller : abandoned_discovery_controllers(root_))
    (void)remove_discovery(controller);
}

Result<Connection> LibnvmeGateway::watch_discovery(const Portal& portal, const HostIdentity& host,
                                                   const std::string& interface) {
  if (auto valid = validate(portal); !valid) return valid.take_error();
  auto addresses = resolve(portal);
  if (!addresses) return addresses.take_error();
  forget_gone(root_);
  remove_abandoned();
  const auto all = list_controllers(root_);
  if (!all) return all.take_error();
  if (const auto ours = find_own_discovery(*all, *addresses, host, interface)) {
    return Connection{ours->name, Change::AlreadyThere, {}};
  }
  auto reached = prepare(*addresses, interface);
  if (!reached) return reached.take_error();
  if (auto allowed = check_not_excluded(root_, kDiscoveryNqn, *reached, host, interface); !allowed) {
    return allowed.take_error();
  }
  const auto controller = create_discovery(*reached, host, interface, DiscoveryUse::Watch);
  if (!controller) return controller.take_error();
  if (auto claimed = claim(root_, controller->name); !claimed) {
    (void)remove_discovery(controller->name);  // its owner would be unknown
    return claimed.take_error();
  }
  return Connection{controller->name, Change::Done, {}};
}

Result<DiscoveryLog> LibnvmeGateway::read_discovery(const std::string& controller) {
  const auto all = list_controllers(root_);
  if (!all) return all.take_error();
  const auto found = std::ranges::find(*all, controller, &Controller::name);
  if (found == all->end() || found->owner != kOwner || !found->is_discovery) {
    return fail(Errc::NotFound,
                "reading the discovery log: " + printable(controller) + " is not there any more");
  }
  if (!found->is_live()) {
    return fail(Errc::Unavailable,
                "reading the discovery log: " + controller + " is " + printable(found->state),
                "the kernel is reconnecting it");
  }
  return read_log(controller, found->portal, true);
}

}  // namespace spark::nvmetcp
