#include "daemon/datasets/leases/leases.hpp"

#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <utility>

#include "base/text.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"
#include "staging/leases/lease_json.hpp"

namespace spark::datasets {
namespace {

const std::string kHold = "request-";
constexpr std::chrono::seconds kLeaseDeadline{30}, kWriteAgain{60};
// Intervals between checks. A control group is polled. A process's end is reported by its descriptor; it is
// polled only in case the wall clock is changed, or the kernel provides no descriptor.
constexpr std::chrono::seconds kLookAtCgroup{1}, kLook{30};

std::chrono::milliseconds next_look(const Lease& lease, WallTime now) {
  std::chrono::milliseconds wait = lease.cgroup.path.empty() ? kLook : kLookAtCgroup;
  if (lease.expires)
    wait = std::min(wait, std::chrono::ceil<std::chrono::milliseconds>(*lease.expires - now));
  return std::max(wait, std::chrono::milliseconds(10));
}

}  // namespace

std::string new_lease_id() {
  std::uint32_t number = 0;
  while (::getrandom(&number, sizeof number, 0) < 0 && errno == EINTR) {
  }
  char text[9];
  std::snprintf(text, sizeof text, "%08x", number);
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
  if (lease.is_soft) shown["soft"] = true;
  if (lease.job.is_set()) {
    const json::value user = lease.job.user.empty() ? json::value() : json::value(printable(lease.job.user));
    shown["job"] = json::object{{"system", lease.job.system}, {"id", lease.job.id}, {"user", user}};
  }
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
      on_change_(std::move(on_change)),
      write_ended_(executor_) {}

asio::awaitable<Result<>> Leases::load() {
  // The catalog may still have what was released before it could be written there.
  released_ = unwritten_;
  released_->insert(being_written_.begin(), being_written_.end());
  std::erase_if(*released_, [&](const std::string& id) { return leases_.contains(id); });
  auto answer = co_await ask_catalog("list", {});
  const std::set<std::string> released = *std::exchange(released_, std::nullopt);
  if (!answer) co_return answer.take_error();
  for (const json::object& row : objects_in(*answer, "leases")) {
    if (const auto why = get_string(row, "lost")) log::warning("a lease is lost: " + *why);
    if (row.contains("lost")) continue;
    const Lease lease = staging::lease_from_json(row);
    if (lease.id.starts_with(kHold) && staging::is_live(lease, clock_.wall())) continue;
    if (released.contains(lease.id)) continue;
    if (!leases_.emplace(lease.id, lease).second) continue;
    look_again(lease.id);  // ends it immediately if its holder no longer exists
  }
  on_change_();
  co_return Result<>{};
}

asio::awaitable<Result<>> Leases::grant(Lease lease) {
  const std::string id = lease.id;
  put(std::move(lease));
  auto written = co_await write(id);
  if (!written && written.error().kind != Errc::NotFound) written = co_await write(id);
  if (written) co_return Result<>{};
  if (written.error().kind == Errc::NotFound) {
    leases_.erase(id);
    look_again(id);
    on_change_();
    co_return fail(written.error());
  }
  if (const auto held = leases_.find(id); held != leases_.end()) unrecorded_[id] = held->second.dataset;
  launch(executor_, "lease " + id, write_behind(id));  // until then it is valid as long as this daemon runs
  co_return Result<>{};
}

void Leases::hold(Lease lease) {
  const std::string id = lease.id;
  put(std::move(lease));
  launch(executor_, "lease " + id, write_behind(id));
}

void Leases::put(Lease lease) {
  const std::string id = lease.id;
  leases_[id] = std::move(lease);
  look_again(id);
  on_change_();
}

Result<> Leases::release(std::string id) {
  const auto found = leases_.find(id);
  if (found == leases_.end()) {
    return fail(Errc::NotFound, "no lease " + printable(id), "`spark-stage ls` shows the leases");
  }
  leases_.erase(found);
  if (released_) released_->insert(id);
  look_again(id);
  recorded(id);
  launch(executor_, "release of lease " + id, write_behind(id));
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

void Leases::look_again(const std::string& id) {
  if (const auto watch = watches_.find(id); watch != watches_.end()) {
    watch->second->cancel();
  } else if (leases_.contains(id)) {
    const auto timer = std::make_shared<Timer>(executor_);
    watches_[id] = timer;
    launch(executor_, "lease " + id, this->watch(id, timer));
  }
}

asio::awaitable<void> Leases::watch(std::string id, TimerPtr timer) {
  asio::posix::stream_descriptor pidfd(executor_);
  const auto lease = leases_.find(id);
  const pid_t pid = lease == leases_.end() ? 0 : lease->second.process.pid;
  const int fd = pid == 0 ? -1 : static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (fd >= 0) {
    pidfd.assign(fd);
    pidfd.async_wait(asio::posix::stream_descriptor::wait_read, [timer](auto) { timer->cancel(); });
  }
  // Checked after the descriptor was opened, because the pid may have been reused before.
  for (auto held = leases_.find(id); held != leases_.end(); held = leases_.find(id)) {
    if (!staging::is_live(held->second, clock_.wall())) {
      (void)release(id);  // it exists
      break;
    }
    timer->expires_after(next_look(held->second, clock_.wall()));
    co_await timer->wait();
  }
  watches_.erase(id);
}

// Writes the lease's state in memory at the time of the write. Writes of one lease are serialized: a requeued
// job uses the same IDs again.
asio::awaitable<Result<>> Leases::write(std::string id) {
  while (being_written_.contains(id)) co_await write_ended_.wait();
  being_written_.insert(id);
  const auto lease = leases_.find(id);
  const std::string op = lease != leases_.end() ? "add" : "remove";
  json::object request{{"ids", json::array{json::value(id)}}};
  if (lease != leases_.end()) request = staging::to_json(lease->second);
  const auto answer = co_await ask_catalog(op, std::move(request));
  being_written_.erase(id);
  write_ended_.notify();
  const bool is_gone = !answer && answer.error().kind == Errc::NotFound;  // no copy is left to keep
  if (answer || is_gone) recorded(id);
  if (answer || is_gone) unwritten_.erase(id);
  co_return answer ? Result<>() : fail(answer.error());
}

// A worker that began before it was granted has not heard of it.
void Leases::recorded(const std::string& id) {
  if (unrecorded_.erase(id) == 0) return;
  launch(executor_, "holds on copies", end_holds(std::exchange(kept_holds_, {})));
}

asio::awaitable<void> Leases::written() {
  const std::set<std::string> unwritten = being_written_;
  for (const std::string& id : unwritten) {
    while (being_written_.contains(id)) co_await write_ended_.wait();
  }
  const std::set<std::string> again = unwritten_;
  for (const std::string& id : again) {
    auto written = co_await write(id);
    // Nor can the others, or it would take long to learn that.
    if (!written && written.error().kind != Errc::NotFound) co_return;
  }
}

asio::awaitable<void> Leases::write_all() {
  std::set<std::string> added;
  for (const auto& [id, lease] : leases_)
    if (unwritten_.insert(id).second) added.insert(id);
  co_await written();
  launch(executor_, "leases", keep_writing(std::move(added)));
}

// Until each is written: write_behind() does not repeat those that are in `unwritten_` already.
asio::awaitable<void> Leases::keep_writing(std::set<std::string> ids) {
  Timer pause(executor_);
  for (;;) {
    std::erase_if(ids, [&](const std::string& id) { return !unwritten_.contains(id); });
    if (ids.empty()) co_return;
    pause.expires_after(kWriteAgain);
    if (!co_await pause.wait()) co_return;
    co_await written();
  }
}

// Memory is authoritative while the daemon runs; the next one has only what was written.
asio::awaitable<void> Leases::write_behind(std::string id) {
  auto written = co_await write(id);
  if (!written) log::survived(written.error());
  const auto is_over = [&] { return written || written.error().kind == Errc::NotFound; };
  if (is_over() || !unwritten_.insert(id).second) co_return;
  Timer pause(executor_);
  while (!is_over()) {
    pause.expires_after(kWriteAgain);
    if (!co_await pause.wait()) break;
    written = co_await write(id);
  }
}

asio::awaitable<Result<>> Leases::serve(Lease hold, std::string path) {
  json::object request = staging::to_json(hold);
  request["path"] = std::move(path);
  request["used_at"] = rfc3339(clock_.wall());
  const auto answer = co_await ask_catalog("serve", std::move(request));
  if (answer) co_return Result<>{};
  if (answer.error().kind == Errc::NotFound)
    co_return fail(Errc::Unavailable, answer.error().what, "stage it again");
  log::survived(answer.error());  // it can be read, and is held by nothing
  co_return Result<>{};
}

asio::awaitable<void> Leases::end_holds(std::vector<CopyHold> holds) {
  std::set<std::string> kept;
  for (const auto& [id, dataset] : unrecorded_) kept.insert(dataset);
  std::vector<std::string> ids;
  for (CopyHold& hold : holds) {
    if (kept.contains(hold.dataset))
      kept_holds_.push_back(std::move(hold));
    else
      ids.push_back(std::move(hold.id));
  }
  if (ids.empty()) co_return;
  being_written_.insert(ids.begin(), ids.end());
  json::object request{{"ids", json::value_from(ids)}};
  const auto answer = co_await ask_catalog("remove", std::move(request));
  for (const std::string& id : ids) being_written_.erase(id);
  write_ended_.notify();
  if (answer) co_return;
  for (const std::string& id : ids) launch(executor_, "hold " + id, write_behind(id));
}

asio::awaitable<Result<json::object>> Leases::ask_catalog(std::string op, json::object request) {
  for (auto& member : catalog_request_()) request[member.key()] = member.value();
  request["op"] = op;
  co_return co_await runner_.ask("the catalog", "lease", std::move(request), kLeaseDeadline);
}

}  // namespace spark::datasets
