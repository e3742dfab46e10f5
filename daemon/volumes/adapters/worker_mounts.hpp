// Mount points, accessed by workers.
#pragma once

#include <utility>

#include "base/file.hpp"
#include "base/text.hpp"
#include "daemon/log.hpp"
#include "daemon/volumes/adapters/asker.hpp"
#include "daemon/volumes/adapters/file_store.hpp"
#include "daemon/volumes/seams/mounts.hpp"
#include "daemon/workers/messages.hpp"
#include "daemon/workers/wire.hpp"

namespace spark::volumes {

// {"target", "mounted": {"id", "device"}}: the workers check that the mount is still there.
inline json::object message_of(const OwnMount& mount) {
  return {{"target", mount.target().native()}, {"mounted", to_json(mount.numbers())}};
}

inline json::object message_of(const Remount& mount) {
  json::object request = message_of(mount.mount);
  request["device"] = mount.device;
  request["uuid"] = mount.uuid;
  request["stamp"] = static_cast<std::int64_t>(mount.stamp);
  request["alone"] = mount.alone;
  request["host"] = host_name();
  if (const auto& of = mount.reservation)
    request["keep_reservation"] = json::object{{"subsystem", of->subsystem}, {"nsid", of->nsid}};
  return request;
}

class WorkerMounts final : public Mounts {
 public:
  WorkerMounts(Asker& asker, FileStore& store, std::filesystem::path guards)
      : asker_(asker), store_(store), guards_(std::move(guards)) {}

  asio::awaitable<Result<Mounted>> mount(mounts::MountRequest wanted, FilesystemIdentity identity) override {
    json::object request{{"mount", to_message(wanted)}, {"host", host_name()}};
    const bool pin = !identity.uuid.empty();
    if (pin) {
      request["pin_file"] = store_.pin_file().native();
      request["pin"] = store_.content_of(identity);
    }
    // The kernel's waits are a little longer than their sum, and end with a read of the device.
    const Duration limit = kMount + std::chrono::seconds(2 * wanted.claim_s);
    auto answer = co_await asker_.act("mount", std::move(request), limit);
    if (!answer) co_return answer.take_error();
    if (pin) store_.note_pinned(identity);
    co_return Mounted{workers::change_from_json(*answer), get_text(*answer, "users"),
                      get_text(*answer, "warning")};
  }

  asio::awaitable<Result<mounts::Guard>> guard(std::filesystem::path mount_point, bool is_in_use) override {
    json::object request{
        {"mount_point", mount_point.native()}, {"records", guards_.native()}, {"is_in_use", is_in_use}};
    // The folder's file system may hang, perhaps another volume's: each attempt would leave one more worker.
    const std::string point = "mount point";
    if (asker_.is_stuck_beside(point))
      co_return fail(Errc::Unavailable, "a request to the folder " + printable(mount_point.native()) +
                                            " still waits in the kernel");
    auto answer = co_await asker_.ask_beside(point, "guard", std::move(request), kGuard);
    co_return workers::message_of<mounts::Guard>(std::move(answer));
  }

  asio::awaitable<Result<std::string>> unmount(OwnMount mount, mounts::Unmount how) override {
    json::object request = message_of(mount);
    request["how"] = workers::to_string(how);
    const auto& table = mount_table();
    const mounts::Mount* seen = table ? mounts::mounted_at(*table, mount.target()) : nullptr;
    const Duration detaching = seen != nullptr && seen->type.starts_with("nfs") ? kDetachNfs : kDetach;
    const Duration limit = how == mounts::Unmount::Plain ? kUnmount : detaching;
    auto answer = co_await asker_.act("unmount", std::move(request), limit);
    if (!answer) co_return answer.take_error();
    co_return get_text(*answer, "users");
  }

  asio::awaitable<Result<std::string>> users(std::filesystem::path target) override {
    json::object request{{"target", target.native()}};
    const auto answer = co_await asker_.ask_beside("users", "users", std::move(request), kUsers);
    if (!answer) co_return fail(answer.error());
    co_return get_text(*answer, "users");
  }

  asio::awaitable<Result<mounts::Closed>> publish(Remount mount, mounts::AfterPublish then) override {
    json::object request = message_of(mount);
    request["then_write"] = then == mounts::AfterPublish::Writable;
    auto answer = co_await asker_.act("publish", std::move(request), kPublish);
    auto closed = workers::message_of<mounts::Closed>(std::move(answer));
    const bool is_published =
        then == mounts::AfterPublish::ReadOnly || (closed && !closed->not_writable.empty());
    if (closed && is_published) {
      auto identity = store_.pinned_identity().value_or(FilesystemIdentity{});
      identity.is_published = true;
      identity.stamp = closed->stamp;
      const auto pinned = co_await store_.pin(std::move(identity));
      if (!pinned) log::survived(pinned.error());
    }
    co_return closed;
  }

  // Unpinned first: after an interruption the configuration decides.
  asio::awaitable<Result<>> make_writable(Remount mount) override {
    auto identity = store_.pinned_identity().value_or(FilesystemIdentity{});
    // A full state folder may have kept it from being recorded.
    if (std::exchange(identity.is_published, false)) {
      if (auto pinned = co_await store_.pin(std::move(identity)); !pinned) co_return pinned;
    }
    json::object request = message_of(mount);
    const auto answer = co_await asker_.act("make-writable", std::move(request), kMount + kLongestClaim);
    co_return success_of(answer);
  }

  const Result<std::vector<mounts::Mount>>& mount_table() override { return asker_.snapshot().mounts(); }

 private:
  static constexpr Duration kMount{120'000};   // with the replay of a journal, without multi-mount protection
  static constexpr Duration kUnmount{60'000};  // includes flushing a writer's dirty pages
  static constexpr Duration kUsers{30'000};    // every process of the host is examined
  static constexpr Duration kDetach{kUsers + Duration(10'000)};
  static constexpr Duration kDetachNfs{10'000};  // beyond it, it waits for its server with dirty pages
  // Multi-mount protection with its longest interval, 300 s: a dead host's claim, and this host's.
  static constexpr Duration kLongestClaim{2 * 601'000};
  // Flushes what was written since the first flush.
  static constexpr Duration kPublish{Duration(900'000) + kLongestClaim + mounts::kReopening};
  static constexpr Duration kGuard{30'000};  // sets an attribute and a link on the system's own drive

  Asker& asker_;
  FileStore& store_;
  std::filesystem::path guards_;  // the folder of the guards' records
};

}  // namespace spark::volumes
