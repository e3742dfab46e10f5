#include "daemon/volumes/adapters/worker_seams.hpp"

#include "daemon/mounts/guard.hpp"
#include "daemon/volumes/adapters/file_store.hpp"
#include "daemon/volumes/adapters/sight_of_fabric.hpp"
#include "daemon/volumes/adapters/worker_device.hpp"
#include "daemon/volumes/adapters/worker_fabric.hpp"
#include "daemon/volumes/adapters/worker_mounts.hpp"
#include "daemon/volumes/adapters/worker_reservations.hpp"

namespace spark::volumes {
namespace {

struct Adapters {
  Asker asker;
  WorkerFabric fabric{asker};
  SightOfFabric sight;
  FileStore store;
  WorkerMounts mounts;
  WorkerDevice device;
  WorkerReservations reservations{asker};
  HostNeighbours neighbours;

  Adapters(workers::Runner& runner, Sight& seen, const std::string& volume,
           const std::filesystem::path& folder, std::function<bool()> shared,
           HostNeighbours::TargetAt target_at)
      : asker(runner, seen, volume),
        sight(seen),
        store(asker, volume, folder),
        mounts(asker, store, folder.parent_path() / mounts::kGuardRecords),
        device(asker, volume),
        neighbours(seen, std::move(shared), std::move(target_at)) {}
};

}  // namespace

Seams worker_seams(workers::Runner& runner, Sight& sight, const std::string& volume,
                   const std::filesystem::path& folder, std::function<bool()> shared,
                   HostNeighbours::TargetAt target_at) {
  const auto all =
      std::make_shared<Adapters>(runner, sight, volume, folder, std::move(shared), std::move(target_at));
  return {all->fabric,       all->sight, all->mounts,     all->device,
          all->reservations, all->store, all->neighbours, all};
}

}  // namespace spark::volumes
