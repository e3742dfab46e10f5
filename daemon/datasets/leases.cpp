#include "daemon/datasets/leases.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <random>

#include "base/text.hpp"
#include "daemon/log.hpp"
#include "daemon/workers/wire.hpp"

namespace spark::datasets {
namespace {

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::seconds kCatalogDeadline{30};

std::string new_id() {
  static std::mt19937_64 random{std::random_device{}()};
  char text[9];
  std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(random() & 0xFFFFFFFF));
  return text;
}

}  // namespace

json::object show(const Lease& lease) {
  return {{"id", lease.id},
          {"holder", printable(lease.holder)},
          {"expires", lease.expires ? json::value(rfc3339(*lease.expires)) : json::value(nullptr)}};
}

Leases::Leases(asio::any_io_executor executor, workers::Runner& runner, const Clock& clock,
               std::function<json::object()> catalog_request)
    : executor_(std::move(executor)),
      runner_(runner),
      clock_(clock),
      catalog_request_(std::move(catalog_request)) {}

asio::awaitable<Result<>> Leases::load() {
  workers::Call call;
  call.verb = "lease";
  call.subject = "the catalog";
  call.request = catalog_request_();
  call.request["op"] = "list";
  call.deadline = kCatalogDeadline;
  auto answer = co_await runner_.run(std::move(call));
  if (!answer) co_return tl::unexpected<Error>(std::move(answer.error()));
  const json::array* rows = get_array(*answer, "leases");
  if (rows == nullptr) co_return Result<>{};
  for (const json::value& value : *rows) {
    const Lease lease = workers::lease_from_json(value.as_object());
    leases_[lease.id] = lease;
    if (!staging::is_live(lease, clock_.wall())) {
      if (auto released = release(lease.id); !released) log::survived(released.error());
    } else {
      watch(lease);
    }
  }
  co_return Result<>{};
}

std::string Leases::grant(const std::string& dataset, std::uint64_t generation, std::string holder, pid_t pid,
                          std::optional<std::chrono::seconds> duration) {
  Lease lease;
  lease.id = new_id();
  lease.dataset = dataset;
  lease.generation = generation;
  lease.holder = std::move(holder);
  lease.pid = pid;
  if (pid != 0) lease.pid_start_time = staging::process_start_time(pid).value_or(0);
  if (duration) lease.expires = clock_.wall() + *duration;
  leases_[lease.id] = lease;
  watch(lease);
  record("add", lease);
  return lease.id;
}

Result<> Leases::release(const std::string& id) {
  const auto found = leases_.find(id);
  if (found == leases_.end()) {
    return fail(Errc::NotFound, "no lease " + printable(id), "`spark-stage ls` shows the leases");
  }
  record("remove", found->second);
  leases_.erase(found);
  return {};
}

std::vector<const Lease*> Leases::of(const std::string& dataset) const {
  std::vector<const Lease*> found;
  for (const auto& [id, lease] : leases_) {
    if (lease.dataset == dataset) found.push_back(&lease);
  }
  return found;
}

const Lease* Leases::find(const std::string& id) const {
  const auto found = leases_.find(id);
  return found == leases_.end() ? nullptr : &found->second;
}

// Whichever comes first: the end of the process, or of the time.
void Leases::watch(const Lease& lease) {
  auto until_process_ends = [](Leases& leases, std::string id, pid_t pid) -> asio::awaitable<void> {
    asio::posix::stream_descriptor pidfd(leases.executor_);
    const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (fd >= 0) {
      pidfd.assign(fd);
      co_await pidfd.async_wait(asio::posix::stream_descriptor::wait_read, kToken);
    }
    if (leases.find(id) != nullptr) (void)leases.release(id);
  };
  auto until_time_comes = [](Leases& leases, std::string id, WallTime end) -> asio::awaitable<void> {
    asio::steady_timer timer(leases.executor_);
    while (leases.find(id) != nullptr && leases.clock_.wall() < end) {
      // In steps, so that a clock set anew ends the lease at its wall time.
      timer.expires_after(
          std::min<std::chrono::system_clock::duration>(end - leases.clock_.wall(), std::chrono::minutes(1)));
      co_await timer.async_wait(kToken);
    }
    if (leases.find(id) != nullptr) (void)leases.release(id);
  };
  if (lease.pid != 0)
    asio::co_spawn(executor_, until_process_ends(*this, lease.id, lease.pid), asio::detached);
  if (lease.expires)
    asio::co_spawn(executor_, until_time_comes(*this, lease.id, *lease.expires), asio::detached);
}

// Written behind: memory decides while the daemon runs.
void Leases::record(const std::string& op, const Lease& lease) {
  json::object request = workers::to_json(lease);
  for (auto& member : catalog_request_()) request[member.key()] = member.value();
  request["op"] = op;
  auto write = [](Leases& leases, json::object what) -> asio::awaitable<void> {
    workers::Call call;
    call.verb = "lease";
    call.subject = "the catalog";
    call.request = std::move(what);
    call.deadline = kCatalogDeadline;
    const auto written = co_await leases.runner_.run(std::move(call));
    if (!written) log::survived(written.error());
  };
  asio::co_spawn(executor_, write(*this, std::move(request)), asio::detached);
}

}  // namespace spark::datasets
