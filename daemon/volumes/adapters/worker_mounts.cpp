#include "daemon/volumes/adapters/worker_mounts.hpp"

#include "daemon/log.hpp"
#include "daemon/volumes/adapters/host_neighbours.hpp"
#include "daemon/workers/messages.hpp"
#include "daemon/workers/wire.hpp"

namespace spark::volumes {
namespace {

constexpr Duration kMount{120'000};   // includes replaying a journal, or the wait of multi-mount protection
constexpr Duration kUnmount{60'000};  // includes flushing a writer's dirty pages
constexpr Duration kUsers{30'000};    // every process of the host is examined
constexpr Duration kDetach{kUsers + Duration(10'000)};
constexpr Duration kDetachNfs{10'000};  // beyond it, it waits for its server with dirty pages
constexpr Duration kPublish{900'000};   // flushes all dirty pages, over the network
constexpr Duration kGuard{30'000};      // sets an attribute and a link on the system's own drive

}  // namespace

asio::awaitable<Result<Mounted>> WorkerMounts::mount(mounts::MountRequest wanted,
                                                     FilesystemIdentity identity) {
  json::object request{{"mount", to_message(wanted)}, {"host", node_name_of_host()}};
  const bool pin = !identity.uuid.empty();
  if (pin) {
    request["pin_file"] = store_.pin_file().native();
    request["pin"] = store_.content_of(identity);
  }
  auto answer = co_await asker_.act("mount", std::move(request), kMount);
  if (!answer) co_return answer.take_error();
  if (pin) store_.note_pinned(identity);
  co_return Mounted{workers::change_from_json(*answer), get_string(*answer, "users").value_or("")};
}

asio::awaitable<Result<mounts::Guard>> WorkerMounts::guard(std::filesystem::path mount_point,
                                                           bool is_in_use) {
  json::object request{
      {"mount_point", mount_point.native()}, {"records", guards_.native()}, {"is_in_use", is_in_use}};
  auto answer = co_await asker_.ask("guard", std::move(request), kGuard);
  co_return workers::message_of<mounts::Guard>(std::move(answer));
}

asio::awaitable<Result<Unmounted>> WorkerMounts::unmount(std::filesystem::path target, mounts::Unmount how) {
  json::object request{{"target", target.native()}, {"how", workers::to_string(how)}};
  // Another program may mount something else there before the worker runs.
  const auto& table = mount_table();
  const mounts::Mount* seen = table ? mounts::mounted_at(*table, target) : nullptr;
  if (seen != nullptr) request["seen"] = seen->device_number;
  const Duration detaching = seen != nullptr && seen->type.starts_with("nfs") ? kDetachNfs : kDetach;
  const Duration limit = how == mounts::Unmount::Plain ? kUnmount : detaching;
  auto answer = co_await asker_.act("unmount", std::move(request), limit);
  if (!answer) co_return answer.take_error();
  co_return Unmounted{workers::change_from_json(*answer), get_string(*answer, "users").value_or("")};
}

asio::awaitable<Result<std::string>> WorkerMounts::users(std::filesystem::path target) {
  json::object request{{"target", target.native()}};
  const auto answer = co_await asker_.ask("users", std::move(request), kUsers);
  if (!answer) co_return fail(answer.error());
  co_return get_string(*answer, "users").value_or("");
}

asio::awaitable<Result<mounts::Closed>> WorkerMounts::publish(std::filesystem::path target,
                                                              std::string device, mounts::AfterPublish then,
                                                              bool alone) {
  json::object request{{"target", target.native()},
                       {"device", device},
                       {"host", node_name_of_host()},
                       {"then_write", then == mounts::AfterPublish::Writable},
                       {"alone", alone}};
  const auto answer = co_await asker_.act("publish", std::move(request), kPublish);
  if (!answer) co_return fail(answer.error());
  const auto published = mounts::published_from_json(*answer);
  if (!published) co_return fail(Errc::Failed, "publish worker: an answer that makes no sense");
  const mounts::Closed closed{*published, static_cast<std::uint64_t>(get_int(*answer, "stamp").value_or(0))};
  if (then == mounts::AfterPublish::ReadOnly) {
    auto identity = store_.pinned_identity().value_or(FilesystemIdentity{});
    identity.is_published = true;
    identity.stamp = closed.stamp;
    const auto pinned = co_await store_.pin(std::move(identity));
    if (!pinned) log::survived(pinned.error());
  }
  co_return closed;
}

// Unpinned first: after an interruption the configuration decides.
asio::awaitable<Result<>> WorkerMounts::make_writable(std::filesystem::path target, std::string device,
                                                      bool alone) {
  auto identity = store_.pinned_identity().value_or(FilesystemIdentity{});
  identity.is_published = false;
  auto pinned = co_await store_.pin(std::move(identity));
  if (!pinned || device.empty()) co_return pinned;
  json::object request{
      {"target", target.native()}, {"device", device}, {"host", node_name_of_host()}, {"alone", alone}};
  const auto answer = co_await asker_.act("make-writable", std::move(request), kMount);
  if (!answer) co_return fail(answer.error());
  co_return Result<>{};
}

const Result<std::vector<mounts::Mount>>& WorkerMounts::mount_table() {
  return asker_.snapshot().mounts();
}

}  // namespace spark::volumes
