#include "nvmetcp/libnvme_gateway.hpp"

#include <fcntl.h>
#include <libnvme.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/text.hpp"
#include "nvmetcp/adoption.hpp"
#include "nvmetcp/connect_errors.hpp"
#include "nvmetcp/discovery_log.hpp"
#include "nvmetcp/fabrics_device.hpp"
#include "nvmetcp/fabrics_options.hpp"
#include "nvmetcp/removal.hpp"
#include "nvmetcp/resolve.hpp"
#include "nvmetcp/sysfs.hpp"
#include "nvmetcp/timers.hpp"
#include "nvmetcp/validate.hpp"

namespace spark::nvmetcp {
namespace {

constexpr std::size_t kPage = 4096;

const std::vector<std::string>& module_loader() {
  static const std::vector<std::string> command = {"/sbin/modprobe", "nvme-tcp"};
  return command;
}

unsigned online_cpus() {
  return static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

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

// Whole pages at a page's start: libnvme 1.3 lets some devices write more than was asked for.
using PageBuffer = std::unique_ptr<void, decltype(&std::free)>;
PageBuffer make_page_buffer(std::size_t bytes) {
  const std::size_t pages = std::max<std::size_t>(1, (bytes + kPage - 1) / kPage);
  return {std::aligned_alloc(kPage, pages * kPage), &std::free};
}

Result<> get_discovery_log(int fd, std::uint64_t offset, std::span<std::byte> into,
                           std::chrono::milliseconds timeout) {
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
  args.rae = true;
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

std::string major_minor(const std::string& version) {
  const auto parts = split(version, '.');
  return parts.size() < 2 ? version : parts[0] + "." + parts[1];
}

}  // namespace

// The first address that accepts a connection; then the driver is loaded, if it has to be.
Result<Portal> LibnvmeGateway::prepare(const std::vector<Portal>& addresses,
                                       const std::string& interface) const {
  Result<Portal> answering = fail(Errc::Unavailable, "the target's name has no address");
  for (const Portal& address : addresses) {
    auto reached = reach(address, interface, deadlines_.reach);
    if (reached) {
      answering = address;
      break;
    }
    // Of several addresses the first is the one that people know.
    if (&address == &addresses.front()) answering = tl::unexpected<Error>(std::move(reached.error()));
  }
  if (!answering) return answering;
  if (auto loaded = load_transport(root_, module_loader()); !loaded) {
    return tl::unexpected<Error>(std::move(loaded.error()));
  }
  return answering;
}

Result<DiscoveryLog> LibnvmeGateway::read_log(const std::string& controller, const Portal& reached) const {
  const auto path = root_ / ("dev/" + controller);
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening " + printable(path.native()));
  const DiscoveryLogReader reader = [&](std::uint64_t offset, std::span<std::byte> into) {
    return get_discovery_log(fd.get(), offset, into, deadlines_.log_read);
  };
  return read_discovery_log(reader, reached);
}

Result<DiscoveryLog> LibnvmeGateway::discover(const Portal& portal, const HostIdentity& host,
                                              const std::string& interface) {
  if (auto valid = validate(portal); !valid) return tl::unexpected<Error>(std::move(valid.error()));
  const DeferredSignals until_the_controller_is_gone;
  auto addresses = resolve(portal);
  if (!addresses) return tl::unexpected<Error>(std::move(addresses.error()));
  auto reached = prepare(*addresses, interface);
  if (!reached) return tl::unexpected<Error>(std::move(reached.error()));
  const FabricsOptions options = discovery_controller_options(*reached, host, interface);
  if (auto known = check_supported(root_, options); !known) {
    return tl::unexpected<Error>(std::move(known.error()));
  }
  const auto controller = create_controller(root_, options);
  if (!controller) {
    const ConnectAttempt attempt{kDiscoveryNqn, to_string(*reached), host.nqn, interface, "", "", true};
    const RefusedConnect& refused = controller.error();
    return tl::unexpected<Error>(explain_connect(refused.number, refused.kernel_log, attempt));
  }
  auto log = read_log(controller->name, *reached);
  // A discovery subsystem may have an NQN of its own, which shows up in sysfs only.
  const auto own_nqn = read_line_file(root_ / ("sys/class/nvme/" + controller->name + "/subsysnqn"));
  const auto removed =
      remove_controller(root_, controller->name, own_nqn.value_or(kDiscoveryNqn), deadlines_.removal);
  if (log && !removed) log->ignored.push_back("left behind: " + removed.error().message());
  if (!log) return fail_with(std::move(log.error()), "asking " + to_string(*reached) + " what it offers");
  return log;
}

Result<Connection> LibnvmeGateway::connect(const std::string& subsystem, const Portal& portal,
                                           const HostIdentity& host, const ConnectOptions& options) {
  for (auto valid : {validate_nqn(subsystem, "subsystem"), validate(portal), validate(options)}) {
    if (!valid) return tl::unexpected<Error>(std::move(valid.error()));
  }
  auto addresses = resolve(portal);
  if (!addresses) return tl::unexpected<Error>(std::move(addresses.error()));
  auto all = list_controllers(root_);
  if (!all) return tl::unexpected<Error>(std::move(all.error()));
  auto adopted = find_adoptable(*all, subsystem, *addresses, host, options.interface);
  if (!adopted) return tl::unexpected<Error>(std::move(adopted.error()));
  if (*adopted) {
    const Controller& controller = **adopted;
    const auto keys = read_keys(options);
    if (!keys) return tl::unexpected<Error>(keys.error());
    if (auto secured = check_keys_in_force(root_, controller.name, options, *keys); !secured) {
      return fail_with(std::move(secured.error()), "taking over the connection to " + printable(subsystem));
    }
    if (!differences(root_, controller, options).empty()) set_timers(root_, controller, options);
    return Connection{controller.name, Change::AlreadyThere, differences(root_, controller, options)};
  }
  if (auto alone = check_host_conflict(*all, host); !alone) {
    return tl::unexpected<Error>(std::move(alone.error()));
  }
  auto reached = prepare(*addresses, options.interface);
  if (!reached) return tl::unexpected<Error>(std::move(reached.error()));
  return create(subsystem, *reached, host, options);
}

Result<Connection> LibnvmeGateway::create(const std::string& subsystem, const Portal& numeric,
                                          const HostIdentity& host, const ConnectOptions& options) const {
  const auto keys = read_keys(options);
  if (!keys) return tl::unexpected<Error>(keys.error());
  const FabricsOptions asked = io_controller_options(subsystem, numeric, host, options, online_cpus(), *keys);
  if (auto known = check_supported(root_, asked); !known) {
    return tl::unexpected<Error>(std::move(known.error()));
  }
  const auto controller = create_controller(root_, asked);
  if (!controller) {
    const ConnectAttempt attempt{subsystem,
                                 to_string(numeric),
                                 host.nqn,
                                 options.interface,
                                 options.host_key_file,
                                 options.controller_key_file,
                                 false};
    const RefusedConnect& refused = controller.error();
    return tl::unexpected<Error>(explain_connect(refused.number, refused.kernel_log, attempt));
  }
  auto proven = prove(*controller, subsystem, options, *keys);
  if (proven) return Connection{controller->name, Change::Done, {}};
  // Not what was asked for: taken back. If that fails too, the first error still is the one to tell.
  const auto its_nqn = read_line_file(root_ / ("sys/class/nvme/" + controller->name + "/subsysnqn"));
  (void)remove_controller(root_, controller->name, its_nqn.value_or(subsystem), deadlines_.removal);
  return tl::unexpected<Error>(std::move(proven.error()));
}

Result<> LibnvmeGateway::prove(const MadeController& made, const std::string& subsystem,
                               const ConnectOptions& options, const Keys& keys) const {
  const std::string& name = made.name;
  const auto all = list_controllers(root_);
  if (!all) return tl::unexpected<Error>(all.error());
  const auto found = std::find_if(all->begin(), all->end(),
                                  [&](const Controller& controller) { return controller.name == name; });
  if (found == all->end()) {
    return fail(Errc::Unavailable, "connecting subsystem " + printable(subsystem) + ": " + name +
                                       " vanished right after its connect");
  }
  if (found->subsystem != subsystem) {
    return fail(Errc::Mismatch,
                "connecting subsystem " + printable(subsystem) + ": the target answered as " +
                    printable(found->subsystem),
                "give the subsystem the name that it gives itself");
  }
  for (auto secured : {check_keys_in_force(root_, name, options, keys),
                       check_authenticated(made.kernel_log, name, options)}) {
    if (!secured)
      return fail_with(std::move(secured.error()), "connecting subsystem " + printable(subsystem));
  }
  const auto wrong = differences(root_, *found, options);
  if (wrong.empty()) return {};
  return fail(Errc::Unsupported,
              "connecting subsystem " + printable(subsystem) +
                  ": the kernel did not take every option: " + join(wrong, "; "),
              "switch the option off in the config, or boot another kernel");
}

Result<Change> LibnvmeGateway::disconnect(const std::string& controller, const std::string& subsystem) {
  return remove_controller(root_, controller, subsystem, deadlines_.removal);
}

Result<> check_libnvme_version() {
  const std::string built_for = major_minor(SPARK_LIBNVME_VERSION);
  const std::string loaded = major_minor(nvme_get_version(NVME_VERSION_PROJECT));
  if (loaded == built_for) return {};
  return fail(
      Errc::Unsupported,
      "this program was built for libnvme " + built_for + ", libnvme " + printable(loaded) + " is loaded",
      "install the package that was built for this distribution, or build it here");
}

}  // namespace spark::nvmetcp
