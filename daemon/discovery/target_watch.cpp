#include "daemon/discovery/target_watch.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "daemon/launch.hpp"
#include "daemon/token.hpp"
#include "nvmetcp/resolve.hpp"
#include "nvmetcp/sysfs/registry.hpp"

namespace spark::discovery {
namespace {

// NVMe base specification, asynchronous events: notice, discovery log page change, log page 0x70.
constexpr const char* kLogChanged = "0x70f002";

}  // namespace

TargetWatch::TargetWatch(asio::any_io_executor executor, config::Target target,
                         std::unique_ptr<Actions> actions, const Clock& clock, Timings timings,
                         OnChange on_change)
    : executor_(executor),
      target_(std::move(target)),
      actions_(std::move(actions)),
      clock_(clock),
      timings_(timings),
      on_change_(std::move(on_change)),
      backoff_(timings.first_retry, timings.longest_retry, clock),
      timer_(executor) {}

void TargetWatch::start() {
  auto keep_alive = [](std::shared_ptr<TargetWatch> self) -> asio::awaitable<void> { co_await self->run(); };
  launch(executor_, "watch of target " + target_.name, keep_alive(shared_from_this()));
}

void TargetWatch::stop() {
  stopped_ = true;
  timer_.cancel();
}

void TargetWatch::end() {
  leaves_ = true;
  stop();
}

void TargetWatch::heard(const Uevent& event) {
  if (status_.controller.empty() || event.device != status_.controller) return;
  is_changed_ = is_changed_ || event.aen == kLogChanged || !event.event.empty();
  timer_.cancel();
}

asio::awaitable<void> TargetWatch::run() {
  while (!stopped_) {
    const std::string rule = actions_->autoconnect_rule();
    Result<> ended;
    if (rule.empty()) {
      ended = co_await listen();
    } else {
      co_await leave_all();
      ended = co_await at_first_portal(&TargetWatch::ask_at);
    }
    if (stopped_) break;
    status_.controller.clear();
    if (ended && !rule.empty()) {
      status_.reason = rule + " of nvme-cli would connect everything that the target offers";
      backoff_.reset();
      co_await sleep(timings_.ask_again);
      continue;
    }
    status_.reason = ended ? "its connection is gone" : ended.error().message();
    const bool has_none = !ended && ended.error().kind == Errc::Unsupported;
    co_await sleep(has_none ? timings_.ask_again : backoff_.next());
  }
  // Only here: the connection may just have been created.
  if (leaves_) co_await leave();
}

asio::awaitable<Result<>> TargetWatch::at_first_portal(Attempt attempt) {
  Result<> first_failure;
  for (const nvmetcp::Portal& portal : target_.portals) {
    auto done = co_await (this->*attempt)(portal);
    if (done) co_return done;
    if (first_failure) first_failure = std::move(done);
  }
  co_return first_failure;
}

// Over a temporary connection.
asio::awaitable<Result<>> TargetWatch::ask_at(nvmetcp::Portal portal) {
  const auto log = co_await actions_->ask(std::move(portal), target_.options.interface);
  if (!log) co_return fail(log.error());
  note(*log);
  co_return Result<>{};
}

asio::awaitable<Result<>> TargetWatch::connect_to(nvmetcp::Portal portal) {
  const auto connection = co_await actions_->watch(std::move(portal), target_.options.interface);
  if (!connection) co_return fail(connection.error());
  status_.controller = connection->controller;
  numeric_.reset();
  if (const auto made = find_connection(); made && *made) numeric_ = (*made)->portal;
  co_return Result<>{};
}

// The kernel retries the address that it was given, and does not resolve names.
bool TargetWatch::may_be_elsewhere() const {
  return target_.portals.size() > 1 || !nvmetcp::is_numeric(target_.portals.front().address);
}

// Listens while the connection exists, live or not, unless the target may have another address.
asio::awaitable<Result<>> TargetWatch::listen() {
  auto connected = co_await at_first_portal(&TargetWatch::connect_to);
  if (!connected) co_return connected;
  backoff_.reset();
  is_changed_ = true;
  SteadyTime read_next = clock_.steady(), last_live = read_next;
  while (!stopped_) {
    if (!actions_->autoconnect_rule().empty()) {  // the rule was installed since
      co_await leave();
      co_return Result<>{};
    }
    const auto found = find_connection();
    if (found && !*found) co_return Result<>{};
    const bool is_live = found && (*found)->is_live();
    if (is_live) last_live = clock_.steady();
    if (found && may_be_elsewhere() && clock_.steady() - last_live >= timings_.doubt) {
      co_await leave();
      co_return Result<>{};
    }
    status_.reason = is_live ? ""
                     : found ? (*found)->name + " is " + printable((*found)->state)
                             : found.error().message();
    Duration wait = timings_.look;
    if (!is_live) {
      is_changed_ = true;  // events in the meantime were not received
    } else if (is_changed_ || clock_.steady() >= read_next) {
      is_changed_ = false;
      const bool is_read = co_await read();
      read_next = clock_.steady() + timings_.read_again;
      if (is_read && is_changed_) continue;  // again: the log changed while it was read
      is_changed_ = !is_read;
      if (!is_read) wait = backoff_.next();
    }
    if (!stopped_) co_await sleep(wait);
  }
  co_return Result<>{};
}

asio::awaitable<bool> TargetWatch::read() {
  const auto log = co_await actions_->read(status_.controller);
  if (stopped_) co_return false;
  if (!log) {
    status_.reason = log.error().message();
    co_return false;
  }
  note(*log);
  co_return true;
}

Result<std::optional<nvmetcp::Controller>> TargetWatch::find_connection() {
  const auto all = actions_->controllers();
  if (!all) return all.take_error();
  const auto found = std::ranges::find(*all, status_.controller, &nvmetcp::Controller::name);
  if (found == all->end() || !found->is_discovery || found->is_going()) return std::nullopt;
  if (numeric_ && found->portal != *numeric_) return std::nullopt;
  return *found;
}

asio::awaitable<void> TargetWatch::leave() {
  const auto connection = find_connection();
  if (!connection || !*connection) co_return;
  (void)co_await actions_->disconnect((*connection)->name, (*connection)->subsystem);
}

// Also those that an earlier daemon left, before the rule was installed: it answers what is heard over any.
asio::awaitable<void> TargetWatch::leave_all() {
  const auto all = actions_->controllers();
  if (!all) co_return;
  for (const nvmetcp::Controller& one : *all) {
    if (one.is_discovery && one.owner == nvmetcp::kOwner)
      (void)co_await actions_->disconnect(one.name, one.subsystem);
  }
}

void TargetWatch::note(const nvmetcp::DiscoveryLog& log) {
  std::set<std::string> offered;
  for (const nvmetcp::OfferedSubsystem& entry : log.entries) {
    if (entry.kind == nvmetcp::SubsystemKind::Io && entry.transport == "tcp") offered.insert(entry.nqn);
  }
  const bool is_first = !status_.asked_at;
  status_.asked_at = clock_.wall();
  const auto before = std::exchange(status_.offered, std::move(offered));
  if (!is_first && before != status_.offered) on_change_(*this, before);
}

asio::awaitable<void> TargetWatch::sleep(Duration duration) {
  timer_.expires_after(duration);
  co_await timer_.wait();
}

}  // namespace spark::discovery
