#include "daemon/datasets/leases.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <random>

#include "base/text.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"
#include "daemon/workers/wire.hpp"

namespace spark::datasets {
namespace {

const std::string kHold = "request-";
constexpr std::chrono::seconds kLeaseDeadline{30};
// A control group is looked at so often. A process tells its end itself; the rest is for a wall clock that is
// set anew, and for a kernel that gives no descriptor for the process.
constexpr std::chrono::seconds kLookAtCgroup{1}, kLook{30};

std::chrono::milliseconds next_look(const Lease& lease, WallTime now) {
  std::chrono::milliseconds wait = lease.cgroup.path.empty() ? kLook : kLookAtCgroup;
  if (lease.expires)
    wait = std::min(wait, std::chrono::ceil<std::chrono::milliseconds>(*lease.expires - now));
  return std::max(wait, std::chrono::milliseconds(10));
}

}  // namespace

std::string new_lease_id() {
  static std::mt19937_64 random{std::random_device{}()};
  char text[9];
  std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(random() & 0xFFFFFFFF));
  return text;
}

std::string new_hold_id() {
  return kHold + new_lease_id();
}

json::object show(const Lease& lease) {
  json::object shown{
      {"id", lease.id},
      {"holder", printable(lease.holder)},
      {"expires", lease.expires ? json::value(rfc3339(*lease.expires)) : json::value(nullptr)}};
  if (lease.process.pid != 0) shown["pid"] = lease.process.pid;
  if (!lease.cgroup.path.empty()) shown["cgroup"] = printable(lease.cgroup.path.native());
  return shown;
}

std::string holders_in_words(const std::vector<const Lease*>& leases) {
  std::vector<std::string> words;
  for (const Lease* lease : leases) words.push_back(printable(lease->holder) + " (lease " + lease->id + ")");
  return join(words, " and by ");
}

Leases::Leases(asio::any_io_executor executor, workers::Runner& runner, const Clock& clock,
               std::function<json::object()> catalog_request, std::function<void()> on_change)
    : executor_(std::move(executor)),
      runner_(runner),
      clock_(clock),
      catalog_request_(std::move(catalog_request)),
      on_change_(std::move(on_change)) {}

asio::awaitable<Result<>> Leases::load() {
  auto answer = co_await ask_catalog("list", {});
  if (!answer) co_return answer.take_error();
  const json::array* rows = get_array(*answer, "leases");
  if (rows == nullptr) co_return Result<>{};
  for (const json::value& value : *rows) {
    const Lease lease = workers::lease_from_json(value.as_object());
    if (lease.id.starts_with(kHold) && staging::is_live(lease, clock_.wall())) continue;
    if (!leases_.emplace(lease.id, lease).second) continue;
    launch(executor_, "lease " + lease.id, watch(lease.id));  // ends it at once if its holder is gone
  }
  on_change_();
  co_return Result<>{};
}

asio::awaitable<Result<>> Leases::grant(Lease lease) {
  const std::string id = lease.id;
  json::object request = workers::to_json(lease);
  leases_[id] = std::move(lease);
  launch(executor_, "lease " + id, watch(id));
  on_change_();
  const auto written = co_await ask_catalog("add", std::move(request));
  if (written) co_return Result<>{};
  if (written.error().kind == Errc::NotFound) {
    leases_.erase(id);
    on_change_();
    co_return fail(written.error());
  }
  log::survived(written.error());  // it holds as long as this daemon runs
  co_return Result<>{};
}

Result<> Leases::release(const std::string& id) {
  const auto found = leases_.find(id);
  if (found == leases_.end()) {
    return fail(Errc::NotFound, "no lease " + printable(id), "`spark-stage ls` shows the leases");
  }
  launch(executor_, "release of lease " + id, forget(found->second));
  leases_.erase(found);
  on_change_();
  return {};
}

std::vector<const Lease*> Leases::of(const std::string& dataset) const {
  std::vector<const Lease*> found;
  for (const auto& [id, lease] : leases_) {
    if (lease.dataset == dataset) found.push_back(&lease);
  }
  return found;
}

asio::awaitable<void> Leases::watch(std::string id) {
  const auto timer = std::make_shared<asio::steady_timer>(executor_);
  asio::posix::stream_descriptor pidfd(executor_);
  const auto lease = leases_.find(id);
  const pid_t pid = lease == leases_.end() ? 0 : lease->second.process.pid;
  const int fd = pid == 0 ? -1 : static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (fd >= 0) {
    pidfd.assign(fd);
    pidfd.async_wait(asio::posix::stream_descriptor::wait_read, [timer](auto) { timer->cancel(); });
  }
  // Looked at after the descriptor was opened: it may be another process's by now.
  for (auto held = leases_.find(id); held != leases_.end(); held = leases_.find(id)) {
    if (!staging::is_live(held->second, clock_.wall())) {
      (void)release(id);
      co_return;
    }
    timer->expires_after(next_look(held->second, clock_.wall()));
    co_await timer->async_wait(kToken);
  }
}

// Written behind: memory decides while the daemon runs.
asio::awaitable<void> Leases::forget(Lease lease) {
  json::object request{{"ids", json::array{json::value(lease.id)}}};
  const auto written = co_await ask_catalog("remove", std::move(request));
  if (!written) log::survived(written.error());
}

asio::awaitable<Result<std::vector<std::string>>> Leases::end_holds(std::vector<std::string> ids) {
  json::array all;
  for (const std::string& id : ids) all.emplace_back(id);
  json::object request{{"ids", std::move(all)}};
  const auto answer = co_await ask_catalog("remove", std::move(request));
  if (!answer) co_return fail(answer.error());
  std::vector<std::string> missing;
  if (const json::array* rows = get_array(*answer, "missing")) {
    for (const json::value& id : *rows) missing.emplace_back(id.as_string());
  }
  co_return missing;
}

asio::awaitable<Result<json::object>> Leases::ask_catalog(std::string op, json::object request) {
  for (auto& member : catalog_request_()) request[member.key()] = member.value();
  request["op"] = op;
  workers::Call call;
  call.verb = "lease";
  call.subject = "the catalog";
  call.request = std::move(request);
  call.deadline = kLeaseDeadline;
  co_return co_await runner_.run(std::move(call));
}

}  // namespace spark::datasets
