#include "daemon/volumes/adapters/worker_seams.hpp"

#include "daemon/mounts/guard.hpp"
#include "daemon/volumes/adapters/file_store.hpp"
#include "daemon/volumes/adapters/host_fabric_snapshot.hpp"
#include "daemon/volumes/adapters/worker_device.hpp"
#include "daemon/volumes/adapters/worker_fabric.hpp"
#include "daemon/volumes/adapters/worker_mounts.hpp"

namespace spark::volumes {
namespace {

struct Adapters {
  Asker asker;
  WorkerFabric fabric{asker};
  HostFabricSnapshot snapshot;
  FileStore store;
  WorkerMounts mounts;
  WorkerDevice device;

  Adapters(workers::Runner& runner, HostSnapshot& seen, const std::string& volume,
           const std::filesystem::path& folder)
      : asker(runner, seen, volume),
        snapshot(seen),
        store(asker, volume, folder),
        mounts(asker, store, folder.parent_path() / mounts::kGuardRecords),
        device(asker, volume) {}
};

}  // namespace

Seams worker_seams(workers::Runner& runner, HostSnapshot& snapshot, const std::string& volume,
                   const std::filesystem::path& folder) {
  const auto all = std::make_shared<Adapters>(runner, snapshot, volume, folder);
  Reserve reserve = [&device = all->device](ReservationRequest request) {
    return device.reserve(std::move(request));
  };
  Neighbours this_host{[&snapshot] { return snapshot.host(); }, [] { return host_name(); }};
  return {all->fabric,        all->snapshot, all->mounts,          all->device,
          std::move(reserve), all->store,    std::move(this_host), all};
}

}  // namespace spark::volumes
