// Mount points, accessed by workers.
#pragma once

#include "daemon/volumes/adapters/asker.hpp"
#include "daemon/volumes/adapters/file_store.hpp"
#include "daemon/volumes/seams/mounts.hpp"

namespace spark::volumes {

// {"target", "mounted": {"id", "device"}}: the workers check that the mount is still there.
json::object message_of(const OwnMount& mount);

class WorkerMounts final : public Mounts {
 public:
  WorkerMounts(Asker& asker, FileStore& store, std::filesystem::path guards)
      : asker_(asker), store_(store), guards_(std::move(guards)) {}

  asio::awaitable<Result<Mounted>> mount(mounts::MountRequest request, FilesystemIdentity identity) override;
  asio::awaitable<Result<mounts::Guard>> guard(std::filesystem::path mount_point, bool is_in_use) override;
  asio::awaitable<Result<std::string>> unmount(OwnMount mount, mounts::Unmount how) override;
  asio::awaitable<Result<std::string>> users(std::filesystem::path target) override;
  asio::awaitable<Result<mounts::Closed>> publish(Remount mount, mounts::AfterPublish then) override;
  asio::awaitable<Result<>> make_writable(Remount mount) override;
  const Result<std::vector<mounts::Mount>>& mount_table() override;

 private:
  Asker& asker_;
  FileStore& store_;
  std::filesystem::path guards_;  // the folder of the guards' records
};

}  // namespace spark::volumes
