#include "daemon/datasets/leases.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <random>

#include "base/file.hpp"
#include "base/text.hpp"
#include "daemon/log.hpp"

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

std::int64_t unix_seconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

}  // namespace

std::uint64_t start_time_of(pid_t pid) {
  const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!stat) return 0;
  // proc(5): field 22, counted behind the command's name, which may hold anything but ends at the last ')'.
  const std::size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos) return 0;
  const auto fields = split(std::string_view(*stat).substr(name_end + 2), ' ');
  std::uint64_t ticks = 0;
  if (fields.size() > 19) std::from_chars(fields[19].data(), fields[19].data() + fields[19].size(), ticks);
  return ticks;
}

json::object to_json(const Lease& lease) {
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
    const json::object& row = value.as_object();
    Lease lease;
    lease.id = get_string(row, "id").value_or("");
    lease.dataset = get_string(row, "dataset").value_or("");
    lease.generation = static_cast<std::uint64_t>(get_int(row, "generation").value_or(0));
    lease.holder = get_string(row, "holder").value_or("");
    lease.pid = static_cast<pid_t>(get_int(row, "pid").value_or(0));
    if (const auto expires = get_int(row, "expires"); expires && *expires > 0) {
      lease.expires = WallTime(std::chrono::seconds(*expires));
    }
    const auto started = static_cast<std::uint64_t>(get_int(row, "pid_start_time").value_or(0));
    const bool holder_gone = lease.pid != 0 && start_time_of(lease.pid) != started;
    const bool over = lease.expires && *lease.expires <= clock_.wall();
    leases_[lease.id] = lease;
    if (holder_gone || over) {
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
  if (duration) lease.expires = clock_.wall() + *duration;
  leases_[lease.id] = lease;
  watch(lease);
  record({{"op", "add"},
          {"id", lease.id},
          {"dataset", dataset},
          {"generation", generation},
          {"holder", lease.holder},
          {"pid", pid},
          {"pid_start_time", pid == 0 ? 0 : start_time_of(pid)},
          {"expires", lease.expires ? unix_seconds(*lease.expires) : 0}});
  return lease.id;
}

Result<> Leases::release(const std::string& id) {
  if (leases_.erase(id) == 0) {
    return fail(Errc::NotFound, "no lease " + printable(id), "`spark-stage ls` shows the leases");
  }
  record({{"op", "remove"}, {"id", id}});
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
void Leases::record(json::object change) {
  json::object request = catalog_request_();
  for (auto& member : change) request[member.key()] = std::move(member.value());
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
